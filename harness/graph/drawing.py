"""A graph as SVG: one file, styles inline, nothing loaded from elsewhere, no scripts.

Arrow heads are drawn as paths (and not as markers), so that several drawings can stand in one HTML page.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from harness.graph.escaping import clip, columns, printable, xml
from harness.graph.layout import Layout, Place, WayPoint, arrange
from harness.graph.model import END, START
from harness.graph.sketch import EdgeSpec, NodeSpec, Sketch, sketch

Taken = Collection[str | tuple[str, str]]

_FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
_NAME_LENGTH, _LABEL_LENGTH = 30, 34
_NAME_LETTER, _CAPTION_LETTER, _LABEL_LETTER = 8.3, 6.3, 6.6
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


def svg(nodes: Sequence[NodeSpec], edges: Sequence[EdgeSpec], taken: Taken | None = None) -> str:
    """The drawing. With `taken` (names, and (source, target) pairs) all else is drawn faint and dashed.

    Texts that are too long are cut and shown whole as a tooltip.
    """
    graph = sketch(nodes, edges)
    labels = {i: _label_place(label) for i, (_, _, label) in enumerate(graph.edges) if label}
    places = {name: _node_place(graph, name, _loop_room(graph, name, labels)) for name in graph.kinds}
    layout = arrange(graph, places, labels)
    _place_loop_labels(graph, places, labels)
    parts = [_edge(graph, i, layout, places, taken) for i in range(len(graph.edges))]
    parts += [_label(graph.edges[i], place, taken) for i, place in labels.items()]
    colours = _colours(graph)
    parts += [_node(graph, name, place, colours, taken) for name, place in places.items()]
    return "\n".join([_opening(layout), *parts, "</g>", "</svg>"]) + "\n"


def _loop_room(graph: Sketch, name: str, labels: Mapping[int, Place]) -> float:
    """How much room the node's edges to itself want, in pixels."""
    loops = [i for i, (source, target, _) in enumerate(graph.edges) if source == target == name]
    return max((2 * (_LOOP + (labels[i].width if i in labels else 0)) for i in loops), default=0.0)


def _text_width(text: str, letter: float) -> float:
    """About how wide a text of the drawing is in pixels, where an ordinary small letter has `letter`."""
    broad = sum(c in "mwMW@%" for c in text) + sum(c.isupper() for c in text)
    narrow = sum(c in " .,:;!|'`ijl()[]" for c in text)
    return letter * (columns(text) + 0.3 * broad - 0.4 * narrow)


def _place_loop_labels(graph: Sketch, places: Mapping[str, Place], labels: Mapping[int, Place]) -> None:
    """To the right of the loop, one below the other."""
    for name, place in places.items():
        loops = [label for i, label in labels.items() if graph.edges[i][:2] == (name, name)]
        for row, label in enumerate(loops):
            label.x = place.x + (place.width + label.width) / 2 + _LOOP - 4
            label.y = place.y + (row - (len(loops) - 1) / 2) * label.height


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


def _node_place(graph: Sketch, name: str, loop_room: float) -> Place:
    if name in (START, END):
        return Place(20, 20, room=20 + 30 + loop_room)
    name_width = _text_width(clip(printable(name), _NAME_LENGTH), _NAME_LETTER)
    caption_width = _text_width(clip(_caption(graph, name), _NAME_LENGTH), _CAPTION_LETTER)
    width = max(72.0, name_width + 28, caption_width + 28)
    return Place(width, 44, room=width + 30 + loop_room)


def _label_place(label: str) -> Place:
    width = _text_width(clip(printable(label), _LABEL_LENGTH), _LABEL_LETTER) + 10
    return Place(width, 17, room=width + 14)


def _colours(graph: Sketch) -> Mapping[str, tuple[str, str]]:
    kinds = dict.fromkeys(kind for name, kind in graph.kinds.items() if name not in (START, END))
    return {kind: _PALETTE[i % len(_PALETTE)] for i, kind in enumerate(kinds)}


def _node(
    graph: Sketch, name: str, place: Place, colours: Mapping[str, tuple[str, str]], taken: Taken | None
) -> str:
    missed = taken is not None and name not in taken
    if name in (START, END):
        return _end(name, place, _FAINT_LINE if missed else _INK)
    caption = _caption(graph, name)
    border, fill = colours[graph.kinds[name]]
    ink, dashes = _INK, ""
    if missed or name in graph.unreachable:
        border, fill, ink, dashes = _FAINT_LINE, "#ffffff", _FAINT_INK, ' stroke-dasharray="4 3"'
    if graph.kinds[name] == "undeclared":
        border = _ERROR_LINE
    return (
        f"<g><title>{xml(name)} ({xml(caption)})</title>"
        f'<rect x="{place.x - place.width / 2:.1f}" y="{place.y - place.height / 2:.1f}" rx="9"'
        f' width="{place.width:.1f}" height="{place.height:.1f}" fill="{fill}" stroke="{border}"'
        f' stroke-width="1.4"{dashes}/>'
        + _text(place.x, place.y - 1.5, 13, ink, clip(printable(name), _NAME_LENGTH), ' font-weight="600"')
        + _text(place.x, place.y + 13, 10.5, _FAINT_INK, clip(caption, _NAME_LENGTH))
        + "</g>"
    )


def _end(name: str, place: Place, ink: str) -> str:
    ring = f'<circle cx="{place.x:.1f}" cy="{place.y:.1f}"'
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


def _label(edge: EdgeSpec, place: Place, taken: Taken | None) -> str:
    label = edge[2] or ""
    shown = clip(printable(label), _LABEL_LENGTH)
    title = f"<title>{xml(label)}</title>" if shown != label else ""
    ink = _FAINT_INK if _missed(edge, taken) else _INK
    return (
        f'<g>{title}<rect x="{place.x - place.width / 2:.1f}" y="{place.y - place.height / 2:.1f}" rx="4"'
        f' width="{place.width:.1f}" height="{place.height:.1f}" fill="#ffffff" fill-opacity="0.92"/>'
        + _text(place.x, place.y + 4, 11, ink, shown)
        + "</g>"
    )


def _missed(edge: EdgeSpec, taken: Taken | None) -> bool:
    return taken is not None and edge[:2] not in taken


def _edge(
    graph: Sketch, position: int, layout: Layout, places: Mapping[str, Place], taken: Taken | None
) -> str:
    edge = graph.edges[position]
    colour, dashes = _LINE, ""
    if position in graph.back:
        colour = _BACK_LINE
    if edge[2] == "on error":
        colour = _ERROR_LINE
    if _missed(edge, taken):
        colour, dashes = _FAINT_LINE, ' stroke-dasharray="4 3"'
    if edge[0] == edge[1]:
        line, head = _loop(places[edge[0]])
    else:
        line, head = _curve(layout.ways[position])
    title = f"<title>{xml(edge[2])}</title>" if edge[2] else ""
    return (
        f'<g>{title}<path d="{line}" fill="none" stroke="{colour}" stroke-width="1.4"{dashes}/>'
        f'<path d="{head}" fill="{colour}"/></g>'
    )


def _curve(way: Sequence[WayPoint]) -> tuple[str, str]:
    """The line and the arrow head at its end: cubic pieces through the points, with their slopes."""
    x, y, _ = way[-1]
    down = 1 if y > way[0][1] else -1
    line = f"M{way[0][0]:.1f} {way[0][1]:.1f}"
    for (x0, y0, slope0), (x1, y1, slope1) in pairwise([*way[:-1], (x, y - _HEAD * down, 0.0)]):
        third = (y1 - y0) / 3
        line += (
            f" C{x0 + slope0 * third:.1f} {y0 + third:.1f} {x1 - slope1 * third:.1f} {y1 - third:.1f}"
            f" {x1:.1f} {y1:.1f}"
        )
    back = y - (_HEAD + 1) * down
    return line, f"M{x:.1f} {y:.1f} L{x - 3.6:.1f} {back:.1f} L{x + 3.6:.1f} {back:.1f} Z"


def _loop(place: Place) -> tuple[str, str]:
    """The line from the node's right border back to it, and its arrow head."""
    right, top, bottom = place.x + place.width / 2, place.y - 9, place.y + 9
    line = (
        f"M{right:.1f} {top:.1f} C{right + _LOOP:.1f} {top - 8:.1f} {right + _LOOP:.1f} {bottom + 4:.1f}"
        f" {right + _HEAD:.1f} {bottom:.1f}"
    )
    back = right + _HEAD + 1
    return line, f"M{right:.1f} {bottom:.1f} L{back:.1f} {bottom - 3.6:.1f} L{back:.1f} {bottom + 3.6:.1f} Z"
