"""Runs the turns of a scenario inside an event loop: prepare the graph, send each turn, observe, grade.

The observation of a turn is read from the trace (`harness.graph.observe`) when the turn ends, and once more for
all turns together. Models grade outputs (`expect.judge`) after everything else, so that their calls are not
part of the run.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.engine.callables import collect_exceptions
from harness.engine.conversation import Conversation, Ending
from harness.engine.standstill import Simulation
from harness.errors import ManifestError
from harness.graph import observe
from harness.graph.events import EventGraph
from harness.graph.model import Entry, Graph
from harness.graph.narration import causes
from harness.graph.native import NativeGraph
from harness.graph.to_json import to_json
from harness.graph.trace import Event
from harness.judges.material import material_of
from harness.judges.request import Material
from harness.scenario.graph_warnings import warnings_in
from harness.scenario.idle import untried
from harness.scenario.judge import grade
from harness.scenario.model import MISSING, Expectations, Scenario, Turn
from harness.scenario.outcome import (
    JSON,
    CustomVerdict,
    Observation,
    PriceList,
    RunResult,
    error_json,
    recovered_exceptions,
    refused_result,
)
from harness.scenario.real_limit import progress
from harness.scenario.score import could_not_be_judged, expects_value
from harness.source.document import shown_path
from harness.source.frames import error_line, frames, own_frames
from harness.source.imports import ImportProblem, import_object
from harness.source.models import describe
from harness.time.clock import unheld_work
from harness.world.scripted import ScriptedWorld
from harness.world.tool_requests import ToolRequests

if TYPE_CHECKING:
    from harness.recording.backend import RecordedBackend


@dataclass(frozen=True)
class Run:
    """A run as custom checks see it, with the fields of its line in results.jsonl. Times are virtual seconds.

    All values are JSON and copies, so that changing them has no effect. `run["output"]` is `run.output`.
    """

    suite: str
    scenario: str
    tags: Sequence[str]
    seed: int
    status: str
    path: list[Any]
    visits: dict[str, int]
    routes: list[list[str]]
    state: JSON
    output: JSON
    error: dict[str, Any] | None
    interrupts: list[JSON]
    warnings: list[str]
    latency: dict[str, Any]
    usage: dict[str, Any]
    calls: list[dict[str, Any]]

    def __getitem__(self, name: str) -> Any:
        if name not in _FIELDS:
            raise KeyError(name)
        return getattr(self, name)


_FIELDS = tuple(field.name for field in fields(Run))
_OBSERVED = tuple(name for name in _FIELDS if name in Observation.__dataclass_fields__)


async def run_custom_checks(
    observed: Observation, expect: Expectations, scenario: Scenario, seed: int, folders: Sequence[Path]
) -> None:
    """Call the function of each item of `custom` and append its verdict to `observed.custom_verdicts`.

    Modules are imported from `folders`.
    """
    for item in expect.values.get("custom", ()):
        did = {name: copy.deepcopy(getattr(observed, name)) for name in _OBSERVED}
        run = Run(
            suite=shown_path(scenario.file),
            scenario=scenario.name,
            tags=tuple(scenario.tags),
            seed=seed,
            **did,
        )
        observed.custom_verdicts.append(await _call(item["call"], run, item.get("args") or {}, folders))


async def _call(dotted: str, run: Run, args: Mapping[str, Any], folders: Sequence[Path]) -> CustomVerdict:
    try:
        given = import_object(dotted, folders)(run, **copy.deepcopy(dict(args)))
        return _to_verdict(dotted, await given if inspect.isawaitable(given) else given)
    except ImportProblem as problem:
        return CustomVerdict(0.0, str(problem), broken=True)
    except AssertionError as error:
        return CustomVerdict(0.0, f"{dotted}: {error_line(error)}{_where(error)}")
    except Exception as error:  # the user's code may raise anything
        return CustomVerdict(0.0, f"{dotted} raised {error_line(error)}{_where(error)}", broken=True)


def _to_verdict(dotted: str, given: Any) -> CustomVerdict:
    score, reason = given if isinstance(given, tuple) and len(given) == 2 else (given, "")
    number = isinstance(score, int | float) and math.isfinite(score) and 0 <= score <= 1
    if not number or not isinstance(reason, str):
        found = describe(given if isinstance(given, str | int | float | Mapping | None) else repr(given))
        wants = "a custom check gives a bool, a number from 0 to 1, or (number, reason)"
        return CustomVerdict(0.0, f"{dotted} gave {found}: {wants}", broken=True)
    return CustomVerdict(float(score), reason)


def _where(error: Exception) -> str:
    last = next(reversed(own_frames(error)), None)
    return f"\n  {last['file']}:{last['line']}" if last else ""


JUST_PAST_S: Final = 1e-6
"""Added to the timeout, so that a run which takes exactly its timeout is in time."""


async def run_turns(
    scenario: Scenario,
    graph: Graph,
    world: ScriptedWorld,
    seed: int,
    backend: RecordedBackend | None,
    requests: ToolRequests,
    prices: PriceList,
) -> RunResult:
    """Run all turns of a scenario, close the world, and return the result.

    `requests`, which real tools send, are recorded in the trace.
    """
    run = _Run(scenario, graph, world, seed, backend, prices)
    requests.belong_to(run.simulation)
    with collect_exceptions() as raised:
        return await run.result(raised)


class _Run:
    """One run of a scenario: its conversation, and the observations of its turns."""

    def __init__(
        self,
        scenario: Scenario,
        graph: Graph,
        world: ScriptedWorld,
        seed: int,
        backend: RecordedBackend | None,
        prices: PriceList,
    ) -> None:
        self.seed, self.prices = seed, prices
        self.scenario, self.graph, self.world, self.backend = scenario, graph, world, backend
        varied = scenario.variation
        self.simulation = Simulation(
            world, seed, models=varied.models if varied else {}, params=varied.params if varied else {}
        )
        self.simulation.most_visits = scenario.most_visits
        progress.watch(self.simulation.trace)
        self.conversation = Conversation(graph, self.simulation, single=not scenario.conversation)
        self._reads_requests = any(
            ".request" in str(each.values.get("checks")) for each in scenario.expectations
        )
        self.turns: list[tuple[Observation, Expectations]] = []
        self.events_of_turns: list[tuple[int, int]] = []

    async def result(self, raised: list[Exception]) -> RunResult:
        try:
            ending = await self._in_time()
            whole = self._observed(self.simulation.trace.events, 0.0, ending)
            await self._grade(whole)
        except ManifestError as error:
            whole = refused_result(error).observed
        finally:
            await self.world.close()
        turns = [observed for observed, _ in self.turns]
        whole.unused = self.world.unused()
        pauses = self.conversation.run.stops  # a pause is an exception, too
        whole.raised = recovered_exceptions(
            [each for each in raised if not isinstance(each, pauses)], whole.error
        )
        whole.warnings = [
            *dict.fromkeys(problem.one_line for problem in warnings_in(self.scenario, self.graph)),
            *whole.warnings,
            *self.world.warnings(),
            *self.simulation.remarks,
        ]
        expected = [*self.turns, (whole, self.scenario.expect)]
        worlds = [turn.world for turn in self.scenario.turns] + [self.scenario.world]
        stubs = [stub for world in worlds for stub in world.llm]
        if whole.error is None or expects_value(self.scenario.expect, "status", whole.status):
            found = untried(expected, self.world.unused_faults(), stubs, self.world.unmet())
            whole.warnings += [problem.one_line for problem in found]
        for observed, expect in expected:
            await run_custom_checks(observed, expect, self.scenario, self.seed, self.world.folders)
        result = RunResult(whole, turns, self.graph, self.simulation.trace)
        result.seeded = self.simulation.drawn
        if self.backend is not None:
            if not could_not_be_judged(whole):
                whole.warnings += self.backend.unused_warnings(named=self.scenario.cassette is not None)
            self.backend.learn_secrets()
            result.without_secrets = self.backend.without_secrets
            for observed in (whole, *turns):
                observed.rewrite(self.backend.without_secrets)
        return result

    async def _grade(self, whole: Observation) -> None:
        """Have models grade the outputs.

        The changes of a variant end first, so that judges' calls are the same in all.
        """
        self.simulation.end_variant()
        trace = self.simulation.trace
        asked = [*self.turns, (whole, self.scenario.expect)]
        spans = [*self.events_of_turns, (0, len(trace.events))]
        for (observed, expect), (since, until) in zip(asked, spans, strict=True):
            material = partial(self._material, trace.events[:until], observed, since)
            whole.warnings += await grade(observed, expect, self.conversation.run, material)

    def _material(self, events: Sequence[Event], observed: Observation, since: int) -> Material:
        return material_of(events, observed.output, since=since, tools=self.simulation.trace.tools)

    async def _in_time(self) -> Ending | None:
        """Return the ending of the conversation, or None if its time ran out."""
        try:
            async with asyncio.timeout(self.scenario.timeout_s + JUST_PAST_S):
                return await self._conversation()
        except TimeoutError:
            if work := unheld_work():
                self.simulation.remark(f"when the time of the run was up, {work}")
            self.simulation.trace.record("end", self.simulation.now, graph="", status="timeout")
            fatal = self.simulation.fatal
            if fatal is None:
                return None
            node = self.simulation.fatal_in
            return Ending("failed", self.conversation.state, error=fatal, node=node)

    async def _conversation(self) -> Ending:
        turns = self.scenario.turns
        self.world.put_in_front(turns[0].world)
        try:
            await self.conversation.prepare()
        except ManifestError:
            raise
        except Exception as error:
            return Ending("failed", {}, error=error)
        ending = Ending("completed", {})
        for number, turn in enumerate(turns, start=1):
            if number > 1:
                self.world.put_in_front(turn.world)
            if self.backend is not None:
                is_resumed = number < len(turns) and turns[number].resume is not MISSING
                self.backend.begin_turn(number, is_resumed=is_resumed)
            ending = await self._turn(turn)
            while self._at_breakpoint(ending) and (value := self._last_resume()) is not None:
                ending = await self._turn(Turn(resume=value))
            if self.simulation.fatal is not None:
                break
            if self.world.last is not None and ending.status != "completed":
                break  # whether there is another turn was drawn before
        return ending

    def _at_breakpoint(self, ending: Ending) -> bool:
        """True if the run stopped at static breakpoints only, which ask nothing."""
        pending = self.conversation.pending.values()
        return ending.status == "interrupted" and all(question.breakpoint for question in pending)

    def _last_resume(self) -> Mapping[str, Any] | None:
        return self.world.last.resume() if self.world.last is not None else None

    async def _turn(self, turn: Turn) -> Ending:
        first, began = len(self.simulation.trace.events), self.simulation.now
        ending: Ending | None = None
        try:
            if turn.resume is not MISSING:
                ending = await self.conversation.resume(*self._answers(copy.deepcopy(turn.resume)))
            elif turn.rerun is not None:
                ending = await self.conversation.send(copy.deepcopy(turn.rerun))
            else:
                given = None if turn.input is MISSING else copy.deepcopy(turn.input)
                ending = await self.conversation.send(
                    given if turn.entry is None else Entry(turn.entry, given)
                )
            return ending
        finally:  # the time may run out inside a turn
            if self.scenario.conversation:
                observed = self._observed(self.simulation.trace.events[first:], began, ending)
                self.turns.append((observed, turn.expect or Expectations()))
                self.events_of_turns.append((first, len(self.simulation.trace.events)))

    def _answers(self, value: Any) -> list[Any]:
        """Return the values of a `resume`: in an app, one for each node if its keys are exactly the paused nodes."""
        nodes = [question.node for question in self.conversation.pending.values()]
        is_by_node = isinstance(value, dict) and len(nodes) == len(value) > 1 and set(nodes) == set(value)
        if is_by_node and isinstance(self.graph, NativeGraph):
            return [value[node] for node in nodes]
        return [value]

    def _observed(self, events: Sequence[Event], began: float, ending: Ending | None) -> Observation:
        """Return the observation of these events. Without an ending, the status is `timeout`."""
        now = min(self.simulation.now, self.scenario.timeout_s)
        state = ending.state if ending is not None else self.conversation.state
        return Observation(
            status=ending.status if ending is not None else "timeout",
            path=observe.path(events),
            causes=causes(events),
            has_supersteps=not isinstance(self.graph, EventGraph),
            visits=observe.visits(events),
            routes=observe.routes(events),
            state=to_json(state),
            output=to_json(ending.output) if ending is not None else None,
            store=to_json(self.conversation.store),
            error=error_json(ending.error, ending.node, self.graph) if ending and ending.error else None,
            frames=frames(ending.error) if ending and ending.error else [],
            interrupts=observe.interrupts(events),
            warnings=observe.warnings(events, self.simulation.trace.spans),
            latency=observe.latency(events, began, now, inside=self.graph.includes_nested_latency),
            usage=observe.usage(events, self.prices.cost),
            calls=observe.calls(events, requests=self._reads_requests),
        )
