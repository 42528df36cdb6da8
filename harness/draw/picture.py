"""A Graph as a picture: its nodes with what they wait for, its edges, and on demand its data edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from harness.draw import diagram
from harness.draw.sketch import ANY_KIND, CAPTION, EdgeSpec, NodeSpec
from harness.errors import FormatError, Problem
from harness.graph.events import EventGraph
from harness.graph.model import ANY_NODE, GOTO, START, Graph
from harness.graph.observe import implied_ends

Form = Literal["text", "mermaid", "svg"]

MOST_DRAWN: Final = 2000
"""Data edges in an SVG; more of them take too long to lay out, and show nothing."""


def picture(graph: Graph, form: Form, *, data: bool = False) -> str:
    """The graph in this form. With `data`, it shows also which output feeds which input.

    Raises:
        FormatError: an SVG cannot show so many data edges.
    """
    nodes, edges = _nodes(graph), _edges(graph)
    data_edges = graph.data_edges() if data else ()
    if form == "text":
        return diagram.text(nodes, edges, data_edges if data else None)
    if form == "mermaid":
        return diagram.mermaid(nodes, edges, data_edges)
    if len(data_edges) > MOST_DRAWN:
        message = (
            f"an SVG shows at most {MOST_DRAWN:,} data edges, and '{graph.name}' has {len(data_edges):,}"
        )
        hint = "--format text or mermaid, or no --data"
        raise FormatError(Problem("too-much-to-draw", message, hint=hint))
    # character references: right in whatever encoding standard output has
    return diagram.svg(nodes, edges, data=data_edges).encode("ascii", "xmlcharrefreplace").decode()


def _nodes(graph: Graph) -> list[NodeSpec]:
    """The nodes; with their kinds, what an event graph lets them wait for."""
    nodes = [(node.name, CAPTION.join([node.kind, *_waits(graph, node.name)])) for node in graph.nodes]
    return [*nodes, (ANY_NODE, ANY_KIND)] if graph.goto_anywhere else nodes


def _waits(graph: Graph, node: str) -> Iterator[str]:
    if not isinstance(graph, EventGraph):
        return
    if (join := graph.joins.get(node)) is not None:
        limit = "" if join.timeout_s is None else f" at most {join.timeout_s:g} s"
        yield f"waits{limit} for {join.requirement}"  # the limit first: a long requirement is cut
    for concurrency in graph.limits:
        if concurrency.nodes is not None and node in concurrency.nodes:
            others = ", ".join(sorted(concurrency.nodes - {node}))
            yield f"{concurrency.at_once} at once" + (f" with {others}" if others else "")


def _edges(graph: Graph) -> list[EdgeSpec]:
    """The edges, and one to any node. A limit of all nodes is on the edges of the start."""
    limits = graph.limits if isinstance(graph, EventGraph) else ()
    for_all = ", ".join(f"{limit.at_once} nodes at once" for limit in limits if limit.nodes is None)
    edges = [
        (edge.source, edge.target, edge.label or (edge.source == START and for_all) or None)
        for edge in (*graph.edges, *implied_ends(graph))
    ]
    return [*edges, *((source, ANY_NODE, GOTO) for source in sorted(graph.goto_anywhere))]
