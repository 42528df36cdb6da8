"""The figures of a manifest's nodes: virtual seconds, and the usage of models."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.report.arithmetic import percentiles
from harness.report.repeats import counts_for_latency

Line = Mapping[str, Any]

_COUNTED: Final = ("llm_calls", "input_tokens", "output_tokens")


@dataclass(slots=True)
class _Node:
    seconds: array[float] = field(default_factory=lambda: array("d"))
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    cost: float = 0.0
    priced: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return {runs, p50, p90, p95, p99, max, llm_calls, input_tokens, output_tokens, cost, priced}.

        `priced` is False if a model without a price was called; it counts as 0 in the cost.
        """
        times = percentiles(self.seconds)
        return {"runs": len(self.seconds), **times, **self.counts, "cost": self.cost, "priced": self.priced}


class NodeFigures:
    """Collects the figures of each node from lines of results, by variant ("" for none).

    Seconds are of runs that ended and were judged, as in summary.json; tokens and costs are of all runs. A node of a
    nested graph (`outer/inner`) has its own tokens; its time is part of the outer node's.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, _Node]] = {}

    def add(self, line: Line) -> None:
        """Add a line of results.jsonl."""
        nodes = self._nodes.setdefault(line["variant"] or "", {})
        if counts_for_latency(line):
            for name, seconds in line["latency"]["nodes"].items():
                nodes.setdefault(name, _Node()).seconds.append(seconds)
        for name, usage in line["usage"].get("by_node", {}).items():
            node = nodes.setdefault(name, _Node())
            for key in _COUNTED:
                node.counts[key] += usage[key] or 0
            node.cost += usage.get("cost") or 0.0
            node.priced = node.priced and usage.get("cost") is not None

    def as_json(self) -> list[dict[str, Any]]:
        """Return {node, all: its figures, variants: {variant: its figures}} for each node, see `_Node.as_json`."""
        names = dict.fromkeys(name for nodes in self._nodes.values() for name in nodes)
        return [self._of(name) for name in names]

    def _of(self, name: str) -> dict[str, Any]:
        parts = {variant: nodes[name] for variant, nodes in self._nodes.items() if name in nodes}
        whole = _Node()
        for part in parts.values():
            whole.seconds.extend(part.seconds)
            for key in _COUNTED:
                whole.counts[key] += part.counts[key]
            whole.cost += part.cost
            whole.priced = whole.priced and part.priced
        by_variant = {variant: part.as_json() for variant, part in parts.items()}
        return {"node": name, "all": whole.as_json(), "variants": by_variant if any(parts) else {}}
