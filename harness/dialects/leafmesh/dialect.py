"""The dialect LeafMesh: the members of `harness.dialects.dialect.Dialect`, and looking up values in a document.

Other modules are imported when they are used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.dialects.dialect import YamlVersion, lazy_function
from harness.source.display import nearest
from harness.source.document import Document, DocumentPath

name = "leafmesh"
title = "LeafMesh meshes (config.yaml)"
yaml: YamlVersion = "templated"
prompts = lazy_function("harness.dialects.leafmesh.mesh_file:prompts")
tunables = lazy_function("harness.dialects.leafmesh.mesh_file:tunables")
load = lazy_function("harness.dialects.leafmesh.compile:load")
scenarios = lazy_function("harness.dialects.leafmesh.mesh_file:scenarios")
evolution = lazy_function("harness.dialects.leafmesh.mesh_file:section")

_IN_FOLDER: Final = ("configs/config.yaml", "config.yaml")
_OF_AGENTS: Final = frozenset(
    {"agent_type", "can_call", "communication_type", "yields", "wait_for", "human_interface", "framework"}
    | {"connector_config", "context_parts", "enforce_yields", "narration", "tool_categories", "wake_up"}
)
_OF_MESHES: Final = frozenset(
    {"entry_points", "redis", "mesh", "auto_discover", "data_structures", "evolution"}
)
KEYS: Final = _OF_MESHES | frozenset(
    {"agents", "api", "architecture", "debug", "environment", "log_level", "manager", "name", "version"}
)
"""The keys of a mesh file. spec: "Top-Level Config (LeafMeshConfig)"."""
_NEAR: Final = 0.8


def locate(path: Path) -> Sequence[Path]:
    """Return the `config.yaml` of a project folder; a file stands for itself. spec: "How This Project Works"."""
    if not os.path.isdir(path):
        return (path,)
    found = (path / file for file in _IN_FOLDER)
    return tuple(file for file in found if os.path.isfile(file))[:1]


def detect(document: Document) -> bool:
    """True if a document is a mesh: it has a mapping `agents`, and keys that only a mesh or its agents have.

    It is also one if all its keys are those of a mesh, perhaps misspelt, and its agents look like agents.
    """
    value = document.value
    agents = value.get("agents") if isinstance(value, dict) else None
    if not isinstance(agents, dict) or "manifest_version" in value:
        return False
    defined = [agent for agent in agents.values() if isinstance(agent, dict)]
    keys = {key for agent in defined for key in agent}
    if "graph" in keys:
        return False
    if keys & _OF_AGENTS or value.keys() & _OF_MESHES:
        return True
    return any(map(_looks_like_an_agent, defined)) and all(
        nearest(str(key), KEYS, cutoff=_NEAR) for key in value
    )


def _looks_like_an_agent(agent: dict[str, Any]) -> bool:
    """True if a mapping has keys by which agents are described, but is not an agent of CrewAI."""
    match agent:
        case {"backstory": _}:
            return False
        case {"prompt": _} | {"agent_class": _} | {"type": str()} | {"model": _, "tools": _}:
            return True
        case {"knowledge": {"serviceName": _}}:
            return True
        case _:
            return False


def agents(document: Document) -> list[str]:
    """Return the names of the entry points; of the agents if there are none, since any agent can be entered."""
    entries = [text for _, text in texts(document.value, "entry_points", EACH, "name")]
    defined = document.value.get("agents") if isinstance(document.value, dict) else None
    return list(dict.fromkeys(entries or (defined if isinstance(defined, dict) else ())))


EACH: Final = object()
"""In a pattern: every item of a list, or every value of a mapping."""


class Match(NamedTuple):
    """A value and its path."""

    path: DocumentPath
    value: Any


def matches(value: Any, *pattern: Any, path: DocumentPath = ()) -> Iterator[Match]:
    """Yield the existing values at a pattern of keys, indices and `EACH`, in order."""
    if not pattern:
        yield Match(path, value)
        return
    step, *rest = pattern
    if step is EACH:
        entries = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, item in entries:
            yield from matches(item, *rest, path=(*path, key))
    elif isinstance(value, dict) and step in value:
        yield from matches(value[step], *rest, path=(*path, step))


def texts(value: Any, *pattern: Any) -> Iterator[Match]:
    """Yield the `matches` that are texts."""
    return (match for match in matches(value, *pattern) if isinstance(match.value, str))
