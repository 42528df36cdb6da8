"""The dialect sherma: the members of `harness.dialects.dialect.Dialect`. The rest is imported when it is used."""

from __future__ import annotations

from collections.abc import Sequence

from harness.dialects.dialect import YamlVersion, single_file
from harness.dialects.prompt import Prompt
from harness.dialects.request import LoadRequest
from harness.dialects.tunable import Tunable
from harness.graph.model import Graph
from harness.source.document import Document

name = "sherma"
title = "sherma agents (YAML + CEL, manifest version 1)"
yaml: YamlVersion = "1.1"
locate = single_file


def detect(document: Document) -> bool:
    """True if a document is a sherma manifest: it says `manifest_version`, or its agents have graphs."""
    value = document.value
    if not isinstance(value, dict):
        return False
    agents = value.get("agents")
    has_graphs = isinstance(agents, dict) and any(
        isinstance(agent, dict) and "graph" in agent for agent in agents.values()
    )
    return "manifest_version" in value or has_graphs


def agents(document: Document) -> list[str]:
    """The names of the agents a manifest defines."""
    defined = document.value.get("agents") if isinstance(document.value, dict) else None
    return list(defined) if isinstance(defined, dict) else []


def prompts(request: LoadRequest) -> Sequence[Prompt]:
    """The prompts, as `prompt_list` finds them."""
    from harness.dialects.sherma.prompt_list import prompts

    return prompts(request)


def tunables(request: LoadRequest) -> Sequence[Tunable]:
    """The temperatures and lists of tools, as `tunables` finds them."""
    from harness.dialects.sherma.tunables import tunables

    return tunables(request)


def load(request: LoadRequest) -> Graph:
    """The graph, as `compile` makes it."""
    from harness.dialects.sherma.compile import load

    return load(request)
