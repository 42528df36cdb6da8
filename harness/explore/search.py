"""One stream of the search: Hypothesis draws the worlds of runs, climbs their coverage, and shrinks what breaks a law.

Everything follows from the seed and the number of the stream. Hypothesis' own constants from local modules, which
differ from machine to machine, are off, and its shrinking ends after a number of runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final
from unittest.mock import patch

import hypothesis
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from harness.errors import FormatError, HarnessError, Problem
from harness.explore.drawn import Draw, Drawn, inputs
from harness.explore.laws import NOT_JUDGED, Breach, breach
from harness.explore.mining import mined
from harness.graph import observe
from harness.graph.model import Graph
from harness.graph.native import NativeGraph
from harness.graph.to_json import to_json
from harness.graph.trace import Event
from harness.scenario.model import MISSING, Exploration, Scenario, Turn
from harness.scenario.outcome import RunResult
from harness.scenario.process_state import prepare_process, preserve_process_state
from harness.scenario.real_limit import progress, real_limit
from harness.scenario.run import run_once, start_of
from harness.settings import Settings
from harness.time.readings import clock_readings
from harness.time.real import real

STREAMS: Final = 8
"""The streams of every search, whatever runs them."""
_SESSION: Final = 500
"""Runs of one search of Hypothesis, whose memory grows with them."""
_SHRINKING: Final = 400
"""Runs in which a finding is shrunk."""
_REPORT_S: Final = 0.5

_MOST_COVERS: Final = 200
"""Runs of a stream that are kept for their coverage."""

Feature = tuple[str, Any]
"""A part of a graph that was taken: `nodes`, `edges` or `branches`, and which."""
Size = tuple[int, int, int, str]
"""How long the scenario of a run is, in comparisons."""


@dataclass(frozen=True)
class Plan:
    """What to search for, and how long.

    Attributes:
        runs: the runs of all streams together; None: until `seconds` have passed.
        seconds: the real seconds of each stream.
        seed: of everything that is drawn.
        faults: the kinds of faults that are drawn.
        faults_given: they were asked for.
        laws: what must hold besides the rules that always do.
        keeps_covers: runs that together take all parts of the graph are kept.
    """

    runs: int | None
    seconds: float | None
    seed: int
    faults: Sequence[str]
    faults_given: bool = False
    laws: Exploration = field(default_factory=Exploration)
    keeps_covers: bool = False

    def share(self, stream: int) -> int:
        """Return the number of runs of a stream."""
        return (self.runs or 0) // STREAMS + (stream < (self.runs or 0) % STREAMS)


@dataclass
class Run:
    """One run with drawn answers."""

    result: RunResult
    drawn: Drawn
    inputs: Sequence[Any]
    breach: Breach | None
    features: frozenset[Feature]

    @property
    def size(self) -> Size:
        """How long its scenario is: faults count first, then calls."""
        observed = self.result.observed
        text = json.dumps([*self.inputs, to_json(observed.calls)], sort_keys=True, default=str)
        return len(self.drawn.faults), len(observed.calls) + len(self.inputs), len(text), text


@dataclass
class Found:
    """A breach with the smallest run that shows it. `runs_until` and `seconds` are those of the stream before it."""

    stream: int
    breach: Breach
    events: list[Event]
    size: Size
    faults: Sequence[tuple[str, str, str]]
    runs_until: int
    seconds: float


@dataclass
class Cover:
    """A run that broke nothing, and the parts of the graph that it took."""

    stream: int
    features: frozenset[Feature]
    events: list[Event]
    size: Size


@dataclass
class Reached:
    """What a stream has done so far. `features` has the number of the run that took each first."""

    stream: int
    runs: int = 0
    features: dict[Feature, int] = field(default_factory=dict)
    has_handled: bool = False
    ended: bool = False
    problem: str = ""


Tell = Callable[[Found | Reached | Cover], None]


class _Enough(BaseException):
    """Ends the shrinking."""


class _Broken(Exception):
    """Tells Hypothesis that a run broke a law: a class for each cause, by which it tells causes apart."""


def search(stream: int, scenario: Scenario, settings: Settings, graph: Graph, plan: Plan, tell: Tell) -> None:
    """Run one stream, and tell what it finds when it finds it, and from time to time what it has done.

    Raises:
        FormatError: an effect cannot be drawn (code `cannot-draw`).
        KeyboardInterrupt: it was asked to end.
    """
    _Stream(stream, scenario, settings, graph, plan, tell).run()


class _Stream:
    def __init__(
        self, number: int, scenario: Scenario, settings: Settings, graph: Graph, plan: Plan, tell: Tell
    ) -> None:
        self._scenario, self._settings, self._graph, self._plan, self._tell = (
            scenario,
            settings,
            graph,
            plan,
            tell,
        )
        self._mined, self._declared = mined(graph), graph.declared()
        self._most_visits = max(200, 20 * len(graph.nodes))
        self._reached = Reached(number)
        self._known: dict[str, type[_Broken]] = {}
        self._best: dict[str, Run] = {}
        self._covers: dict[frozenset[Feature], Run] = {}
        self._began = self._told = real.monotonic()
        self._shrinking = 0

    def run(self) -> None:
        number = 0
        with _repeatable():
            while (left := self._left()) > 0:
                before = self._reached.runs
                self._session(number, min(left, _SESSION))
                number += 1
                if self._reached.runs == before:
                    break
        for features, run in self._covers.items():
            self._tell(Cover(self._reached.stream, features, _events(run), run.size))
        self._reached.ended = True
        self._tell(self._reached)

    def _left(self) -> int:
        plan = self._plan
        if plan.seconds is not None and real.monotonic() - self._began >= plan.seconds:
            return 0
        return _SESSION if plan.runs is None else plan.share(self._reached.stream) - self._reached.runs

    def _session(self, number: int, runs: int) -> None:
        """Search until something new is found, which is shrunk and told, or for a number of runs."""
        self._shrinking, self._best = 0, {}
        began = self._reached.runs
        seed = sha256(f"{self._plan.seed}/{self._reached.stream}/{number}".encode()).digest()[:8]
        asked = hypothesis.settings(
            max_examples=runs,
            database=None,
            deadline=None,
            derandomize=False,
            print_blob=False,
            report_multiple_bugs=False,
            phases=(hypothesis.Phase.generate, hypothesis.Phase.target, hypothesis.Phase.shrink),
            suppress_health_check=list(hypothesis.HealthCheck),
            verbosity=hypothesis.Verbosity.quiet,
        )

        def attempt(data: st.DataObject) -> None:
            self._attempt(lambda below: data.draw(_number(below)))

        test = hypothesis.seed(int.from_bytes(seed))(asked(hypothesis.given(st.data())(attempt)))
        try:
            test()
        except (_Enough, _Broken):
            pass
        except Flaky:
            self._reached.problem = (
                "runs with the same answers differ: what one run leaves behind reaches the next"
            )
        finally:
            self._tell_found()
        if self._reached.runs == began:  # shrinking alone
            self._reached.runs += 1

    def _tell_found(self) -> None:
        since = real.monotonic() - self._began
        for run in self._best.values():
            assert run.breach is not None
            reached = self._reached
            self._tell(
                Found(
                    reached.stream, run.breach, _events(run), run.size, run.drawn.faults, reached.runs, since
                )
            )

    def _attempt(self, choose: Callable[[int], int]) -> None:
        run = self._made(choose)
        self._tell_sometimes()
        shrinks = bool(self._best)
        if shrinks:
            self._shrinking += 1
            if self._shrinking > _SHRINKING:
                raise _Enough
        else:
            self._count(run)
        if run.breach is not None and (not shrinks or run.breach.key in self._best):
            key = run.breach.key
            if key in self._known and key not in self._best:
                return
            if key not in self._best or run.size < self._best[key].size:
                self._best[key] = run
            self._known.setdefault(key, type("Broken", (_Broken,), {}))
            raise self._known[key]
        if run.breach is None and self._plan.keeps_covers:
            self._keep(run)
        if not shrinks:
            hypothesis.target(float(len(run.features)), label="features")

    def _keep(self, run: Run) -> None:
        """Keep the shortest run of those that take the same parts, unless another takes more of the graph."""
        before = self._covers.get(run.features)
        if before is not None and before.size <= run.size:
            return
        if before is None and len(self._covers) >= _MOST_COVERS:
            smaller = next((each for each in self._covers if each < run.features), None)
            if smaller is None:
                return
            del self._covers[smaller]
        self._covers[run.features] = run

    def _count(self, run: Run) -> None:
        reached = self._reached
        reached.runs += 1
        for feature in sorted(run.features, key=repr):
            reached.features.setdefault(feature, reached.runs)
        if self._plan.seconds is not None and real.monotonic() - self._began >= self._plan.seconds:
            raise _Enough

    def _tell_sometimes(self) -> None:
        if real.monotonic() - self._told >= _REPORT_S:
            self._told = real.monotonic()
            self._tell(replace(self._reached, features=dict(self._reached.features)))

    def _made(self, choose: Callable[[int], int]) -> Run:
        draw = Draw(choose, self._mined, self._declared, self._plan.faults)
        given = [] if self._scenario.turns[0].input is not MISSING else list(inputs(draw))
        turns = tuple(Turn(input=value) for value in given) or self._scenario.turns
        scenario = replace(self._scenario, turns=turns, conversation=len(turns) > 1)
        drawn = Drawn(draw, self._most_visits)
        graph = None if isinstance(self._graph, NativeGraph) else self._graph  # an app's has data of the run
        result = made(scenario, self._settings, graph, drawn)
        events = result.trace.events if result.trace is not None else []
        error = result.observed.error
        if error is not None and error["code"] in NOT_JUDGED:
            raise _cannot_draw(error)
        broken = breach(result.observed, result.graph or self._graph, events, self._plan.laws)
        if broken is None and drawn.faults:
            self._reached.has_handled = True
        return Run(result, drawn, given, broken, features_of(events))


def made(scenario: Scenario, settings: Settings, graph: Graph | None, last: Drawn | None) -> RunResult:
    """Make one run in this process, and restore the state of the process."""
    progress.begin()
    prepare_process()
    with (
        preserve_process_state(),
        real_limit(settings.real_timeout, progress.doing),
        clock_readings(start_of(scenario, settings)) as readings,
    ):
        return run_once(scenario, settings, seed=scenario.seed, readings=readings, last=last, graph=graph)


def _events(run: Run) -> list[Event]:
    return list(run.result.trace.rendered()) if run.result.trace is not None else []


def features_of(events: Sequence[Event]) -> frozenset[Feature]:
    """Return the parts of the graph that a run took."""
    taken = observe.coverage(events, nested=True)
    return frozenset(
        (part, tuple(each) if part == "edges" else each) for part, found in taken.items() for each in found
    )


def _cannot_draw(error: Any) -> HarnessError:
    text = " ".join(error["message"].split("\n")[0].split())
    return FormatError(
        Problem(
            "cannot-draw",
            f"an effect cannot be drawn: {text}",
            hint="answer it in a scenario, and explore that",
        )
    )


@lru_cache(512)
def _number(below: int) -> st.SearchStrategy[int]:
    return st.integers(0, below - 1)


@contextmanager
def _repeatable() -> Iterator[None]:
    """Turn Hypothesis' constants from local modules off."""
    from hypothesis.internal.conjecture import providers

    of = getattr(providers, "Constants", None)
    with patch.object(providers.HypothesisProvider, "_local_constants", of()) if of else nullcontext():
        yield
