"""The members of `harness.dialects.dialect.Dialect` for Yagra. Other modules are imported when they are used."""

from __future__ import annotations

from harness.dialects.dialect import lazy_function, single_file
from harness.source.document import Document
from harness.source.yaml import Version

name = "yagra"
title = "Yagra workflows (YAML, LangGraph)"
yaml: Version = "scalar-keys"
locate = single_file
prompts = lazy_function("harness.dialects.yagra.prompts:prompts")
tunables = lazy_function("harness.dialects.yagra.prompts:tunables")
load = lazy_function("harness.dialects.yagra.compile:load")


def detect(document: Document) -> bool:
    """True if a document is a Yagra workflow: it has `nodes`, and `start_at` or `end_at`."""
    value = document.value
    return isinstance(value, dict) and "nodes" in value and ("start_at" in value or "end_at" in value)


def agents(document: Document) -> list[str]:
    """Return no names: a workflow defines one agent without a name."""
    return []
