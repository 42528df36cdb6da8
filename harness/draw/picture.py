"""Render a `Graph` as text, mermaid or SVG: nodes with the conditions they wait for, edges, optional data edges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from harness.draw import diagram
from harness.draw.sketch import ANY_KIND, CAPTION, EdgeSpec, NodeSpec
from harness.errors import FormatError, Problem
from harness.graph.events import ConcurrencyLimit, EventGraph
from harness.graph.model import ANY_NODE, GOTO, START, Graph
from harness.graph.observe import implied_ends

Form = Literal["text", "mermaid", "svg"]

MAX_DRAWN: Final = 2000
"""The most data edges in an SVG. More would take too long to lay out and be unreadable."""


def picture(graph: Graph, form: Form, *, data: bool = False) -> str:
    """Return the graph in this format. With `data`, it also shows which output feeds which input.

    Raises:
        FormatError: there are more data edges than an SVG can show (code `too-much-to-draw`).
    """
    said, limits = _limits(graph)
    nodes, edges = _nodes(graph, limits), _edges(graph, said)
    data_edges = graph.data_edges() if data else ()
    if form == "text":
        return diagram.text(nodes, edges, data_edges if data else None)
    if form == "mermaid":
        return diagram.mermaid(nodes, edges, data_edges)
    if len(data_edges) > MAX_DRAWN:
        message = f"an SVG shows at most {MAX_DRAWN:,} data edges, and '{graph.name}' has {len(data_edges):,}"
        hint = "--format text or mermaid, or no --data"
        raise FormatError(Problem("too-much-to-draw", message, hint=hint))
    # Character references are correct whatever the encoding of standard output.
    return diagram.svg(nodes, edges, data=data_edges).encode("ascii", "xmlcharrefreplace").decode()


def captions(graph: Graph) -> dict[str, str]:
    """Return the caption of each node, by name: its kind, and the conditions it waits for."""
    return dict(_nodes(graph, _limits(graph)[1]))


def _nodes(graph: Graph, limits: Sequence[ConcurrencyLimit]) -> list[NodeSpec]:
    """Return (name, caption) of each node. An event graph adds joins and concurrency limits to the kind."""
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


def _limits(graph: Graph) -> tuple[str, Sequence[ConcurrencyLimit]]:
    """Return the limits on all nodes as a text, and the limits on some nodes that are worth showing.

    A limit of one run at a time for every single node is the default, and is left out.
    """
    limits = graph.limits if isinstance(graph, EventGraph) else ()
    said = [f"{limit.at_once} nodes at once" for limit in limits if limit.nodes is None]
    alone = [limit for limit in limits if limit.nodes is not None and len(limit.nodes) == 1 == limit.at_once]
    usual = len(alone) == len(graph.nodes) > 1
    return ", ".join(said), [limit for limit in limits if not (usual and limit in alone)]


def _edges(graph: Graph, said: str) -> list[EdgeSpec]:
    """Return the edges, including those to any node. Limits on all nodes label the edges from the start."""
    edges = [
        (edge.source, edge.target, edge.label or (edge.source == START and said) or None)
        for edge in (*graph.edges, *implied_ends(graph))
    ]
    return [*edges, *((source, ANY_NODE, GOTO) for source in sorted(graph.goto_anywhere))]
