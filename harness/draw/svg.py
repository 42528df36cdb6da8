"""Draw a graph as one SVG element with inline styles: no scripts, and nothing loaded from elsewhere.

Arrow heads are paths rather than markers: marker ids would clash when several drawings are in one HTML page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness.draw.composition import (
    CAPTION_ROW,
    LABEL_ROW,
    NAME_LENGTH,
    Arrow,
    Composition,
    caption,
    caption_rows,
    compose,
)
from harness.draw.layout import Box, Layout
from harness.draw.sketch import CAPTION, EdgeSpec, NodeSpec, Sketch
from harness.graph.model import END, ON_ERROR, START, DataEdge
from harness.source.display import clip, printable

_MERMAID_SPECIAL = re.compile(r"[!-/:-@\[-`{-~]")
_BETWEEN_WORDS = re.compile(r"(?<=[A-Za-z0-9])[_.\-](?=[A-Za-z0-9])")


def xml(text: str) -> str:
    """Escape text for an XML or HTML element or quoted attribute. The result is always one line."""
    safe = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace('"', "&quot;").replace("'", "&#39;")


def mermaid_label(text: str) -> str:
    """Escape text for a quoted mermaid label: punctuation becomes entity codes such as `#34;`.

    `_`, `.` and `-` inside a word stay, so that names remain readable in the source.
    Source: https://mermaid.js.org/syntax/flowchart.html, "Entity codes to escape characters".
    """
    safe = printable(text)
    plain = {match.start() for match in _BETWEEN_WORDS.finditer(safe)}
    coded = _MERMAID_SPECIAL.sub(lambda m: m[0] if m.start() in plain else f"#{ord(m[0])};", safe)
    return coded.replace("#36;#36;", "#36;#8203;#36;")  # two adjacent dollar signs would begin a formula


_FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
_MARGIN = 14.0
_PALETTE = (  # (border, fill) of each node kind, in order of appearance
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


def svg(nodes: Sequence[NodeSpec], edges: Sequence[EdgeSpec], data: Sequence[DataEdge] = ()) -> str:
    """Return the drawing. Data edges are thin, dashed and green. Long texts are cut; a tooltip has the whole text."""
    drawn = compose(nodes, edges, data)
    parts = [_line(drawn, i, arrow) for i, arrow in enumerate(drawn.arrows)]
    parts += [_label(drawn.arrows[i], box) for i, box in drawn.labels.items()]
    colours = _colours(drawn.graph)
    parts += [_node(drawn, name, box, colours) for name, box in drawn.boxes.items()]
    return "\n".join([_opening(drawn.layout), *parts, "</g>", "</svg>"]) + "\n"


def _opening(layout: Layout) -> str:
    width, height = (f"{size + 2 * _MARGIN:.0f}" for size in (layout.width, layout.height))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" role="img" aria-label="graph"'
        f' style="max-width:100%;height:auto;font-family:{_FONT}">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>\n'
        f'<g transform="translate({_MARGIN:.0f} {_MARGIN:.0f})">'
    )


def _colours(graph: Sketch) -> Mapping[str, tuple[str, str]]:
    captions = [kind for name, kind in graph.kinds.items() if name not in (START, END)]
    kinds = list(dict.fromkeys(caption.partition(CAPTION)[0] for caption in captions))
    return {
        caption: _PALETTE[kinds.index(caption.partition(CAPTION)[0]) % len(_PALETTE)] for caption in captions
    }


def _node(drawn: Composition, name: str, box: Box, colours: Mapping[str, tuple[str, str]]) -> str:
    graph = drawn.graph
    if name in (START, END):
        return _end(name, box)
    border, fill = colours[graph.kinds[name]]
    ink, dashes = _INK, ""
    if name in graph.unreachable:
        border, fill, ink, dashes = _FAINT_LINE, "#ffffff", _FAINT_INK, ' stroke-dasharray="4 3"'
    if graph.kinds[name] == "undeclared":
        border = _ERROR_LINE
    rows = [*enumerate(caption_rows(graph, name))]
    middle = box.y - CAPTION_ROW * (len(rows) - 1) / 2
    return (
        f"<g><title>{xml(name)} ({xml(caption(graph, name))})</title>"
        f'<rect x="{box.x - box.width / 2:.1f}" y="{box.y - box.height / 2:.1f}" rx="9"'
        f' width="{box.width:.1f}" height="{box.height:.1f}" fill="{fill}" stroke="{border}"'
        f' stroke-width="1.4"{dashes}/>'
        + _text(box.x, middle - 1.5, 13, ink, clip(printable(name), NAME_LENGTH), ' font-weight="600"')
        + "".join(_text(box.x, middle + 13 + i * CAPTION_ROW, 10.5, _FAINT_INK, row) for i, row in rows)
        + "</g>"
    )


def _end(name: str, box: Box) -> str:
    ring = f'<circle cx="{box.x:.1f}" cy="{box.y:.1f}"'
    if name == START:
        return f'<g><title>start</title>{ring} r="8" fill="{_INK}"/></g>'
    return (
        f'<g><title>end</title>{ring} r="9" fill="#ffffff" stroke="{_INK}" stroke-width="1.6"/>'
        f'{ring} r="5" fill="{_INK}"/></g>'
    )


def _text(x: float, y: float, size: float, ink: str, content: str, more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{ink}" text-anchor="middle"{more}>'
        f"{xml(content)}</text>"
    )


def _label(arrow: Arrow, box: Box) -> str:
    title = _title(arrow) if list(arrow.rows) != list(arrow.texts) else ""
    ink = _DATA_INK if arrow.data else _INK
    baseline = box.y - box.height / 2 + 12.5
    return (
        f'<g>{title}<rect x="{box.x - box.width / 2:.1f}" y="{box.y - box.height / 2:.1f}" rx="4"'
        f' width="{box.width:.1f}" height="{box.height:.1f}" fill="#ffffff" fill-opacity="0.92"/>'
        + "".join(_text(box.x, baseline + i * LABEL_ROW, 11, ink, row) for i, row in enumerate(arrow.rows))
        + "</g>"
    )


def _title(arrow: Arrow) -> str:
    return f"<title>{xml(', '.join(arrow.texts))}</title>" if arrow.texts else ""


def _line(drawn: Composition, position: int, arrow: Arrow) -> str:
    colour, width, dashes = _LINE, 1.4, ""
    if arrow.back:
        colour = _BACK_LINE
    if arrow.texts == (ON_ERROR,):
        colour = _ERROR_LINE
    if arrow.data:
        colour, width, dashes = DATA_LINE, 1.0, ' stroke-dasharray="5 3"'
    line, head = drawn.line(position)
    return (
        f'<g>{_title(arrow)}<path d="{line}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes}/>'
        f'<path d="{head}" fill="{colour}"/></g>'
    )
