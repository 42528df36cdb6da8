"""How much of each manifest's graph the scenarios went through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PARTS = ("nodes", "edges", "branches")


class GraphCoverage:
    """Collects, line by line, what each graph has and what of it was taken.

    A manifest with several agents has several graphs: each is listed as `manifest#agent`.
    """

    def __init__(self) -> None:
        self._graphs: dict[tuple[str, str], dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {}
        self._last: dict[tuple[str, str], tuple[Any, Any]] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Count a line of results.jsonl. What was taken is part of the graph even where its shape lacks it."""
        shape, taken = line.get("shape") or {}, line["coverage"]
        if not any(shape.get(part) or taken.get(part) for part in _PARTS):
            return
        key = (line["manifest"], line["agent"] or "")
        if self._last.get(key) == (shape, taken):
            return  # as most scenarios of a file
        self._last[key] = shape, taken
        graph = self._graphs.setdefault(key, {part: ({}, {}) for part in _PARTS})
        for part, (everything, went) in graph.items():
            went.update((repr(item), item) for item in taken.get(part, ()))
            everything.update((repr(item), item) for item in [*shape.get(part, ()), *taken.get(part, ())])

    def name(self, manifest: str, agent: str) -> str:
        """What a graph is listed as."""
        several = sum(found == manifest for found, _ in self._graphs) > 1
        return f"{manifest}#{agent}" if several else manifest

    def summary(self) -> dict[str, Any]:
        """By manifest, for nodes, edges and branches: {taken, all: counts, missing: those not taken}."""
        return {
            self.name(*key): {part: _counted(*found) for part, found in graph.items()}
            for key, graph in sorted(self._graphs.items())
        }


def _counted(everything: Mapping[str, Any], went: Mapping[str, Any]) -> dict[str, Any]:
    missing = [everything[key] for key in sorted(everything) if key not in went]
    return {"taken": len(went), "all": len(everything), "missing": missing}
