"""Names in expectations that the graph does not have: a `never` with a typo can never fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.errors import Problem
from harness.graph.model import END, START, Graph
from harness.scenario.model import Expectations, Scenario
from harness.source.suggest import did_you_mean


def unknown_names(scenario: Scenario, graph: Graph) -> Iterator[Problem]:
    """A warning for each node that an expectation names and the graph does not have.

    They all speak of the top graph (docs/scenario-format.md, "Paths, by dialect").
    """
    nodes = [node.name for node in graph.nodes]
    for expect in (scenario.expect, *(turn.expect for turn in scenario.turns if turn.expect is not None)):
        for key, name in _named(expect):
            if name not in (*nodes, START, END):
                text = f"{key} names '{name}', which is no node of '{graph.name}'"
                hint = did_you_mean(name, nodes)
                yield Problem("unknown-name", text, expect.spans.get(key.partition(".")[0]), hint, "warning")


def _named(expect: Expectations) -> Iterator[tuple[str, str]]:
    values = expect.values
    for key in ("never", "path", "path_includes"):
        yield from ((key, name) for name in _flat(values.get(key, ())))
    for key in ("visits", "max_visits"):
        yield from ((key, name) for name in _keys(values.get(key)))
    yield from (("latency.nodes", name) for name in _keys(_keys_of(values.get("latency"), "nodes")))
    for route in values.get("routes", ()):
        yield from (("routes", str(route[end])) for end in ("from", "to") if end in route)


def _flat(names: Iterable[Any]) -> Iterator[str]:
    for name in names:
        if isinstance(name, list):
            yield from _flat(name)
        elif isinstance(name, str):
            yield name


def _keys(value: Any) -> Iterable[str]:
    return value if isinstance(value, Mapping) else ()


def _keys_of(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None
