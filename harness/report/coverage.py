"""How much of each manifest's graph the scenarios went through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

PARTS: Final = ("nodes", "edges", "branches")

Item = str | tuple[str, ...]
"""A node or a branch by its name, an edge by its two ends."""


@dataclass(slots=True)
class _Graph:
    """What is known of a graph, by part: its items with the place of each in the manifest, and what was taken."""

    places: dict[str, dict[Item, str | None]] = field(default_factory=lambda: {part: {} for part in PARTS})
    taken: dict[str, set[Item]] = field(default_factory=lambda: {part: set() for part in PARTS})
    last_shape: Any = None
    last_taken: Any = None


class GraphCoverage:
    """Collects, line by line, what each graph has and what of it was taken.

    A manifest with several agents has several graphs: each is listed as `manifest#agent`.
    """

    def __init__(self) -> None:
        self._graphs: dict[tuple[str, str], _Graph] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Count a line of results.jsonl. What was taken is part of the graph even where its shape lacks it."""
        shape, taken = line.get("shape") or {}, line["coverage"]
        if not any(shape.get(part) or taken.get(part) for part in PARTS):
            return
        key = (line["manifest"], line["agent"] or "")
        graph = self._graphs.get(key)
        if graph is None:
            graph = self._graphs[key] = _Graph()
        if shape != graph.last_shape:  # most lines of a manifest have the same
            graph.last_shape = shape
            _add_shape(graph, shape, line["manifest"])
        if taken != graph.last_taken:
            graph.last_taken = taken
            for part in PARTS:
                graph.taken[part].update(_items(taken.get(part, ())))

    def name(self, manifest: str, agent: str) -> str:
        """What a graph is listed as."""
        several = sum(found == manifest for found, _ in self._graphs) > 1
        return f"{manifest}#{agent}" if several else manifest

    def summary(self) -> dict[str, Any]:
        """By manifest, for nodes, edges and branches: {taken, all: counts, missing: those not taken, where}.

        where has, for each that is missing, "file:line" of it, or null.
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
