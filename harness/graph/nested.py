"""The graphs that run inside others, which front ends load only when a run reaches them, and their problems."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import chain

from harness.errors import ManifestError, Problem
from harness.graph.model import Graph


def inner_graphs(graph: Graph) -> Iterator[Graph | ManifestError]:
    """The graphs inside a graph at any depth, each once; of one whose manifest is refused, the error."""
    seen: set[Hashable] = set()
    ahead = [graph]
    while ahead:
        outer = ahead.pop()
        inside = outer.vocabulary().inside if outer.vocabulary is not None else {}
        for each in chain.from_iterable(inside.values()):
            if each.key in seen:
                continue
            seen.add(each.key)
            try:
                found = each.graph()
            except ManifestError as error:
                yield error
                continue
            yield found
            ahead.append(found)


def nested_problems(graph: Graph) -> Iterator[Problem]:
    """The problems of all inner graphs, errors as warnings: a scenario may answer for what runs there."""
    for inner in inner_graphs(graph):
        if isinstance(inner, Graph):
            yield from inner.warnings
        else:
            yield from (replace(problem, severity="warning") for problem in inner.problems)
