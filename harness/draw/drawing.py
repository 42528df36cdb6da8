"""A graph as SVG: one file, styles inline, nothing loaded from elsewhere, no scripts.

Arrow heads are drawn as paths (and not as markers), so that several drawings can stand in one HTML page.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import copysign, isinf
from textwrap import wrap

from harness.draw.escaping import xml
from harness.draw.layout import Box, Layout, Waypoint, arrange
from harness.draw.sketch import CAPTION, EdgeSpec, NodeSpec, Sketch, sketch
from harness.graph.model import END, START, DataEdge
from harness.source.display import clip, columns, printable

Taken = Collection[str | tuple[str, str]]

_FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
_NAME_LENGTH, _LABEL_LENGTH = 30, 34
_NAME_LETTER, _CAPTION_LETTER, _LABEL_LETTER = 8.3, 6.3, 6.6
_LABEL_ROW, _MOST_ROWS = 13, 8
_CAPTION_ROW, _MOST_CAPTIONS = 13, 4
_MARGIN = 14.0
_LOOP, _HEAD = 26.0, 6.0
_PALETTE = (  # border and fill, given to kinds in the order they appear
    ("#4c6ef5", "#eef2ff"),
    ("#0f8a7c", "#e6f7f4"),
    ("#c2701c", "#fdf3e6"),
    ("#9c4dcc", "#f7edfc"),
    ("#2b7fb8", "#e8f4fb"),
    ("#b8476b", "#fceef3"),
    ("#5f8a1f", "#f1f7e5"),
    ("#6b7280", "#f3f4f6"),
)
_INK, _FAINT_INK, _LINE, _FAINT_LINE = "#1f2937", "#6b7280", "#7b8794", "#c5ccd4"
_BACK_LINE, _ERROR_LINE = "#8b6fd0", "#cf4a4a"
DATA_LINE, _DATA_INK = "#2f9e8f", "#17695e"


@dataclass(frozen=True)
class _Arrow:
    """An edge, or the data from one node to another, and what is written on it line by line."""

    source: str
    target: str
    texts: Sequence[str]
    untaken: bool
    back: bool = False
    data: bool = False

    @property
    def rows(self) -> Sequence[str]:
        """The lines as they are drawn: not too many, and none too long."""
        more = len(self.texts) - _MOST_ROWS + 1
        cut = [*self.texts[: _MOST_ROWS - 1], f"… {more} more"] if more > 1 else self.texts
        return [clip(printable(text), _LABEL_LENGTH) for text in cut]


def svg(
    nodes: Sequence[NodeSpec],
    edges: Sequence[EdgeSpec],
    taken: Taken | None = None,
    data: Sequence[DataEdge] = (),
) -> str:
    """The drawing. With `taken` (names, and (source, target) pairs) all else is drawn faint and dashed.

    Data edges are thin, dashed and green. Texts that are too long are cut and shown whole as a tooltip.
    """
    graph = sketch(nodes, edges, data)
    arrows = _arrows(graph, taken)
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
    parts = [_line(arrow, boxes[arrow.source], layout.paths.get(i)) for i, arrow in enumerate(arrows)]
    parts += [_label(arrows[i], box) for i, box in labels.items()]
    colours = _colours(graph)
    parts += [_node(graph, name, box, colours, taken) for name, box in boxes.items()]
    return "\n".join([_opening(layout), *parts, "</g>", "</svg>"]) + "\n"


def _arrows(graph: Sketch, taken: Taken | None) -> list[_Arrow]:
    """In the order of `graph.arrows`."""
    edges = [
        _Arrow(
            source,
            target,
            texts=(label,) if label else (),
            untaken=taken is not None and (source, target) not in taken,
            back=position in graph.back,
        )
        for position, (source, target, label) in enumerate(graph.edges)
    ]
    data = [
        _Arrow(
            source,
            target,
            texts=values,
            untaken=taken is not None and not (source in taken and target in taken),
            data=True,
        )
        for source, target, values in graph.data
    ]
    return edges + data


def _sides(arrows: Sequence[_Arrow], loops: Sequence[int], labels: Mapping[int, Box]) -> list[list[Box]]:
    """The labels of a node's edges to itself: to its right those of control, to its left those of data."""
    return [[labels[i] for i in loops if i in labels and arrows[i].data == data] for data in (False, True)]


def _text_width(text: str, letter: float) -> float:
    """About how wide a text of the drawing is in pixels, where an ordinary small letter has `letter`."""
    broad = sum(c in "mwMW@%" for c in text) + sum(c.isupper() for c in text)
    narrow = sum(c in " .,:;!|'`ijl()[]" for c in text)
    return letter * (columns(text) + 0.3 * broad - 0.4 * narrow)


def _position_loop_labels(node: Box, right: Sequence[Box], left: Sequence[Box]) -> None:
    """Place the labels of loops beside their node, one below the other."""
    for side, labels in ((1, right), (-1, left)):
        for row, label in enumerate(labels):
            label.x = node.x + side * ((node.width + label.width) / 2 + _LOOP - 4)
            label.y = node.y + (row - (len(labels) - 1) / 2) * label.height


def _opening(layout: Layout) -> str:
    width, height = (f"{size + 2 * _MARGIN:.0f}" for size in (layout.width, layout.height))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" role="img" aria-label="graph"'
        f' style="max-width:100%;height:auto;font-family:{_FONT}">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>\n'
        f'<g transform="translate({_MARGIN:.0f} {_MARGIN:.0f})">'
    )


def _caption(graph: Sketch, name: str) -> str:
    kind = printable(graph.kinds[name])
    return f"{kind} · unreachable" if name in graph.unreachable else kind


def _caption_rows(graph: Sketch, name: str) -> Sequence[str]:
    """The kind, and below it what the node waits for; not too many lines, and none too long."""
    kind, *more = _caption(graph, name).split(CAPTION)
    if more and name in graph.unreachable:
        kind = CAPTION.join([kind, more.pop()])
    rows = [row for part in more for row in wrap(part, _NAME_LENGTH)]
    cut = [*rows[: _MOST_CAPTIONS - 1], "…"] if len(rows) > _MOST_CAPTIONS else rows
    return [clip(row, _NAME_LENGTH) for row in (kind, *cut)]


def _node_box(graph: Sketch, name: str, sides: Sequence[Sequence[Box]]) -> Box:
    """With room for the loops, on both sides as much as the wider one wants."""
    widest = max((label.width for side in sides for label in side), default=0.0)
    room = 30 + (2 * (_LOOP + widest) if sides else 0)
    headroom = max((sum(label.height for label in side) for side in sides), default=0.0)
    if name in (START, END):
        return Box(20, 20, room=20 + room, headroom=headroom)
    name_width = _text_width(clip(printable(name), _NAME_LENGTH), _NAME_LETTER)
    rows = _caption_rows(graph, name)
    caption_width = max(_text_width(row, _CAPTION_LETTER) for row in rows)
    width = max(72.0, name_width + 28, caption_width + 28)
    return Box(width, 44 + _CAPTION_ROW * (len(rows) - 1), room=width + room, headroom=headroom)


def _label_box(arrow: _Arrow) -> Box:
    width = max(_text_width(row, _LABEL_LETTER) for row in arrow.rows) + 10
    return Box(width, 4 + _LABEL_ROW * len(arrow.rows), room=width + 14)


def _colours(graph: Sketch) -> Mapping[str, tuple[str, str]]:
    captions = [kind for name, kind in graph.kinds.items() if name not in (START, END)]
    kinds = list(dict.fromkeys(caption.partition(CAPTION)[0] for caption in captions))
    return {
        caption: _PALETTE[kinds.index(caption.partition(CAPTION)[0]) % len(_PALETTE)] for caption in captions
    }


def _node(
    graph: Sketch, name: str, box: Box, colours: Mapping[str, tuple[str, str]], taken: Taken | None
) -> str:
    untaken = taken is not None and name not in taken
    if name in (START, END):
        return _end(name, box, _FAINT_LINE if untaken else _INK)
    caption = _caption(graph, name)
    border, fill = colours[graph.kinds[name]]
    ink, dashes = _INK, ""
    if untaken or name in graph.unreachable:
        border, fill, ink, dashes = _FAINT_LINE, "#ffffff", _FAINT_INK, ' stroke-dasharray="4 3"'
    if graph.kinds[name] == "undeclared":
        border = _ERROR_LINE
    rows = [*enumerate(_caption_rows(graph, name))]
    middle = box.y - _CAPTION_ROW * (len(rows) - 1) / 2
    return (
        f"<g><title>{xml(name)} ({xml(caption)})</title>"
        f'<rect x="{box.x - box.width / 2:.1f}" y="{box.y - box.height / 2:.1f}" rx="9"'
        f' width="{box.width:.1f}" height="{box.height:.1f}" fill="{fill}" stroke="{border}"'
        f' stroke-width="1.4"{dashes}/>'
        + _text(box.x, middle - 1.5, 13, ink, clip(printable(name), _NAME_LENGTH), ' font-weight="600"')
        + "".join(_text(box.x, middle + 13 + i * _CAPTION_ROW, 10.5, _FAINT_INK, row) for i, row in rows)
        + "</g>"
    )


def _end(name: str, box: Box, ink: str) -> str:
    ring = f'<circle cx="{box.x:.1f}" cy="{box.y:.1f}"'
    if name == START:
        return f'<g><title>start</title>{ring} r="8" fill="{ink}"/></g>'
    return (
        f'<g><title>end</title>{ring} r="9" fill="#ffffff" stroke="{ink}" stroke-width="1.6"/>'
        f'{ring} r="5" fill="{ink}"/></g>'
    )


def _text(x: float, y: float, size: float, ink: str, content: str, more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{ink}" text-anchor="middle"{more}>'
        f"{xml(content)}</text>"
    )


def _label(arrow: _Arrow, box: Box) -> str:
    title = _title(arrow) if list(arrow.rows) != list(arrow.texts) else ""
    ink = _FAINT_INK if arrow.untaken else _DATA_INK if arrow.data else _INK
    baseline = box.y - box.height / 2 + 12.5
    return (
        f'<g>{title}<rect x="{box.x - box.width / 2:.1f}" y="{box.y - box.height / 2:.1f}" rx="4"'
        f' width="{box.width:.1f}" height="{box.height:.1f}" fill="#ffffff" fill-opacity="0.92"/>'
        + "".join(_text(box.x, baseline + i * _LABEL_ROW, 11, ink, row) for i, row in enumerate(arrow.rows))
        + "</g>"
    )


def _title(arrow: _Arrow) -> str:
    return f"<title>{xml(', '.join(arrow.texts))}</title>" if arrow.texts else ""


def _line(arrow: _Arrow, source: Box, path: Sequence[Waypoint] | None) -> str:
    """An arrow without a path is a loop."""
    colour, width, dashes = _LINE, 1.4, ""
    if arrow.back:
        colour = _BACK_LINE
    if arrow.texts == ("on error",):
        colour = _ERROR_LINE
    if arrow.data:
        colour, width, dashes = DATA_LINE, 1.0, ' stroke-dasharray="5 3"'
    if arrow.untaken:
        colour, dashes = _FAINT_LINE, ' stroke-dasharray="4 3"'
    line, head = _curve(path) if path else _loop(source, -1 if arrow.data else 1)
    return (
        f'<g>{_title(arrow)}<path d="{line}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes}/>'
        f'<path d="{head}" fill="{colour}"/></g>'
    )


def _curve(path: Sequence[Waypoint]) -> tuple[str, str]:
    """The line and the arrow head at its end: cubic pieces through the points, with their slopes."""
    x, y, _ = path[-1]
    down = 1 if y > path[-2][1] else -1
    line = f"M{path[0][0]:.1f} {path[0][1]:.1f}"
    for (x0, y0, slope0), (x1, y1, slope1) in pairwise([*path[:-1], (x, y - _HEAD * down, 0.0)]):
        leaving, arriving = _lean(x1 - x0, y1 - y0, slope0), _lean(x1 - x0, y1 - y0, slope1)
        line += (
            f" C{x0 + leaving[0]:.1f} {y0 + leaving[1]:.1f} {x1 - arriving[0]:.1f} {y1 - arriving[1]:.1f}"
            f" {x1:.1f} {y1:.1f}"
        )
    back = y - (_HEAD + 1) * down
    return line, f"M{x:.1f} {y:.1f} L{x - 3.6:.1f} {back:.1f} L{x + 3.6:.1f} {back:.1f} Z"


def _lean(dx: float, dy: float, slope: float) -> tuple[float, float]:
    """How far from the end of a cubic piece its control point is; level at the top of an arch."""
    return (copysign(dx / 2, slope), 0.0) if isinf(slope) else (slope * dy / 3, dy / 3)


def _loop(box: Box, side: int) -> tuple[str, str]:
    """The line from the node's right (1) or left (-1) border back to it, and its arrow head."""
    border, top, bottom = box.x + side * box.width / 2, box.y - 9, box.y + 9
    out = border + side * _LOOP
    line = (
        f"M{border:.1f} {top:.1f} C{out:.1f} {top - 8:.1f} {out:.1f} {bottom + 4:.1f}"
        f" {border + side * _HEAD:.1f} {bottom:.1f}"
    )
    back = border + side * (_HEAD + 1)
    return line, f"M{border:.1f} {bottom:.1f} L{back:.1f} {bottom - 3.6:.1f} L{back:.1f} {bottom + 3.6:.1f} Z"
