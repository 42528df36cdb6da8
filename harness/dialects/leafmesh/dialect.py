"""The dialect LeafMesh: the members of `harness.dialects.dialect.Dialect`. The rest is imported when it is used."""

from __future__ import annotations

from collections.abc import Sequence

from harness.dialects.dialect import YamlVersion, single_file
from harness.dialects.prompt import Prompt
from harness.dialects.request import LoadRequest
from harness.graph.model import Graph
from harness.source.document import Document

name = "leafmesh"
title = "LeafMesh meshes (config.yaml)"
yaml: YamlVersion = "1.1"
locate = single_file


def detect(document: Document) -> bool:
    """True if a document is a mesh: its agents call each other, or it has entry points."""
    value = document.value
    found = value.get("agents") if isinstance(value, dict) else None
    if not isinstance(found, dict) or "manifest_version" in value:
        return False
    agents = [agent for agent in found.values() if isinstance(agent, dict)]
    return isinstance(value.get("entry_points"), list) or any(
        agent.keys() & {"agent_type", "can_call"} for agent in agents
    )


def agents(document: Document) -> list[str]:
    """The entry points, then the agents, each name once."""
    value = document.value if isinstance(document.value, dict) else {}
    entries, named = value.get("entry_points"), value.get("agents")
    names = (
        [entry.get("name") for entry in entries if isinstance(entry, dict)]
        if isinstance(entries, list)
        else []
    )
    names += list(named) if isinstance(named, dict) else []
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))


def prompts(request: LoadRequest) -> Sequence[Prompt]:
    """The prompts, as `prompt_list` finds them."""
    from harness.dialects.leafmesh.prompt_list import prompts

    return prompts(request)


def load(request: LoadRequest) -> Graph:
    """The graph, as `compile` makes it."""
    from harness.dialects.leafmesh.compile import load

    return load(request)
