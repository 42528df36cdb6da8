"""A graph made ready to be drawn: nodes in layers, back edges and unreachable nodes found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from harness.graph.model import END, START, DataEdge

NodeSpec = tuple[str, str]
EdgeSpec = tuple[str, str, str | None]
DataSpec = tuple[str, str, tuple[str, ...]]

ANY_KIND: Final = "any node"
"""The kind of what stands for all nodes; where it can be reached, they can."""

CAPTION: Final = " · "
"""Between a node's kind and what else its caption says."""


@dataclass(frozen=True)
class Sketch:
    """What every kind of picture starts from.

    kinds        every node's kind, nodes in the order of their layers; a node that only an edge names is
                 of the kind "undeclared"
    edges        (source, target, label), none twice
    data         (source, target, values): what goes from one node to another, joined to one arrow
    back         positions in `edges` of those that lead back to a node on the path to them, or to itself
    unreachable  nodes no edge leads to from the start
    layer        length of the longest path to each node without back edges; the end stands below all others
    """

    kinds: Mapping[str, str]
    edges: Sequence[EdgeSpec]
    data: Sequence[DataSpec]
    back: frozenset[int]
    unreachable: frozenset[str]
    layer: Mapping[str, int]

    @cached_property
    def arrows(self) -> Sequence[tuple[str, str]]:
        """(source, target) of all edges, and after them of all data."""
        return [(source, target) for source, target, _ in (*self.edges, *self.data)]


def sketch(nodes: Sequence[NodeSpec], edges: Sequence[EdgeSpec], data: Sequence[DataEdge] = ()) -> Sketch:
    """The graph of these (name, kind), (source, target, label or None) and data edges.

    `__start__` is always in it. Data edges move no node to another layer, and make none reachable.
    """
    unique = list(dict.fromkeys(edges))
    kinds = {START: "start"}
    for name, kind in nodes:
        if name != END:
            kinds.setdefault(name, kind)
    ends = [end for edge in unique for end in edge[:2]] + [end for e in data for end in (e.source, e.target)]
    for name in ends:
        kinds.setdefault(name, "end" if name == END else "undeclared")
    names = list(kinds)
    back, reached = _search(names, unique)
    layer = _longest_paths(names, [edge for i, edge in enumerate(unique) if i not in back])
    if END in kinds:
        layer[END] = 1 + max(depth for name, depth in layer.items() if name != END)
    return Sketch(
        kinds={name: kinds[name] for name in sorted(names, key=layer.__getitem__)},
        edges=unique,
        data=_joined(data),
        back=frozenset(back),
        unreachable=frozenset() if ANY_KIND in map(kinds.get, reached) else frozenset(names) - reached,
        layer=layer,
    )


def _joined(data: Sequence[DataEdge]) -> list[DataSpec]:
    values: dict[tuple[str, str], dict[str, None]] = {}
    for edge in data:
        value = edge.output if edge.output == edge.input else f"{edge.output} → {edge.input}"
        values.setdefault((edge.source, edge.target), {})[value] = None
    return [(source, target, tuple(names)) for (source, target), names in values.items()]


def _leaving(edges: Sequence[EdgeSpec]) -> dict[str, list[int]]:
    out: dict[str, list[int]] = {}
    for position, (source, _, _) in enumerate(edges):
        out.setdefault(source, []).append(position)
    return out


def _search(names: Sequence[str], edges: Sequence[EdgeSpec]) -> tuple[set[int], set[str]]:
    """Depth first from the start, then from every node not yet seen: back edges, and what start reaches."""
    out = _leaving(edges)
    seen: set[str] = set()
    back = _descend(START, edges, out, seen)
    reached = set(seen)
    for root in names:
        if root not in seen:
            back |= _descend(root, edges, out, seen)
    return back, reached


def _descend(root: str, edges: Sequence[EdgeSpec], out: Mapping[str, list[int]], seen: set[str]) -> set[int]:
    """The back edges found from one root. A loop, not a recursion: graphs may be long chains."""
    back: set[int] = set()
    seen.add(root)
    path = {root: iter(out.get(root, ()))}
    while path:
        name = next(reversed(path))
        position = next(path[name], None)
        if position is None:
            del path[name]
            continue
        target = edges[position][1]
        if target in path:
            back.add(position)
        elif target not in seen:
            seen.add(target)
            path[target] = iter(out.get(target, ()))
    return back


def _longest_paths(names: Sequence[str], edges: Sequence[EdgeSpec]) -> dict[str, int]:
    layer = {name: 0 if name == START else 1 for name in names}
    waiting = dict.fromkeys(names, 0)
    out = _leaving(edges)
    for _, target, _ in edges:
        waiting[target] += 1
    ready = [name for name in names if not waiting[name]]
    for name in ready:
        for position in out.get(name, ()):
            target = edges[position][1]
            layer[target] = max(layer[target], layer[name] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return layer
