"""How long the nodes of each graph took, in virtual seconds."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Any

from harness.report.arithmetic import percentiles


class NodeLatencies:
    """Collects, line by line, what the visits of each node took together in a run."""

    def __init__(self) -> None:
        self._graphs: dict[tuple[str, str], dict[str, array[float]]] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Count a line of results.jsonl."""
        key = line["manifest"], line["agent"] or ""
        graph = self._graphs.setdefault(key, {})
        for node, seconds in line["latency"]["nodes"].items():
            if node not in graph:
                graph[node] = array("d")
            graph[node].append(seconds)

    def as_json(self, name: Callable[[str, str], str]) -> dict[str, Any]:
        """By graph, by node: {runs, p50, p90, p95, p99, max}; `name` says what a graph is listed as."""
        return {
            name(*key): {
                node: {"runs": len(values), **percentiles(values)} for node, values in sorted(graph.items())
            }
            for key, graph in sorted(self._graphs.items())
            if graph
        }
