"""The manifests of a run for the page: graphs with their coverage, and figures by node."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.draw.composition import geometry
from harness.draw.sketch import ANY_KIND
from harness.graph.model import ANY_NODE, GOTO
from harness.graph.observe import branch
from harness.report.group import PARTS, GraphCoverage
from harness.report.repeats import Line, counts_for_latency, percentiles

_COUNTED: Final = ("llm_calls", "input_tokens", "output_tokens")


@dataclass(slots=True)
class _Node:
    seconds: array[float] = field(default_factory=lambda: array("d"))
    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_COUNTED, 0)))
    cost: float = 0.0
    priced: bool = True

    def add(self, counts: Mapping[str, int | None], cost: float, priced: bool) -> None:
        self.counts.update({name: counts[name] or 0 for name in _COUNTED})
        self.cost += cost
        self.priced = self.priced and priced

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
            cost = usage.get("cost")
            nodes.setdefault(name, _Node()).add(usage, cost or 0.0, cost is not None)

    def as_json(self) -> list[dict[str, Any]]:
        """Return {node, all: its figures, variants: {variant: its figures}} for each node, see `_Node.as_json`."""
        names = dict.fromkeys(name for nodes in self._nodes.values() for name in nodes)
        return [self._of(name) for name in names]

    def _of(self, name: str) -> dict[str, Any]:
        parts = {variant: nodes[name] for variant, nodes in self._nodes.items() if name in nodes}
        whole = _Node()
        for part in parts.values():
            whole.seconds.extend(part.seconds)
            whole.add(part.counts, part.cost, part.priced)
        by_variant = {variant: part.as_json() for variant, part in parts.items()}
        return {"node": name, "all": whole.as_json(), "variants": by_variant if any(parts) else {}}


Key = tuple[str, str]
"""The path of a manifest and the name of its agent."""

MAX_DRAWN: Final = 400
"""The most nodes and edges of a graph that is drawn: a larger one takes long and is unreadable."""

DYNAMIC: Final = "dynamic"
"""The kind of a node that the picture of its graph lacks, and a run reached."""


@dataclass
class _Manifest:
    dialect: str
    shape: Mapping[str, Any] = field(default_factory=dict)
    taken: dict[str, Counter[str]] = field(default_factory=lambda: {part: Counter() for part in PARTS})
    nodes: NodeFigures = field(default_factory=NodeFigures)


class Manifests:
    """Collects the manifests of a run from its lines."""

    def __init__(self) -> None:
        self._manifests: dict[Hashable, _Manifest] = {}
        self._keys: dict[Key, Hashable] = {}
        self._coverage = GraphCoverage()

    def add(self, line: Line) -> None:
        """Add a line of results.jsonl."""
        self._coverage.add(line)
        named = line["manifest"], line["agent"] or ""
        shape = line.get("shape") or {}
        key = self._keys[named] = shape.get("of") or self._keys.get(named, named)
        found = self._manifests.get(key)
        if found is None:
            found = self._manifests[key] = _Manifest(line["dialect"])
        if not found.shape and shape.get("nodes"):
            found.shape = shape
        for part, counts in found.taken.items():
            counts.update(_name(item) for item in line["coverage"].get(part, ()))
        found.nodes.add(line)

    def names(self) -> dict[Key, str]:
        """Return the name of each manifest: its path, with the agent if it has several."""
        return {named: self._coverage.name(*named) for named in sorted(self._keys)}

    def as_json(self) -> list[dict[str, Any]]:
        """Return the manifests that could be loaded, by name: {name, dialect, coverage, taken, lines, nodes, figure}.

        coverage  as in summary.json
        taken     number of runs that took each node, edge and branch, by name
        lines     the "file:line" of each of them, by name
        nodes     figures of each node, see `NodeFigures.as_json`
        figure    the graph laid out, with what only runs showed; null if it is too large or unknown
        """
        coverage = self._coverage.summary()
        firsts: dict[Hashable, tuple[str, str]] = {}
        for named, name in self.names().items():
            firsts.setdefault(self._keys[named], (named[0], name))
        return [
            {
                "name": name,
                "dialect": found.dialect,
                "coverage": coverage[name],
                "taken": {part: dict(counts) for part, counts in found.taken.items()},
                "lines": _lines(found.shape, manifest),
                "nodes": found.nodes.as_json(),
                "figure": figure(_with_dynamic(found.shape, coverage[name])),
            }
            for key, (manifest, name) in firsts.items()
            for found in [self._manifests[key]]
            if found.shape
        ]


def _name(item: Any) -> str:
    return " -> ".join(item) if isinstance(item, list) else item


def _lines(shape: Mapping[str, Any], manifest: str) -> dict[str, str]:
    places = shape.get("lines") or {}
    return {
        _name(item): f"{manifest}:{place}" if isinstance(place, int) else place
        for part in PARTS
        for item, place in zip(shape.get(part, ()), places.get(part, ()), strict=False)
        if place is not None
    }


def _with_dynamic(shape: Mapping[str, Any], coverage: Mapping[str, Any]) -> dict[str, Any]:
    """Return a shape with the parts that only runs showed."""
    dynamic = {part: coverage[part]["dynamic"] for part in PARTS}
    kinds = shape.get("kinds") or [""] * len(shape["nodes"])
    whole = {part: [*shape.get(part, ()), *dynamic[part]] for part in PARTS}
    return {**whole, "kinds": [*kinds, *(DYNAMIC for _ in dynamic["nodes"])]}


def figure(shape: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a graph laid out, with `kinds` as captions of its nodes; None if it is too large or has no nodes."""
    nodes, edges, branches = (shape.get(part, ()) for part in PARTS)
    if not nodes or len(nodes) + len(edges) + len(branches) > MAX_DRAWN:
        return None
    kinds = shape.get("kinds") or [""] * len(nodes)
    drawn = list(zip(nodes, kinds, strict=True))
    labels = {(source, target): _labels(source, target, branches) for source, target in edges}
    arrows = [(*edge, label) for edge, of_edge in labels.items() for label in of_edge or (None,)]
    anywhere = [node for node in nodes if branch(node, ANY_NODE, GOTO) in branches]
    if anywhere:
        drawn.append((ANY_NODE, ANY_KIND))
        arrows += [(node, ANY_NODE, GOTO) for node in anywhere]
    return geometry(drawn, arrows)


def _labels(source: str, target: str, branches: list[str]) -> list[str]:
    """Return the conditions of the branches from one node to another."""
    lead = branch(source, target, "")[:-1]
    return [found[len(lead) : -1] for found in branches if found.startswith(lead)]
