"""Warnings of an agent that depend on its scenarios: what it calls and none answers, and what its manifest warns of.

A call without an answer ends a run, so this is told before one. All scenarios that are checked together count: it is
enough if one of them answers. What a model must ask for is reported only if a stub makes it ask or only its name
is known, and what only some nodes call only if a scenario expects one of them in its path.

The warnings of a manifest apply unless the scenario replaces the handler, or sets the key of the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from harness.errors import Problem, Span
from harness.graph.effects import EFFECTS, SERVER, HandlerCall
from harness.graph.model import Graph, Outside
from harness.graph.names import inner_graphs, noun_of
from harness.graph.native import NativeGraph
from harness.scenario.model import Scenario
from harness.settings import RecordMode, Settings
from harness.source.display import did_you_mean
from harness.source.document import real_path
from harness.world.entries import shortest_entry
from harness.world.spec import Real, WorldSpec

_PATHS: Final = ("path", "path_includes")


# ---------------------------------------------------------------- what no scenario answers


@dataclass
class _Agent:
    """An agent, and its scenarios: what they answer, as (kind, name), what their models ask for, where they lead."""

    graph: Graph
    span: Span
    answered: set[tuple[str, str]] = field(default_factory=set)
    asked: dict[str, Span] = field(default_factory=dict)
    expected: dict[str, Span] = field(default_factory=dict)
    is_open: bool = False


class Unanswered:
    """The agents of the scenarios that are checked together."""

    def __init__(self) -> None:
        self._agents: dict[object, _Agent] = {}

    def add(self, scenario: Scenario, graph: Graph, settings: Settings) -> None:
        """Add a scenario and the graph of its agent."""
        if isinstance(graph, NativeGraph):  # its tools run for real
            return
        key = real_path(scenario.manifests[0]), graph.dialect, graph.name
        agent = self._agents.setdefault(key, _Agent(graph, scenario.span))
        is_real = settings.record or settings.record_mode is RecordMode.LIVE
        agent.is_open |= is_real or scenario.cassette is not None or scenario.skip is not None
        for mention in scenario.mentions:
            if mention.key in _PATHS and mention.role == "node":
                agent.expected.setdefault(mention.name, mention.span or scenario.span)
        for world in scenario.worlds:
            agent.is_open |= bool(world.hooks)
            agent.answered.update(_answered(world))
            for stub in world.stubs("llm"):
                for call in stub.answer.get("tool_calls", ()):
                    agent.asked.setdefault(call["name"], stub.span or scenario.span)

    def problems(self) -> Iterator[Problem]:
        """Yield a warning of each thing that no scenario answers, where it is asked for, or at the first scenario."""
        for agent in self._agents.values():
            if not agent.is_open:
                yield from _problems(agent)


def _answered(world: WorldSpec) -> Iterator[tuple[str, str]]:
    for kind, effect in EFFECTS.items():
        entries = getattr(world, effect.key)
        if effect.stubs != "list":
            yield from ((SERVER if effect.stubs == "server" else kind, name) for name in entries)
        elif entries:
            yield kind, ""
    yield from ((fault.effect, "") for fault in world.faults if fault.error is not None)


def _problems(agent: _Agent) -> Iterator[Problem]:
    told: set[tuple[str, str]] = set()
    for graph, each in _outside(agent):
        if (each.kind, each.name) in told or _is_answered(each, agent):
            continue
        places = [agent.asked[name] for name in each.asked if name in agent.asked]
        places += [agent.expected[name] for name in each.nodes if name in agent.expected]
        if (each.asked or each.nodes) and not places:
            if each.declared is None:
                continue
            places = [each.declared]
        told.add((each.kind, each.name))
        what = f"the {noun_of(each.kind)} '{each.name}' of '{graph.name}'"
        text = f"no scenario answers {what}: a run that calls it ends with an error"
        hint = f"the shortest stub: `{shortest_entry(each.kind, each.name, each.tools)}`"
        yield Problem("unanswered", text, (places or [agent.span])[0], hint, "warning")


def _outside(agent: _Agent) -> Iterator[tuple[Graph, Outside]]:
    """Yield what the graph calls, and what models in the graphs inside it ask for.

    Which of those run is not known, and a scenario may answer in place of one.
    """
    yield from ((agent.graph, each) for each in _listed(agent.graph))
    if not any(kind == "agent" for kind, _ in agent.answered):
        for inner in inner_graphs(agent.graph):
            if isinstance(inner, Graph):
                yield from ((inner, each) for each in _listed(inner) if each.asked)


def _listed(graph: Graph) -> Sequence[Outside]:
    return () if graph.vocabulary is None else graph.vocabulary().outside


def _is_answered(each: Outside, agent: _Agent) -> bool:
    by = [(each.kind, each.name), *each.others]
    return any(one in agent.answered or (one[0], "") in agent.answered for one in by)


# ---------------------------------------------------------------- warnings of the manifest

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
