"""Prepare a graph for drawing: remove duplicates, assign layers, find back edges and unreachable nodes.

`nodes_of` and `edges_of` name what is drawn of a `Graph`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from harness.graph.events import ConcurrencyLimit, EventGraph
from harness.graph.model import ANY_NODE, END, GOTO, START, DataEdge, Graph
from harness.graph.observe import implied_ends

NodeSpec = tuple[str, str]
EdgeSpec = tuple[str, str, str | None]
DataSpec = tuple[str, str, tuple[str, ...]]

ANY_KIND: Final = "any node"
"""The kind of the placeholder for all nodes. If it is reachable, every node is."""

CAPTION: Final = " · "
"""Separator between a node's kind and the other parts of its caption."""


@dataclass(frozen=True)
class Sketch:
    """A graph prepared for drawing, the input of every output format.

    kinds        kind of each node, in the order of the layers; a node that only an edge names has
                 the kind "undeclared"
    edges        unique (source, target, label)
    data         (source, target, values): all data edges between two nodes, joined into one arrow
    back         positions in `edges` of back edges: to a node on the path that leads to them, or to itself
    unreachable  nodes that cannot be reached from the start
    layer        length of the longest path to each node without back edges; the end is below all others
    """

    kinds: Mapping[str, str]
    edges: Sequence[EdgeSpec]
    data: Sequence[DataSpec]
    back: frozenset[int]
    unreachable: frozenset[str]
    layer: Mapping[str, int]

    @cached_property
    def arrows(self) -> Sequence[tuple[str, str]]:
        """(source, target) of each edge, followed by those of each data arrow."""
        return [(source, target) for source, target, _ in (*self.edges, *self.data)]


def sketch(nodes: Sequence[NodeSpec], edges: Sequence[EdgeSpec], data: Sequence[DataEdge] = ()) -> Sketch:
    """Prepare a graph of these (name, kind) nodes, (source, target, label or None) edges, and data edges.

    `__start__` is always included. Data edges affect neither layers nor reachability.
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
    back, reached = _find_back_edges(names, unique)
    layer = _longest_paths(names, [edge for i, edge in enumerate(unique) if i not in back])
    if END in kinds:
        layer[END] = 1 + max(depth for name, depth in layer.items() if name != END)
    return Sketch(
        kinds={name: kinds[name] for name in sorted(names, key=layer.__getitem__)},
        edges=unique,
        data=_join_data(data),
        back=frozenset(back),
        unreachable=frozenset() if ANY_KIND in map(kinds.get, reached) else frozenset(names) - reached,
        layer=layer,
    )


def _join_data(data: Sequence[DataEdge]) -> list[DataSpec]:
    values: dict[tuple[str, str], dict[str, None]] = {}
    for edge in data:
        value = edge.output if edge.output == edge.input else f"{edge.output} → {edge.input}"
        values.setdefault((edge.source, edge.target), {})[value] = None
    return [(source, target, tuple(names)) for (source, target), names in values.items()]


def positions_by_source(edges: Sequence[EdgeSpec]) -> dict[str, list[int]]:
    """Return the positions of the edges that leave each node."""
    out: dict[str, list[int]] = {}
    for position, (source, _, _) in enumerate(edges):
        out.setdefault(source, []).append(position)
    return out


def _find_back_edges(names: Sequence[str], edges: Sequence[EdgeSpec]) -> tuple[set[int], set[str]]:
    """Search depth-first from the start, then from unseen nodes; return back edges, and what the start reaches."""
    out = positions_by_source(edges)
    seen: set[str] = set()
    back = _search_from(START, edges, out, seen)
    reached = set(seen)
    for root in names:
        if root not in seen:
            back |= _search_from(root, edges, out, seen)
    return back, reached


def _search_from(
    root: str, edges: Sequence[EdgeSpec], out: Mapping[str, list[int]], seen: set[str]
) -> set[int]:
    """Return the back edges found from one root. Iterative, since long chains would exceed the recursion limit."""
    back: set[int] = set()
    seen.add(root)
    path = {root: iter(out.get(root, ()))}
    while path:
        name = next(reversed(path))
        position = next(path[name], None)
        if position is None:
            path.popitem()
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
    out = positions_by_source(edges)
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


def nodes_of(graph: Graph) -> list[NodeSpec]:
    """Return (name, caption) of each node. An event graph adds joins and concurrency limits to the kind."""
    limits = _limits(graph)
    nodes = [
        (node.name, CAPTION.join([node.kind, *_waits(graph, node.name, limits)])) for node in graph.nodes
    ]
    return [*nodes, (ANY_NODE, ANY_KIND)] if graph.goto_anywhere else nodes


def _waits(graph: Graph, node: str, limits: Sequence[ConcurrencyLimit]) -> Iterator[str]:
    join = graph.joins.get(node) if isinstance(graph, EventGraph) else None
    if join is not None:
        limit = "" if join.timeout_s is None else f" at most {join.timeout_s:g} s"
        yield f"waits{limit} for {join.requirement}"  # the limit comes first, as a long requirement is cut
    for concurrency in limits:
        if concurrency.nodes is not None and node in concurrency.nodes:
            others = ", ".join(sorted(concurrency.nodes - {node}))
            yield f"{concurrency.at_once} at once" + (f" with {others}" if others else "")


def _limits(graph: Graph) -> Sequence[ConcurrencyLimit]:
    """Return the limits on some nodes that are worth showing.

    A limit of one run at a time for every single node is the default, and is left out.
    """
    limits = graph.limits if isinstance(graph, EventGraph) else ()
    alone = {limit for limit in limits if limit.nodes is not None and len(limit.nodes) == 1 == limit.at_once}
    return [limit for limit in limits if limit not in alone] if len(alone) == len(graph.nodes) > 1 else limits


def edges_of(graph: Graph) -> list[EdgeSpec]:
    """Return the edges, including those to any node. Limits on all nodes label the edges from the start."""
    limits = graph.limits if isinstance(graph, EventGraph) else ()
    said = ", ".join(f"{limit.at_once} nodes at once" for limit in limits if limit.nodes is None)
    edges = [
        (edge.source, edge.target, edge.label or (edge.source == START and said) or None)
        for edge in (*graph.edges, *implied_ends(graph))
    ]
    return [*edges, *((source, ANY_NODE, GOTO) for source in sorted(graph.goto_anywhere))]
