"""Graphs that run inside other graphs, and their problems. Front ends load them only when a run reaches them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import chain

from harness.errors import ManifestError, Problem
from harness.graph.model import Graph
from harness.graph.vocabulary import NestedGraph


def inner_graphs(graph: Graph) -> Iterator[Graph | ManifestError]:
    """Yield the graphs inside a graph at any depth, each once. For a manifest that is refused, yield the error."""
    return (inner for _, inner in _nested(graph))


def _nested(graph: Graph) -> Iterator[tuple[NestedGraph, Graph | ManifestError]]:
    seen: set[Hashable] = set()
    ahead = [graph]
    while ahead:
        outer = ahead.pop()
        inside = outer.vocabulary().inside if outer.vocabulary is not None else {}
        for nested in chain.from_iterable(inside.values()):
            if nested.key in seen:
                continue
            seen.add(nested.key)
            try:
                found = nested.graph()
            except ManifestError as error:
                yield nested, error
                continue
            yield nested, found
            ahead.append(found)


def nested_problems(graph: Graph) -> Iterator[Problem]:
    """Yield the problems of all nested graphs. Errors become warnings, as a scenario may answer in their place."""
    for nested, inner in _nested(graph):
        if isinstance(inner, Graph):
            yield from () if nested.warned else inner.warnings
        else:
            yield from (replace(problem, severity="warning") for problem in inner.problems)
