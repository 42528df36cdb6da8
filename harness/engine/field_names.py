"""Fields of the state whose names LangGraph keeps for itself: it is given others, which nobody else sees."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from harness.graph.model import Graph

_KEPT: Final = re.compile(
    r"__(start|error|error_source_node|input|interrupt|resume|no_writes|snapshot_bumps)__|__pregel_.*"
    r"|configurable|checkpoint_(id|map|ns)|langsmith:hidden|[:|]"
)


class FieldNames:
    """What LangGraph calls the fields of a graph's state."""

    def __init__(self, graph: Graph) -> None:
        kept = [channel.name for channel in graph.channels if _KEPT.fullmatch(channel.name)]
        self._called = {name: f"field {name}" for name in kept}
        self._named = {called: name for name, called in self._called.items()}

    def called(self, name: str) -> str:
        """What LangGraph calls a field."""
        return self._called.get(name, name)

    def inside(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Values by field, as LangGraph takes them."""
        return _renamed(values, self._called) if self._called else values

    def outside(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Values by field, as everybody else knows them."""
        return _renamed(values, self._named) if self._named else values


@lru_cache(maxsize=256)
def field_names(graph: Graph) -> FieldNames:
    """Those of a graph. Of an open state LangGraph knows no fields."""
    return FieldNames(graph)


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in values.items()}
