"""Translation of field names that LangGraph reserves. The other names are seen by LangGraph only."""

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
    """The translation of a graph's field names to LangGraph's and back."""

    def __init__(self, graph: Graph) -> None:
        reserved = [channel.name for channel in graph.channels if _RESERVED.fullmatch(channel.name)]
        self._inner = {name: f"field {name}" for name in reserved}
        self._outer = {inner: name for name, inner in self._inner.items()}

    def inner_name(self, name: str) -> str:
        """Return the name of a field in LangGraph."""
        return self._inner.get(name, name)

    def to_langgraph(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return values by field, with LangGraph's names."""
        return _renamed(values, self._inner) if self._inner else values

    def from_langgraph(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return values by field, with the graph's own names."""
        return _renamed(values, self._outer) if self._outer else values


@lru_cache(maxsize=256)
def field_names(graph: Graph) -> FieldNames:
    """Return the field names of a graph, cached. With an open state, LangGraph sees no fields."""
    return FieldNames(graph)


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in values.items()}
