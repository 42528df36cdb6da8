"""Running a scenario: manifest, world and input in, one Outcome a repeat out.

    load the graph ─▶ open the world ─▶ virtual-time loop: prepare, turns, judge ─▶ observe ─▶ check ─▶ Outcome

Runs are synchronous from outside; each has a loop, a clock, a world and a seed of its own. What no stub answers is
played from the scenario's cassette, or, where it is being recorded, real: then the network is open and the loop is
paced by the real clock.
"""

from __future__ import annotations

import asyncio
import copy
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest
from harness.engine.context import Simulation
from harness.engine.conversation import Conversation, Ending
from harness.errors import CassetteError, FormatError, HarnessError, ManifestError, SourceError
from harness.graph import observe
from harness.graph.effects import LLMCall
from harness.graph.messages import to_messages
from harness.graph.model import Graph
from harness.graph.to_json import error_text, to_json
from harness.graph.trace import Event
from harness.recording.human import Ask
from harness.scenario.judge import judge_messages, read_grade
from harness.scenario.judging import Played, outcome_of, skipped
from harness.scenario.model import MISSING, Expectations, Scenario, Turn
from harness.scenario.outcome import Observed, Outcome
from harness.scenario.recording import RecordingSession, recording_session
from harness.scenario.verdict import could_not_be_judged
from harness.settings import Settings
from harness.time.clock import PacedTimeLoop, VirtualTimeLoop
from harness.world.backend import Outside
from harness.world.network import closed_network, open_network
from harness.world.scripted import ScriptedWorld

# A run that takes exactly its timeout is in time.
JUST_PAST_S = 1e-6


def run_scenario(
    scenario: Scenario,
    settings: Settings | None = None,
    done: Callable[[Outcome], None] | None = None,
    *,
    ask: Ask | None = None,
) -> list[Outcome]:
    """Run a scenario as often as it repeats; `done` is told of each outcome as it comes.

    A scenario with `skip` gives one outcome with the verdict `skipped`. `ask` asks a person at the terminal, where
    the scenario is being recorded. Nothing a manifest, a scenario, a cassette or the code they name does raises out
    of here, except KeyboardInterrupt.
    """
    outcomes = []
    for outcome in _outcomes(scenario, settings or Settings(), ask):
        outcomes.append(outcome)
        if done is not None:
            done(outcome)
    return outcomes


def _outcomes(scenario: Scenario, settings: Settings, ask: Ask | None) -> Iterator[Outcome]:
    if scenario.skip is not None:
        yield skipped(scenario)
        return
    try:
        with recording_session(scenario, settings, ask) as cassette:
            for repeat in range(scenario.repeat):
                yield _repeat(scenario, settings, repeat, cassette)
    except (CassetteError, FormatError) as error:  # before anything ran
        yield _without_cassette(scenario, 0, error)


def _repeat(
    scenario: Scenario, settings: Settings, repeat: int, cassette: RecordingSession | None
) -> Outcome:
    """One run, and what becomes of the cassette: the last writes it."""
    began = time.perf_counter()
    seed = scenario.seed + repeat
    if cassette is None:
        played = play(scenario, settings, seed=seed)
        return outcome_of(scenario, repeat, played, time.perf_counter() - began)
    try:
        outside, warnings = cassette.open(repeat)
        played = play(scenario, settings, seed=seed, outside=outside)
        played.whole.warnings += warnings
        outcome = outcome_of(scenario, repeat, played, time.perf_counter() - began)
        if outside.is_real:
            outcome.observed.warnings += cassette.keep(repeat, outside, outcome, played.graph)
        if repeat + 1 == scenario.repeat:
            cassette.save()
        return outcome
    except CassetteError as error:
        cassette.discard()
        return _without_cassette(scenario, repeat, error)


def _without_cassette(scenario: Scenario, repeat: int, error: HarnessError) -> Outcome:
    """The outcome where a cassette cannot be read or written."""
    return outcome_of(
        scenario, repeat, Played(Observed(status="failed", error=_error(error, None, None))), 0.0
    )


def play(scenario: Scenario, settings: Settings, *, seed: int, outside: Outside | None = None) -> Played:
    """Run a scenario once, in virtual time; with the network closed, unless `outside` is real."""
    played: list[Played] = []
    graph = None
    home = os.getcwd()
    is_real = outside is not None and outside.is_real
    with open_network() if is_real else closed_network() as refused:
        try:
            recorded = outside.about.environment if outside is not None and not is_real else {}
            graph = load_graph(load_request(scenario, settings, recorded), scenario.dialect)
        except SourceError as error:
            return Played(_refused(error))
        drawn = random.getstate()
        random.seed(seed)  # tools draw from it, and clients that wait before they try again
        try:
            with (
                outside.intercepted() if outside is not None else nullcontext(),
                asyncio.Runner(loop_factory=PacedTimeLoop if is_real else VirtualTimeLoop) as runner,
            ):
                # Not as the result of `run`: asyncio would make a text of it, for nothing.
                runner.run(_play(scenario, settings, graph, seed, outside, played))
        except (Exception, SystemExit) as error:
            if not played:
                return _broken(error, graph, outside)
        finally:
            os.chdir(home)  # a tool may have left it
            random.setstate(drawn)
        # Code that catches what the closed network raises passes unnoticed otherwise.
        played[0].whole.warnings += refused
        return played[0]


def _broken(error: BaseException, graph: Graph, outside: Outside | None) -> Played:
    """What is told when a run did not come to an end."""
    told_as = _error(error, None, None)
    if not isinstance(error, HarnessError):
        # A fault of ours must not take the other scenarios with it; it is told as what it is.
        told_as = {**told_as, "code": "harness-broke"}
    observed = Observed(status="failed", error=told_as)
    if outside is not None:
        observed.rewrite(outside.without_secrets)
    return Played(observed, graph=graph)


def load_request(
    scenario: Scenario, settings: Settings, recorded: Mapping[str, str] | None = None
) -> LoadRequest:
    """What the dialect's front end is asked for. `recorded` has variables for where they are not set."""
    known = {**(recorded or {}), **os.environ}
    environment = {name: known[name] for name in scenario.env_passthrough if name in known}
    return LoadRequest(
        paths=scenario.manifests,
        agent=scenario.agent,
        env={**environment, **scenario.env},
        folders=import_folders(scenario, settings),
        hooks=scenario.world.hooks,
        allowed=settings.allow_paths,
        named_at=scenario.manifest_span,
    )


def import_folders(scenario: Scenario, settings: Settings) -> tuple[Path, ...]:
    """Where Python modules come from: beside the scenario, beside the manifest, and what the settings add."""
    folders = (scenario.file.parent, *(path.parent for path in scenario.manifests), *settings.pythonpath)
    here = os.getcwd()
    return tuple(dict.fromkeys(_resolved(folder, here) for folder in folders))


@lru_cache(maxsize=1024)
def _resolved(folder: Path, _here: str) -> Path:
    """The folder without links; a relative one depends on where we are."""
    return folder.resolve()


async def _play(
    scenario: Scenario,
    settings: Settings,
    graph: Graph,
    seed: int,
    outside: Outside | None,
    played: list[Played],
) -> None:
    played.append(await _Play(scenario, settings, graph, seed, outside).run())


class _Play:
    """One run of a scenario, inside its loop."""

    def __init__(
        self, scenario: Scenario, settings: Settings, graph: Graph, seed: int, outside: Outside | None
    ) -> None:
        self.scenario, self.graph, self.seed, self.outside = scenario, graph, seed, outside
        folders = import_folders(scenario, settings)
        self.world = ScriptedWorld(scenario.world, seed=seed, folders=folders, outside=outside)
        self.simulation = Simulation(self.world, seed)
        self.conversation = Conversation(graph, self.simulation, single=not scenario.conversation)
        self.turns: list[Observed] = []
        self.graded: list[tuple[Observed, Expectations]] = []

    async def run(self) -> Played:
        whole = Observed()
        try:
            ending = await self._in_time()
            whole = self._observed(self.simulation.trace.events, 0.0, ending)
            for observed, expect in [*self.graded, (whole, self.scenario.expect)]:
                await self._grade(observed, expect)
        except ManifestError as error:
            whole = _refused(error)
        finally:
            await self.world.close()
        whole.unused = self.world.unused()
        loaded = (str(warning) for warning in self.graph.warnings)
        whole.warnings = [*loaded, *whole.warnings, *self.world.warnings()]
        played = Played(whole, self.turns, self.graph, self.simulation.trace)
        if self.outside is not None:
            if not could_not_be_judged(whole):
                whole.warnings += self.outside.left_over()
            self.outside.learn_secrets()
            played.without_secrets = self.outside.without_secrets
            for observed in (whole, *self.turns):
                observed.rewrite(self.outside.without_secrets)
        return played

    async def _in_time(self) -> Ending | None:
        """How the conversation ended, or None when its time ran out."""
        try:
            async with asyncio.timeout(self.scenario.timeout_s + JUST_PAST_S):
                return await self._conversation()
        except TimeoutError:
            self.simulation.trace.record("end", self.simulation.now, graph="", status="timeout")
            unanswerable = self.simulation.unanswerable
            if unanswerable is None:
                return None
            node = self.simulation.unanswered_in
            return Ending("failed", self.conversation.state, error=unanswerable, node=node)

    async def _conversation(self) -> Ending:
        self.world.put_in_front(self.scenario.turns[0].world)
        try:
            await self.conversation.prepare()
        except ManifestError:
            raise
        except Exception as error:
            return Ending("failed", {}, error=error)
        ending = Ending("completed", {})
        turns = self.scenario.turns
        for number, turn in enumerate(turns, start=1):
            if self.outside is not None:
                is_resumed = any(following.resume is not MISSING for following in turns[number : number + 1])
                self.outside.begin_turn(number, is_resumed=is_resumed)
            ending = await self._turn(turn)
            if self.simulation.unanswerable is not None:
                break
        return ending

    async def _turn(self, turn: Turn) -> Ending:
        first, began = len(self.simulation.trace.events), self.simulation.now
        if turn is not self.scenario.turns[0]:
            self.world.put_in_front(turn.world)
        ending: Ending | None = None
        try:
            if turn.resume is not MISSING:
                ending = await self.conversation.resume(copy.deepcopy(turn.resume))
            else:
                ending = await self.conversation.send(
                    None if turn.input is MISSING else copy.deepcopy(turn.input)
                )
            return ending
        finally:
            if self.scenario.conversation:
                observed = self._observed(self.simulation.trace.events[first:], began, ending)
                self.turns.append(observed)
                self.graded.append((observed, turn.expect or Expectations()))

    def _observed(self, events: Sequence[Event], began: float, ending: Ending | None) -> Observed:
        """What happened in these events; without an ending, the time ran out."""
        now = min(self.simulation.now, self.scenario.timeout_s)
        state = ending.state if ending is not None else self.conversation.state
        return Observed(
            status=ending.status if ending is not None else "timeout",
            path=observe.path(events),
            visits=observe.visits(events),
            routes=observe.routes(events),
            state=to_json(state),
            output=to_json(ending.output) if ending is not None else None,
            error=_error(ending.error, ending.node, self.graph) if ending and ending.error else None,
            interrupts=observe.interrupts(events),
            warnings=observe.warnings(events),
            latency=observe.latency(events, began, now, inside=self.graph.inside_is_own),
            usage=observe.usage(events),
            calls=observe.calls(events),
        )

    async def _grade(self, observed: Observed, expect: Expectations) -> None:
        """Have a model grade the output, for each item of `judge`.

        It is asked when everything is over, and is no part of what is judged: calls, usage and latency.
        """
        for index, item in enumerate(expect.values.get("judge", ())):
            messages = to_messages(judge_messages(item["rubric"], observed.output))
            call = LLMCall(name=item["model"], messages=tuple(messages))
            try:
                reply = await self.conversation.run.perform(call, {}, "judge")
            except HarnessError as error:
                observed.error = observed.error or _error(error, None, None)
                continue
            except Exception as error:
                observed.grades[str(index)] = (0.0, f"the judge failed: {error}")
                continue
            observed.grades[str(index)] = read_grade(reply.text)


def _error(error: BaseException, node: str | None, graph: Graph | None) -> dict[str, Any]:
    """An error as results tell it. `where` is the node's place in the manifest, or the file's."""
    spans = {n.name: n.span for n in graph.nodes} if graph is not None else {}
    span = spans.get(node or "") or getattr(error, "span", None)
    if isinstance(error, SourceError) and error.problems:
        span = error.problems[0].span
    return {
        "type": type(error).__name__,
        "code": getattr(error, "code", None) if isinstance(error, HarnessError) else None,
        "message": error_text(error),
        "node": node,
        "where": str(span) if span is not None else None,
    }


def _refused(error: SourceError) -> Observed:
    return Observed(status="invalid", error=_error(error, None, None))
