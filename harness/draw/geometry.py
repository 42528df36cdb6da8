"""A graph that has been laid out, as JSON data for the script of report.html, which draws it itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.draw.composition import NAME_LENGTH, Composition, compose
from harness.draw.sketch import EdgeSpec, NodeSpec
from harness.graph.model import END, START
from harness.source.display import clip, printable


def geometry(nodes: Sequence[NodeSpec], edges: Sequence[EdgeSpec]) -> dict[str, Any]:
    """Return {width, height, nodes, edges}, in pixels from the top left corner.

    nodes  {name, text, captions, kind: "start" | "end" | "node", x, y (of the centre), width, height}
    edges  {source, target, label, kind: "" | "back" | "error", line, head (paths of SVG), text: null or
           {rows, x, y, width, height}}
    """
    drawn = compose(nodes, edges)
    return {
        "width": _round(drawn.layout.width),
        "height": _round(drawn.layout.height),
        "nodes": [_node(drawn, name) for name in drawn.boxes],
        "edges": [_edge(drawn, position) for position in range(len(drawn.arrows))],
    }


def _node(drawn: Composition, name: str) -> dict[str, Any]:
    box = drawn.boxes[name]
    rows = [] if name in (START, END) else drawn.caption_rows(name)
    return {
        "name": name,
        "text": clip(printable(name), NAME_LENGTH),
        "captions": [*rows],
        "kind": {START: "start", END: "end"}.get(name, "node"),
        "x": _round(box.x),
        "y": _round(box.y),
        "width": _round(box.width),
        "height": _round(box.height),
    }


def _edge(drawn: Composition, position: int) -> dict[str, Any]:
    arrow = drawn.arrows[position]
    line, head = drawn.line(position)
    label = arrow.texts[0] if arrow.texts else None
    return {
        "source": arrow.source,
        "target": arrow.target,
        "label": label,
        "kind": "error" if label == "on error" else "back" if arrow.back else "",
        "line": line,
        "head": head,
        "text": _text(drawn, position),
    }


def _text(drawn: Composition, position: int) -> Mapping[str, Any] | None:
    box = drawn.labels.get(position)
    if box is None:
        return None
    return {
        "rows": list(drawn.arrows[position].rows),
        "x": _round(box.x),
        "y": _round(box.y),
        "width": _round(box.width),
        "height": _round(box.height),
    }


def _round(value: float) -> float:
    return round(value, 1)
