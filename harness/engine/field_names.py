"""Fields of the state whose names LangGraph reserves are renamed for it; nobody else sees the other names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from harness.graph.model import Graph

_RESERVED: Final = re.compile(
    r"__(start|error|error_source_node|input|interrupt|resume|no_writes|snapshot_bumps)__|__pregel_.*"
    r"|configurable|checkpoint_(id|map|ns)|langsmith:hidden|[:|]"
)


class FieldNames:
    """The names of a graph's fields in LangGraph."""

    def __init__(self, graph: Graph) -> None:
        reserved = [channel.name for channel in graph.channels if _RESERVED.fullmatch(channel.name)]
        self._called = {name: f"field {name}" for name in reserved}
        self._named = {called: name for name, called in self._called.items()}

    def called(self, name: str) -> str:
        """The name of a field in LangGraph."""
        return self._called.get(name, name)

    def inside(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Values by field, with LangGraph's names."""
        return _renamed(values, self._called) if self._called else values

    def outside(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Values by field, with the graph's own names."""
        return _renamed(values, self._named) if self._named else values


@lru_cache(maxsize=256)
def field_names(graph: Graph) -> FieldNames:
    """The field names of a graph, made once. LangGraph knows no fields of an open state."""
    return FieldNames(graph)


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in values.items()}
