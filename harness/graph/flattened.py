"""Graphs inside graphs, as one graph: its nodes are `outer/inner`.

A graph inside begins at its outer node and returns to it, so its ends need no names of their own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from harness.graph.model import Edge, Graph, Node
from harness.graph.observe import implied_ends, inside


@lru_cache(maxsize=256)
def flattened(graph: Graph) -> Graph:
    """Return a graph with those inside its nodes, if its pictures show them; else the graph itself."""
    if not graph.draws_inside or graph.vocabulary is None or not graph.vocabulary().inside:
        return graph
    parts = [*_parts(graph, "", "", ())]
    return replace(
        graph,
        nodes=tuple(node for nodes, _ in parts for node in nodes),
        edges=tuple(edge for _, edges in parts for edge in edges),
    )


def _parts(
    graph: Graph, prefix: str, outer: str, within: tuple[Hashable, ...]
) -> Iterator[tuple[Sequence[Node], Sequence[Edge]]]:
    """Yield the nodes and edges of a graph inside the node `outer`, and of those inside it."""
    renamed = [
        replace(edge, source=inside(edge.source, prefix, outer), target=inside(edge.target, prefix, outer))
        for edge in (*graph.edges, *implied_ends(graph))
    ]
    nodes = [replace(node, name=prefix + node.name) for node in graph.nodes]
    yield nodes, [edge for edge in renamed if not edge.source == edge.target == outer]
    for node, graphs in graph.vocabulary().inside.items() if graph.vocabulary is not None else ():
        for nested in graphs:
            if nested.key not in within:
                path = f"{prefix}{node}"
                below = f"{path}/{nested.name}/" if nested.name else f"{path}/"
                yield from _parts(nested.graph(), below, path, (*within, nested.key))
