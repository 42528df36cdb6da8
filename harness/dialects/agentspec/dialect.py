"""The members of `harness.dialects.dialect.Dialect` for Agent Spec. Other modules are imported when they are used."""

from __future__ import annotations

from harness.dialects.agentspec.tables import (
    REFERENCE,
    TABLE,
    TYPE,
    VERSION,
    missing_root_problem,
    table_entries,
)
from harness.dialects.dialect import YamlVersion, lazy_function, single_file
from harness.errors import Problem
from harness.source.document import Document

name = "agentspec"
title = "Agent Spec configurations (25.4.1)"
yaml: YamlVersion = "1.1"
locate = single_file
prompts = lazy_function("harness.dialects.agentspec.prompt_list:prompts")
tunables = lazy_function("harness.dialects.agentspec.prompt_list:tunables")
load = lazy_function("harness.dialects.agentspec.compile:load")


def detect(document: Document) -> bool:
    """True if a document is a configuration with a root component, and not only disaggregated components."""
    value = document.value
    if not isinstance(value, dict):
        return False
    return isinstance(value.get(TYPE), str) or REFERENCE in value or (VERSION in value and TABLE not in value)


def fragment(document: Document) -> Problem | None:
    """Return the problem of a document of disaggregated components, which is not a configuration by itself."""
    return missing_root_problem(document)


def agents(document: Document) -> list[str]:
    """Return the name of the root component."""
    value = document.value
    if isinstance(value, dict) and REFERENCE in value:
        tables = {key: part.value for key, part in table_entries(document)}
        value = tables.get(value[REFERENCE]) if isinstance(value[REFERENCE], str) else None
    name = value.get("name") if isinstance(value, dict) else None
    return [name] if isinstance(name, str) else []
