"""Graph coverage: how many nodes, edges and branches of each manifest the scenarios took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

PARTS: Final = ("nodes", "edges", "branches")

Item = str | tuple[str, ...]
"""A node or a branch by name, or an edge by its two ends."""


@dataclass(slots=True)
class _Graph:
    """The items of a graph and those that were taken, by part.

    places  each item, with its "file:line" in the manifest or None
    taken   items that a run took
    """

    places: dict[str, dict[Item, str | None]] = field(default_factory=lambda: {part: {} for part in PARTS})
    taken: dict[str, set[Item]] = field(default_factory=lambda: {part: set() for part in PARTS})
    last_shape: Any = None
    last_taken: Any = None


class GraphCoverage:
    """Collects the items of each graph, and those that were taken, from lines of results.jsonl.

    A manifest with several agents has several graphs, listed as `manifest#agent`.
    """

    def __init__(self) -> None:
        self._graphs: dict[tuple[str, str], _Graph] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Add a line of results.jsonl. Items that were taken belong to the graph even if its shape lacks them."""
        shape, taken = line.get("shape") or {}, line["coverage"]
        if not any(shape.get(part) or taken.get(part) for part in PARTS):
            return
        key = (line["manifest"], line["agent"] or "")
        graph = self._graphs.get(key)
        if graph is None:
            graph = self._graphs[key] = _Graph()
        if shape != graph.last_shape:  # nearly all lines of a manifest have the same shape
            graph.last_shape = shape
            _add_shape(graph, shape, line["manifest"])
        if taken != graph.last_taken:
            graph.last_taken = taken
            for part in PARTS:
                graph.taken[part].update(_items(taken.get(part, ())))

    def name(self, manifest: str, agent: str) -> str:
        """Return the name a graph is listed by."""
        several = sum(found == manifest for found, _ in self._graphs) > 1
        return f"{manifest}#{agent}" if several else manifest

    def summary(self) -> dict[str, Any]:
        """Return, by graph, {nodes, edges, branches}, each {taken, all: counts, missing: items not taken, where}.

        `where` has the "file:line" of each missing item, or None.
        """
        return {
            self.name(*key): {part: _counted(graph.places[part], graph.taken[part]) for part in PARTS}
            for key, graph in sorted(self._graphs.items())
        }


def _add_shape(graph: _Graph, shape: Mapping[str, Any], manifest: str) -> None:
    lines = shape.get("lines") or {}
    for part, places in graph.places.items():
        of_part = lines.get(part) or ()
        for item, line in zip_longest(_items(shape.get(part, ())), of_part[: len(shape.get(part, ()))]):
            place = f"{manifest}:{line}" if isinstance(line, int) else line
            places[item] = min(filter(None, (places.get(item), place)), default=None)


def _items(items: Iterable[Any]) -> list[Item]:
    return [item if isinstance(item, str) else tuple(item) for item in items]


def _counted(places: Mapping[Item, str | None], taken: set[Item]) -> dict[str, Any]:
    missing = sorted(places.keys() - taken, key=repr)
    return {
        "taken": len(taken),
        "all": len(places.keys() | taken),
        "missing": [list(item) if isinstance(item, tuple) else item for item in missing],
        "where": [places[item] for item in missing],
    }
