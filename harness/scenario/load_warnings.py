"""The load warnings of a manifest that apply in a scenario, which may replace a handler or set a key of the state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from typing import Any, TypeAlias

from harness.errors import Problem, Span
from harness.graph.effects import HandlerCall
from harness.graph.model import Graph
from harness.scenario.model import Scenario
from harness.source.display import did_you_mean
from harness.world.spec import Real

Subject: TypeAlias = tuple[str, Span | None]
"""The code and the location of a warning, which is the same for a manifest and for one that contains it."""


def subject(warning: Problem) -> Subject:
    """Return the code and the location of a warning."""
    return warning.code, warning.span


def warnings_in(scenario: Scenario, graph: Graph) -> list[Problem]:
    """Return the load warnings of a graph that apply in a scenario."""
    if not graph.warnings:
        return []
    provided = _Provided(scenario, graph)
    return [provided.with_hint(warning) for warning in graph.warnings if not provided.rules_out(warning)]


def warnings_alone(graph: Graph, ruled_out: Set[Subject] = frozenset()) -> list[Problem]:
    """Return the load warnings of a graph without a scenario, except those in `ruled_out`.

    A key that nothing is known to set is a note: an input may set it.
    """
    return [
        replace(warning, severity="note") if warning.unless and warning.unless.kind == "key" else warning
        for warning in graph.warnings
        if subject(warning) not in ruled_out
    ]


class _Provided:
    """The handlers that a scenario replaces from its first turn on, and the keys of the state that it sets."""

    def __init__(self, scenario: Scenario, graph: Graph) -> None:
        entries = {**scenario.world.handlers, **scenario.turns[0].world.handlers}
        self._handlers = {
            name for name, entry in entries.items() if not isinstance(entry, Real) or entry.function
        }
        self._keys = set(_keys(scenario, graph))
        # A function that the scenario names may write any key.
        self._any_key = any(
            path[0] == HandlerCall.key and entry.function
            for world in scenario.worlds
            for path, entry in world.real()
        )

    def rules_out(self, warning: Problem) -> bool:
        """True if a warning does not apply."""
        if warning.unless is None:
            return False
        kind, name = warning.unless
        return name in self._handlers if kind == "handler" else self._any_key or name in self._keys

    def with_hint(self, warning: Problem) -> Problem:
        """Return a warning of a key with a suggestion from the keys that the scenario sets."""
        if warning.hint or warning.unless is None or warning.unless.kind != "key":
            return warning
        return replace(warning, hint=did_you_mean(warning.unless.name, sorted(self._keys), listing=False))


def _keys(scenario: Scenario, graph: Graph) -> Iterator[str]:
    """Yield the keys of the state in inputs, in edits at a pause, and in answers of stubbed handlers."""
    text_input = graph.vocabulary().text_input if graph.vocabulary is not None else ""
    values: list[Any] = []
    for turn in scenario.turns:
        values += [{text_input: turn.input} if isinstance(turn.input, str) else turn.input, turn.resume]
    for world in scenario.worlds:
        values += [stub.answer.get("return") for stub in world.stubs(HandlerCall.kind)]
    for value in values:
        yield from value if isinstance(value, Mapping) else ()
