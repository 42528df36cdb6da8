"""Pictures of a graph: a list for the terminal, a mermaid flowchart, an SVG drawing.

All take nodes as (name, kind) and edges as (source, target, label or None), with `__start__` and `__end__`
as the graph's ends. Names and labels may be any text; they are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.graph.drawing import svg
from harness.graph.escaping import clip, mermaid_label, printable
from harness.graph.model import END, START
from harness.graph.sketch import EdgeSpec, NodeSpec, Sketch, sketch

__all__ = ["mermaid", "svg", "text"]

_CONDITION_LENGTH = 60
_MERMAID_LENGTH = 120


def text(nodes: Sequence[NodeSpec], edges: Sequence[EdgeSpec]) -> str:
    """Each node with its kind and the ways that leave it, from start to end; one paragraph a node.

    Ways back and nodes that nothing leads to are marked.
    """
    graph = sketch(nodes, edges)
    return (
        "\n\n".join(_paragraph(graph, name) for name in graph.kinds if name != END or _ways(graph, END))
        + "\n"
    )


def _ways(graph: Sketch, name: str) -> list[int]:
    return [position for position, edge in enumerate(graph.edges) if edge[0] == name]


def _paragraph(graph: Sketch, name: str) -> str:
    head = _shown(name)
    if name not in (START, END):
        head += f"  [{printable(graph.kinds[name])}]"
    if name in graph.unreachable:
        head += "  (unreachable)"
    ways = _ways(graph, name)
    return "\n".join([head, *(_way(graph, position, position == ways[-1]) for position in ways)])


def _way(graph: Sketch, position: int, last: bool) -> str:
    _, target, label = graph.edges[position]
    branch = "└─" if last else "├─"
    condition = f" {clip(printable(label), _CONDITION_LENGTH)} ─" if label else ""
    back = "  (back)" if position in graph.back else ""
    return f"{branch}{condition}▶ {_shown(target)}{back}"


def _shown(name: str) -> str:
    return {START: "(start)", END: "(end)"}.get(name) or printable(name) or '""'


def mermaid(nodes: Sequence[NodeSpec], edges: Sequence[EdgeSpec]) -> str:
    """A mermaid flowchart; ways back are dotted, nodes that nothing leads to have a dashed border."""
    graph = sketch(nodes, edges)
    ids = {name: f"n{i}" for i, name in enumerate(graph.kinds)}
    lines = ["flowchart TD"]
    lines += [f"    {ids[name]}{_mermaid_node(name, kind)}" for name, kind in graph.kinds.items()]
    for position, (source, target, label) in enumerate(graph.edges):
        arrow = "-.->" if position in graph.back else "-->"
        condition = f'|"{mermaid_label(clip(label, _MERMAID_LENGTH))}"|' if label else ""
        lines.append(f"    {ids[source]} {arrow}{condition} {ids[target]}")
    if graph.unreachable:
        lines.append("    classDef unreachable stroke-dasharray: 4 3")
        lines += [f"    class {ids[name]} unreachable" for name in graph.kinds if name in graph.unreachable]
    return "\n".join(lines) + "\n"


def _mermaid_node(name: str, kind: str) -> str:
    if name in (START, END):
        return f'(["{name.strip("_")}"])'
    shown, caption = (mermaid_label(clip(part, _MERMAID_LENGTH)) for part in (name, kind))
    return f'("{shown or " "}<br/><small>{caption}</small>")'
