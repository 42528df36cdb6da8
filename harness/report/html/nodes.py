"""What the nodes of a manifest took and cost: their virtual seconds, and the tokens of the models they asked."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.report.arithmetic import percentiles
from harness.report.repeats import ran

Line = Mapping[str, Any]

_COUNTED: Final = ("llm_calls", "input_tokens", "output_tokens")


@dataclass(slots=True)
class _Node:
    seconds: array[float] = field(default_factory=lambda: array("d"))
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    cost: float = 0.0
    priced: bool = True

    def as_json(self) -> dict[str, Any]:
        """{runs, p50, p90, p95, p99, max, llm_calls, input_tokens, output_tokens, cost, priced}.

        Where `priced` is False, a model without a price was asked, which counts as 0.
        """
        times = percentiles(self.seconds)
        return {"runs": len(self.seconds), **times, **self.counts, "cost": self.cost, "priced": self.priced}


class NodeFigures:
    """Collects, line by line, what each node came to, for each variant ("" for none).

    Seconds are those of runs that ended and were judged, as in summary.json; tokens and costs those of all runs.
    A node in a graph that another node runs (`outer/inner`) has tokens of its own; its time is that of the outer one.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, _Node]] = {}

    def add(self, line: Line) -> None:
        """Count a line of results.jsonl."""
        nodes = self._nodes.setdefault(line["variant"] or "", {})
        if ran(line):
            for name, seconds in line["latency"]["nodes"].items():
                nodes.setdefault(name, _Node()).seconds.append(seconds)
        for name, usage in line["usage"].get("by_node", {}).items():
            node = nodes.setdefault(name, _Node())
            for key in _COUNTED:
                node.counts[key] += usage[key] or 0
            node.cost += usage.get("cost") or 0.0
            node.priced = node.priced and usage.get("cost") is not None

    def as_json(self) -> list[dict[str, Any]]:
        """A node each: {node, variants: {variant: figures, see `_Node.as_json`}}; all variants together are `all`."""
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
