"""Latency of each graph's nodes, in virtual seconds."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Any

from harness.report.arithmetic import percentiles


class NodeLatencies:
    """Collects the latencies of nodes from lines of results; one value is the sum of a node's visits in a run."""

    def __init__(self) -> None:
        self._graphs: dict[tuple[str, str], dict[str, array[float]]] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Add a line of results.jsonl."""
        key = line["manifest"], line["agent"] or ""
        graph = self._graphs.setdefault(key, {})
        for node, seconds in line["latency"]["nodes"].items():
            if node not in graph:
                graph[node] = array("d")
            graph[node].append(seconds)

    def as_json(self, name: Callable[[str, str], str]) -> dict[str, Any]:
        """Return, by graph and node, {runs, p50, p90, p95, p99, max}. `name` returns the name of a graph."""
        return {
            name(*key): {
                node: {"runs": len(values), **percentiles(values)} for node, values in sorted(graph.items())
            }
            for key, graph in sorted(self._graphs.items())
            if graph
        }
