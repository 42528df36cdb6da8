"""Pictures of a graph: a list for the terminal, a mermaid flowchart, an SVG drawing.

All functions take nodes as (name, kind), edges as (source, target, label or None), and optional data edges.
`__start__` and `__end__` are the graph's ends. Names and labels may be any text; they are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from harness.draw.sketch import EdgeSpec, NodeSpec, Sketch, edges_of, nodes_of, positions_by_source, sketch
from harness.draw.svg import DATA_LINE, mermaid_label, svg
from harness.errors import FormatError, Problem
from harness.graph.model import END, START, DataEdge, Graph
from harness.graph.names import flattened
from harness.source.display import clip, columns, printable

__all__ = ["mermaid", "svg", "text"]


_CONDITION_LENGTH = 60
_MERMAID_LENGTH = 120


def text(nodes: Sequence[NodeSpec], edges: Sequence[EdgeSpec], data: Sequence[DataEdge] | None = None) -> str:
    """Return a paragraph for each node, from start to end: its name, its kind and its outgoing edges.

    Back edges and unreachable nodes are marked. Data edges come last. `data=None` shows none; an empty `data`
    adds the line "no data edges".
    """
    graph = sketch(nodes, edges, data or ())
    outgoing = positions_by_source(graph.edges)
    paragraphs = [
        _paragraph(graph, name, outgoing.get(name, ()))
        for name in graph.kinds
        if name != END or END in outgoing
    ]
    if data is not None:
        paragraphs.append(_data(data))
    return "\n\n".join(paragraphs) + "\n"


def _paragraph(graph: Sketch, name: str, outgoing: Sequence[int]) -> str:
    head = _shown(name)
    if name not in (START, END):
        head += f"  [{printable(graph.kinds[name])}]"
    if name in graph.unreachable:
        head += "  (unreachable)"
    return "\n".join(
        [head, *(_outgoing_line(graph, position, position == outgoing[-1]) for position in outgoing)]
    )


def _outgoing_line(graph: Sketch, position: int, last: bool) -> str:
    _, target, label = graph.edges[position]
    branch = "└─" if last else "├─"
    condition = f" {clip(printable(label), _CONDITION_LENGTH)} ─" if label else ""
    back = "  (back)" if position in graph.back else ""
    return f"{branch}{condition}▶ {_shown(target)}{back}"


def _data(data: Sequence[DataEdge]) -> str:
    if not data:
        return "no data edges"
    unique = dict.fromkeys((edge.source, edge.output, edge.target, edge.input) for edge in data)
    ends = [(_port(source, output), _port(target, into)) for source, output, target, into in unique]
    width = max(columns(start) for start, _ in ends)
    return "\n".join(
        ["data:", *(f"  {start}{' ' * (width - columns(start))} → {end}" for start, end in ends)]
    )


def _port(node: str, value: str) -> str:
    """Return `node.value` for an input or an output of a node."""
    return f"{clip(_shown(node), _CONDITION_LENGTH)}.{clip(printable(value), _CONDITION_LENGTH)}"


def _shown(name: str) -> str:
    return {START: "(start)", END: "(end)"}.get(name) or printable(name) or '""'


def mermaid(nodes: Sequence[NodeSpec], edges: Sequence[EdgeSpec], data: Sequence[DataEdge] = ()) -> str:
    """Return a mermaid flowchart. Back edges are dotted, unreachable nodes have a dashed border.

    Data edges are dotted and green; those between the same two nodes are one arrow with a line for each.
    """
    graph = sketch(nodes, edges, data)
    ids = {name: f"n{i}" for i, name in enumerate(graph.kinds)}
    lines = ["flowchart TD"]
    lines += [f"    {ids[name]}{_mermaid_node(name, kind)}" for name, kind in graph.kinds.items()]
    for position, (source, target, label) in enumerate(graph.edges):
        arrow = "-.->" if position in graph.back else "-->"
        condition = f'|"{mermaid_label(clip(label, _MERMAID_LENGTH))}"|' if label else ""
        lines.append(f"    {ids[source]} {arrow}{condition} {ids[target]}")
    for source, target, values in graph.data:
        label = "<br/>".join(mermaid_label(clip(value, _MERMAID_LENGTH)) for value in values)
        lines.append(f'    {ids[source]} -.->|"{label or " "}"| {ids[target]}')
    if graph.data:
        positions = ",".join(str(i) for i in range(len(graph.edges), len(graph.arrows)))
        lines.append(f"    linkStyle {positions} stroke:{DATA_LINE}")
    if graph.unreachable:
        lines.append("    classDef unreachable stroke-dasharray: 4 3")
        lines += [f"    class {ids[name]} unreachable" for name in graph.kinds if name in graph.unreachable]
    return "\n".join(lines) + "\n"


def _mermaid_node(name: str, kind: str) -> str:
    if name in (START, END):
        return f'(["{name.strip("_")}"])'
    shown, caption = (mermaid_label(clip(part, _MERMAID_LENGTH)) for part in (name, kind))
    return f'("{shown or " "}<br/><small>{caption}</small>")'


Form = Literal["text", "mermaid", "svg"]

MAX_DRAWN: Final = 2000
"""The most data edges in an SVG. More would take too long to lay out and be unreadable."""


def picture(graph: Graph, form: Form, *, data: bool = False) -> str:
    """Return the graph in this format. With `data`, it also shows which output feeds which input.

    Raises:
        FormatError: there are more data edges than an SVG can show (code `too-much-to-draw`).
    """
    whole = flattened(graph)
    nodes, edges = nodes_of(whole), edges_of(whole)
    data_edges = graph.data_edges() if data else ()
    if form == "text":
        return text(nodes, edges, data_edges if data else None)
    if form == "mermaid":
        return mermaid(nodes, edges, data_edges)
    if len(data_edges) > MAX_DRAWN:
        message = f"an SVG shows at most {MAX_DRAWN:,} data edges, and '{graph.name}' has {len(data_edges):,}"
        hint = "--format text or mermaid, or no --data"
        raise FormatError(Problem("too-much-to-draw", message, hint=hint))
    # Character references are correct whatever the encoding of standard output.
    return svg(nodes, edges, data=data_edges).encode("ascii", "xmlcharrefreplace").decode()
