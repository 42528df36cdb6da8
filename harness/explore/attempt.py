"""One run of what is explored, with drawn input and answers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from typing import Any, Final

from harness.errors import FormatError, Problem
from harness.explore.draw import Draw, inputs
from harness.explore.drawn import Drawn
from harness.explore.laws import NOT_JUDGED, Breach, breach
from harness.explore.mining import mined
from harness.explore.subject import from_entry, most_visits
from harness.explore.values import Choose, NotDrawable
from harness.explore.written import Material
from harness.graph import observe
from harness.graph.model import Graph
from harness.graph.native import NativeGraph
from harness.graph.to_json import to_json
from harness.graph.trace import Event
from harness.scenario.evaluation import graph_shape
from harness.scenario.model import MISSING, Exploration, NativeKeys, Scenario, Turn, import_folders
from harness.scenario.outcome import RunResult
from harness.scenario.process_state import prepare_process, preserve_process_state
from harness.scenario.real_limit import progress, real_limit
from harness.scenario.run import run_once, start_of
from harness.settings import Settings
from harness.source.document import shown_path
from harness.time.readings import clock_readings

STREAMS: Final = 8
"""The streams of every search, whatever runs them."""

Feature = tuple[str, Any]
"""A part of a graph that was taken: `nodes`, `edges` or `branches`, and which."""
Size = tuple[int, int, int, str]
"""The length of the scenario of a run, in comparisons."""
_EMPTY: Final = 20
"""The characters that an empty text counts as."""


@dataclass(frozen=True)
class Plan:
    """The aim and the length of a search.

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
    """A run, what it broke, and the parts of the graph that it took."""

    result: RunResult
    drawn: Drawn
    inputs: Sequence[Any]
    context: Mapping[str, Any] | None
    breach: Breach | None
    features: frozenset[Feature]

    @property
    def size(self) -> Size:
        """The length of its scenario: faults count first, then calls, then the texts, of which words read best."""
        calls, answers = self.result.observed.calls, self.drawn.answers
        text = json.dumps([*self.inputs, to_json(calls), answers], sort_keys=True, default=str)
        length = len(text) + _EMPTY * text.count('""')
        return len(self.drawn.faults), len(calls) + len(self.inputs), length, text

    @property
    def material(self) -> Material:
        """The run as its scenario is written from it."""
        trace = self.result.trace
        return Material(list(trace.rendered()) if trace is not None else [], self.drawn.unreal, self.context)


class Attempts:
    """Makes runs of a scenario that leaves answers open. Its graph is loaded once."""

    def __init__(self, scenario: Scenario, settings: Settings, graph: Graph, plan: Plan) -> None:
        self.plan = plan
        self.shape: Mapping[str, Any] = {}
        """The shape of the graph (`graph_shape`), which of an app is known after the first run."""
        self._settings, self._graph = settings, graph
        self._mined, self._declared = mined(graph, (scenario.file,)), graph.declared()
        self._scenario = replace(scenario, most_visits=most_visits(graph))
        self.draws_faults = bool(plan.faults) and (plan.faults_given or self._declared.handles_faults)

    def make(self, choose: Choose) -> Run:
        """Make a run whose answers are drawn with `choose`.

        Raises:
            FormatError: something is called that cannot be drawn (code `cannot-draw`).
            KeyboardInterrupt: it was asked to end.
            BaseException: what `choose` raised. The code of the agent may have caught it.
        """
        raised: list[BaseException] = []

        def choose_or_end(below: int) -> int:
            try:
                return choose(below)
            except BaseException as error:
                raised.append(error)
                raise

        draw = Draw(choose_or_end, self._mined, self._declared, self.plan.faults if self.draws_faults else ())
        native = self._scenario.native or NativeKeys({}, None, (), {})
        draws_context = native.context is None and self._declared.context is not None
        try:
            given = [] if self._scenario.turns[0].input is not MISSING else list(inputs(draw))
            context = draw.value(self._declared.context or {}) if draws_context else None
        except NotDrawable as error:
            raise _cannot_draw(f"the input: {error}") from error
        turns = tuple(Turn(input=value) for value in given) or self._scenario.turns
        expect = self.plan.laws.invariants  # in place of what one conversation is expected to do
        scenario = replace(self._scenario, turns=turns, conversation=len(turns) > 1, expect=expect)
        if draws_context:
            scenario = replace(scenario, native=replace(native, context=context))
        drawn = Drawn(draw)
        result = self._run(scenario, drawn)
        progress.raise_if_stopped()
        if raised:
            raise raised[0]
        events = result.trace.events if result.trace is not None else []
        if not self.shape and (graph := result.graph or self._graph).nodes:
            whole = graph_shape(graph, shown_path(self._scenario.manifests[0]))
            self.shape = from_entry(whole, self._scenario.agent)
        if problem := drawn.problem or _not_judged(result.observed.error):
            raise _cannot_draw(problem)
        if result.observed.status == "timeout" and drawn.is_silent:  # a person may take as long
            return Run(result, drawn, given, context, None, features_of(events))
        graph, laws = result.graph or self._graph, self.plan.laws
        broken = breach(result.observed, graph, events, laws, bool(drawn.faults))
        if broken is not None and broken.type == "unhandled-fault" and not self.draws_faults:
            broken = None  # nothing handles any fault, which is a note: of a status, too
        return Run(result, drawn, given, context, broken, features_of(events))

    def _run(self, scenario: Scenario, drawn: Drawn) -> RunResult:
        """Make one run in this process, whose output is dropped, and restore the state of the process."""
        graph = None if isinstance(self._graph, NativeGraph) else self._graph  # an app's has data of the run
        progress.begin()
        prepare_process()
        with (
            open(os.devnull, "w") as nowhere,
            redirect_stdout(nowhere),
            redirect_stderr(nowhere),
            preserve_process_state(import_folders(scenario, self._settings), []),
            real_limit(self._settings.real_timeout, progress.doing),
            clock_readings(start_of(scenario, self._settings)) as readings,
        ):
            seed = scenario.seed
            return run_once(scenario, self._settings, seed=seed, readings=readings, last=drawn, graph=graph)


def features_of(events: Sequence[Event]) -> frozenset[Feature]:
    """Return the parts of the graph that a run took."""
    taken = observe.coverage(events, nested=True)
    return frozenset(
        (part, tuple(each) if part == "edges" else each) for part, found in taken.items() for each in found
    )


def _not_judged(error: Mapping[str, Any] | None) -> str:
    """Return why a run says nothing about the agent; "" if it does."""
    if error is None or error["code"] not in NOT_JUDGED:
        return ""
    return f"node '{error['node']}': {error['message']}" if error["node"] else str(error["message"])


def _cannot_draw(why: str) -> FormatError:
    text = f"an effect cannot be drawn: {' '.join(why.splitlines()[0].split())}"
    return FormatError(Problem("cannot-draw", text, hint="answer it in a scenario, and explore that"))
