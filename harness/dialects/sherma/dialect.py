"""The dialect sherma: the members of `harness.dialects.dialect.Dialect`. Other modules are imported lazily."""

from __future__ import annotations

from harness.dialects.dialect import lazy_function, single_file
from harness.source.document import Document
from harness.source.yaml import Version

name = "sherma"
title = "sherma agents (YAML + CEL, manifest version 1)"
yaml: Version = "scalar-keys"
locate = single_file
prompts = lazy_function("harness.dialects.sherma.prompt_list:prompts")
tunables = lazy_function("harness.dialects.sherma.prompt_list:tunables")
load = lazy_function("harness.dialects.sherma.compile:load")


def detect(document: Document) -> bool:
    """True if a document is a sherma manifest: it has `manifest_version`, or agents with a `graph`."""
    value = document.value
    if not isinstance(value, dict):
        return False
    agents = value.get("agents")
    has_graphs = isinstance(agents, dict) and any(
        isinstance(agent, dict) and "graph" in agent for agent in agents.values()
    )
    return "manifest_version" in value or has_graphs


def agents(document: Document) -> list[str]:
    """Return the names of the agents that a manifest defines."""
    defined = document.value.get("agents") if isinstance(document.value, dict) else None
    return [name for name in defined if isinstance(name, str)] if isinstance(defined, dict) else []
