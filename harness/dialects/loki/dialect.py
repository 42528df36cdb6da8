"""The members of `harness.dialects.dialect.Dialect` for Loki. Other modules are imported when they are used."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness.dialects.dialect import YamlVersion, lazy_function
from harness.source.document import Document

name = "loki"
title = "Loki graph agents (a folder with graph.yaml)"
yaml: YamlVersion = "1.2"
prompts = lazy_function("harness.dialects.loki.declared:prompts")
tunables = lazy_function("harness.dialects.loki.declared:tunables")
load = lazy_function("harness.dialects.loki.compile:load")

MANIFEST: Final = "graph.yaml"
_KEYS: Final = frozenset(
    {"name", "description", "version", "model", "temperature", "top_p", "global_tools", "mcp_servers"}
    | {"conversation_starters", "settings", "initial_state", "start", "nodes"}
)


def locate(path: Path) -> Sequence[Path]:
    """Return the `graph.yaml` of an agent's folder; a file stands for itself. spec: "Directory Structure"."""
    if not os.path.isdir(path):
        return (path,)
    return (path / MANIFEST,) if os.path.exists(path / MANIFEST) else ()


def detect(document: Document) -> bool:
    """True if a document is a graph agent: `nodes` is a mapping, and one of the nodes has a `type`.

    spec: "The presence of `graph.yaml` is what marks an agent as a graph agent". A file of that name is therefore one
    if it has a `start`, or no keys but those of a graph agent, even if its nodes are missing or malformed.
    """
    value = {} if document.value is None else document.value
    if not isinstance(value, dict):
        return False
    nodes = value.get("nodes")
    is_graph = "start" in value or value.keys() <= _KEYS
    if is_graph and Path(document.file).name == MANIFEST and not isinstance(nodes, list):
        return True
    return isinstance(nodes, dict) and any(
        isinstance(node, dict) and isinstance(node.get("type"), str) for node in nodes.values()
    )


def agents(document: Document) -> list[str]:
    """Return the name of the graph agent, if it has one."""
    found = document.value.get("name") if isinstance(document.value, dict) else None
    return [found] if isinstance(found, str) and found else []
