"""The problems of graphs that run inside others; front ends load these only when a run reaches them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from harness.errors import ManifestError, Problem
from harness.graph.model import Graph


def nested_problems(graph: Graph) -> Iterator[Problem]:
    """The problems of all inner graphs, errors as warnings: a scenario may answer for what runs there."""
    seen: set[Hashable] = set()
    ahead = [graph]
    while ahead:
        inner = ahead.pop()
        inside = inner.vocabulary().inside if inner.vocabulary is not None else {}
        for each in (one for graphs in inside.values() for one in graphs):
            if each.key in seen:
                continue
            seen.add(each.key)
            try:
                found = each.graph()
            except ManifestError as error:
                yield from (replace(problem, severity="warning") for problem in error.problems)
                continue
            yield from found.warnings
            ahead.append(found)
