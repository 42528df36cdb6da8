"""All that a graph has, as a line of results tells it: what coverage is held against, and what draws it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from harness.draw.picture import captions
from harness.errors import Span
from harness.graph import observe
from harness.graph.model import ANY_NODE, GOTO, Graph
from harness.source.document import shown_path


@lru_cache(maxsize=256)
def graph_shape(graph: Graph, manifest: str) -> dict[str, Any]:
    """{nodes, edges, branches, kinds, lines}: `kinds` is what a picture writes under each node, in their order.

    `lines` has, for each part in its order, where it stands: the number of the line in the manifest, `file:line` of
    another file, or null. Not to be changed.
    """
    shape = {part: sorted(found, key=repr) for part, found in observe.shape(graph).items()}
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
