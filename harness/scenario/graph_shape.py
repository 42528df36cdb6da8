"""The nodes, edges and branches of a graph as a results line has them, for coverage and pictures."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from harness.draw.diagram import captions
from harness.errors import Span
from harness.graph import observe
from harness.graph.model import ANY_NODE, GOTO, Graph
from harness.source.document import shown_path


@lru_cache(maxsize=256)
def graph_shape(graph: Graph, manifest: str) -> dict[str, Any]:
    """Return {nodes, edges, branches, kinds, lines} of a graph. The result is cached and must not be modified.

    `kinds` is the caption of each node in pictures. `lines` has the location of each node, edge and branch: the
    number of the line in the manifest, `file:line` in another file, or None.
    """
    shape = {part: sorted(found, key=repr) for part, found in observe.possible_coverage(graph).items()}
    kinds = captions(graph)
    edges = [*graph.edges, *observe.implied_ends(graph)]
    places: dict[str, dict[Any, Span | None]] = {
        "nodes": {node.name: node.span for node in graph.nodes},
        "edges": {(edge.source, edge.target): edge.span for edge in reversed(edges)},
        "branches": {
            **{observe.branch(node.name, ANY_NODE, GOTO): node.span for node in graph.nodes},
            **{observe.branch(e.source, e.target, e.label): e.span for e in reversed(edges)},
        },
    }
    lines = {
        part: [_place(places[part].get(tuple(item) if part == "edges" else item), manifest) for item in items]
        for part, items in shape.items()
    }
    return {**shape, "kinds": [kinds[name] for name in shape["nodes"]], "lines": lines}


def _place(span: Span | None, manifest: str) -> int | str | None:
    if span is None:
        return None
    file = shown_path(span.file)
    return span.line if file == manifest else f"{file}:{span.line}"
