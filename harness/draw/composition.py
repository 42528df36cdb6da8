"""The positions and sizes of everything in a drawing of a graph: boxes, labels and edge lines, in pixels.

`compose` prepares the graph (`harness.draw.sketch`), measures its texts, lays it out (`harness.draw.layout`) and
returns a `Composition`, which `harness.draw.svg` reads. `geometry` returns it as data, for report.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import copysign, isinf
from textwrap import wrap
from typing import Any

from harness.draw.layout import Box, Layout, Waypoint, arrange
from harness.draw.sketch import CAPTION, EdgeSpec, NodeSpec, Sketch, sketch
from harness.graph.model import END, ON_ERROR, START, DataEdge
from harness.source.display import clip, columns, printable

NAME_LENGTH = 30
LABEL_ROW = CAPTION_ROW = 13
_LABEL_LENGTH, _MAX_ROWS, _MAX_CAPTIONS = 34, 8, 4
_NAME_LETTER, _CAPTION_LETTER, _LABEL_LETTER = 8.3, 6.3, 6.6
_LOOP, _HEAD = 26.0, 6.0


@dataclass(frozen=True)
class Arrow:
    """An edge or a group of data edges between two nodes, with the lines of its label."""

    source: str
    target: str
    texts: Sequence[str]
    back: bool = False
    data: bool = False

    @property
    def rows(self) -> Sequence[str]:
        """The lines of the label as they are drawn: at most `_MAX_ROWS`, each cut to `_LABEL_LENGTH` characters."""
        more = len(self.texts) - _MAX_ROWS + 1
        cut = [*self.texts[: _MAX_ROWS - 1], f"… {more} more"] if more > 1 else self.texts
        return [clip(printable(text), _LABEL_LENGTH) for text in cut]


@dataclass(frozen=True)
class Composition:
    """A graph that has been laid out.

    graph   the prepared graph
    arrows  its edges, followed by its data edges
    boxes   the box of each node, by name; its `x` and `y` are the centre
    labels  the box of each label, by the position of its arrow in `arrows`
    layout  the paths of the arrows and the total size
    """

    graph: Sketch
    arrows: Sequence[Arrow]
    boxes: Mapping[str, Box]
    labels: Mapping[int, Box]
    layout: Layout

    def line(self, position: int) -> tuple[str, str]:
        """Return the SVG paths of the arrow's line and of its head. An arrow without a path is a self-loop."""
        arrow, path = self.arrows[position], self.layout.paths.get(position)
        return _curve(path) if path else _loop(self.boxes[arrow.source], -1 if arrow.data else 1)


def compose(
    nodes: Sequence[NodeSpec], edges: Sequence[EdgeSpec], data: Sequence[DataEdge] = ()
) -> Composition:
    """Lay out a graph from top to bottom."""
    graph = sketch(nodes, edges, data)
    arrows = _arrows(graph)
    labels = {i: _label_box(arrow) for i, arrow in enumerate(arrows) if arrow.texts}
    loops: dict[str, list[int]] = {}
    for i, arrow in enumerate(arrows):
        if arrow.source == arrow.target:
            loops.setdefault(arrow.source, []).append(i)
    beside = {name: _sides(arrows, own, labels) for name, own in loops.items()}
    boxes = {name: _node_box(graph, name, beside.get(name, ())) for name in graph.kinds}
    layout = arrange(graph, boxes, labels)
    for name, sides in beside.items():
        _position_loop_labels(boxes[name], *sides)
    return Composition(graph, arrows, boxes, labels, layout)


def _arrows(graph: Sketch) -> list[Arrow]:
    """Return one arrow for each entry of `graph.arrows`, in the same order."""
    edges = [
        Arrow(source, target, texts=(label,) if label else (), back=position in graph.back)
        for position, (source, target, label) in enumerate(graph.edges)
    ]
    return edges + [Arrow(source, target, texts=values, data=True) for source, target, values in graph.data]


def _sides(arrows: Sequence[Arrow], loops: Sequence[int], labels: Mapping[int, Box]) -> list[list[Box]]:
    """Return the labels of a node's self-loops: those of control edges (drawn on the right), then of data (left)."""
    return [[labels[i] for i in loops if i in labels and arrows[i].data == data] for data in (False, True)]


def _text_width(text: str, letter: float) -> float:
    """Estimate the width of a text in pixels, where an average lower-case letter is `letter` wide."""
    broad = sum(c in "mwMW@%" for c in text) + sum(c.isupper() for c in text)
    narrow = sum(c in " .,:;!|'`ijl()[]" for c in text)
    return letter * (columns(text) + 0.3 * broad - 0.4 * narrow)


def _position_loop_labels(node: Box, right: Sequence[Box], left: Sequence[Box]) -> None:
    """Place the labels of self-loops beside their node, one below the other."""
    for side, labels in ((1, right), (-1, left)):
        for row, label in enumerate(labels):
            label.x = node.x + side * ((node.width + label.width) / 2 + _LOOP - 4)
            label.y = node.y + (row - (len(labels) - 1) / 2) * label.height


def caption(graph: Sketch, name: str) -> str:
    """Return the caption below the name of a node: its kind, and the conditions it waits for."""
    kind = printable(graph.kinds[name])
    return f"{kind} · unreachable" if name in graph.unreachable else kind


def caption_rows(graph: Sketch, name: str) -> Sequence[str]:
    """Return the caption as it is drawn: at most `_MAX_CAPTIONS` lines after the kind, each cut to fit."""
    kind, *more = caption(graph, name).split(CAPTION)
    if more and name in graph.unreachable:
        kind = CAPTION.join([kind, more.pop()])
    rows = [row for part in more for row in wrap(part, NAME_LENGTH)]
    cut = [*rows[: _MAX_CAPTIONS - 1], "…"] if len(rows) > _MAX_CAPTIONS else rows
    return [clip(row, NAME_LENGTH) for row in (kind, *cut)]


def _node_box(graph: Sketch, name: str, sides: Sequence[Sequence[Box]]) -> Box:
    """Return the box of a node. Both sides get the room that the wider side needs for its self-loops."""
    widest = max((label.width for side in sides for label in side), default=0.0)
    room = 30 + (2 * (_LOOP + widest) if sides else 0)
    headroom = max((sum(label.height for label in side) for side in sides), default=0.0)
    if name in (START, END):
        return Box(20, 20, room=20 + room, headroom=headroom)
    name_width = _text_width(clip(printable(name), NAME_LENGTH), _NAME_LETTER)
    rows = caption_rows(graph, name)
    caption_width = max(_text_width(row, _CAPTION_LETTER) for row in rows)
    width = max(72.0, name_width + 28, caption_width + 28)
    return Box(width, 44 + CAPTION_ROW * (len(rows) - 1), room=width + room, headroom=headroom)


def _label_box(arrow: Arrow) -> Box:
    width = max(_text_width(row, _LABEL_LETTER) for row in arrow.rows) + 10
    return Box(width, 4 + LABEL_ROW * len(arrow.rows), room=width + 14)


def _curve(path: Sequence[Waypoint]) -> tuple[str, str]:
    """Return a smooth line of cubic Bézier segments through the points with their slopes, and its arrow head."""
    x, y, _ = path[-1]
    down = 1 if y > path[-2][1] else -1
    line = f"M{path[0][0]:.1f} {path[0][1]:.1f}"
    for (x0, y0, slope0), (x1, y1, slope1) in pairwise([*path[:-1], (x, y - _HEAD * down, 0.0)]):
        leaving, arriving = _handle(x1 - x0, y1 - y0, slope0), _handle(x1 - x0, y1 - y0, slope1)
        line += (
            f" C{x0 + leaving[0]:.1f} {y0 + leaving[1]:.1f} {x1 - arriving[0]:.1f} {y1 - arriving[1]:.1f}"
            f" {x1:.1f} {y1:.1f}"
        )
    back = y - (_HEAD + 1) * down
    return line, f"M{x:.1f} {y:.1f} L{x - 3.6:.1f} {back:.1f} L{x + 3.6:.1f} {back:.1f} Z"


def _handle(dx: float, dy: float, slope: float) -> tuple[float, float]:
    """Return the offset of a Bézier control point from the end of its segment; horizontal at the top of an arch.

    It stays within the width of the segment, and so does the curve: the top of an arch may be beside both its ends.
    """
    across, along = (copysign(dx / 2, slope), 0.0) if isinf(slope) else (slope * dy / 3, dy / 3)
    return max(min(dx, 0.0), min(max(dx, 0.0), across)), along


def _loop(box: Box, side: int) -> tuple[str, str]:
    """Return a line from the node's right (1) or left (-1) border back to it, and its arrow head."""
    border, top, bottom = box.x + side * box.width / 2, box.y - 9, box.y + 9
    out = border + side * _LOOP
    line = (
        f"M{border:.1f} {top:.1f} C{out:.1f} {top - 8:.1f} {out:.1f} {bottom + 4:.1f}"
        f" {border + side * _HEAD:.1f} {bottom:.1f}"
    )
    back = border + side * (_HEAD + 1)
    return line, f"M{border:.1f} {bottom:.1f} L{back:.1f} {bottom - 3.6:.1f} L{back:.1f} {bottom + 3.6:.1f} Z"


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
    rows = [] if name in (START, END) else caption_rows(drawn.graph, name)
    return {
        "name": name,
        "text": clip(printable(name), NAME_LENGTH),
        "captions": [*rows],
        "kind": {START: "start", END: "end"}.get(name, "node"),
        **_place(box),
    }


def _edge(drawn: Composition, position: int) -> dict[str, Any]:
    arrow = drawn.arrows[position]
    line, head = drawn.line(position)
    label = arrow.texts[0] if arrow.texts else None
    return {
        "source": arrow.source,
        "target": arrow.target,
        "label": label,
        "kind": "error" if label == ON_ERROR else "back" if arrow.back else "",
        "line": line,
        "head": head,
        "text": _text(drawn, position),
    }


def _text(drawn: Composition, position: int) -> Mapping[str, Any] | None:
    box = drawn.labels.get(position)
    return None if box is None else {"rows": list(drawn.arrows[position].rows), **_place(box)}


def _place(box: Box) -> dict[str, float]:
    return {name: _round(getattr(box, name)) for name in ("x", "y", "width", "height")}


def _round(value: float) -> float:
    return round(value, 1)
