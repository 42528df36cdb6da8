"""Runs a scenario: from its manifest, world and inputs to one Outcome per repeat.

    load the graph ─▶ open the world ─▶ run its turns in a loop, observe ─▶ check ─▶ Outcome
    request.py        harness/world     turns.py                          evaluation.py

The functions are synchronous; each run has its own event loop, clock, world and seed. Effects that no stub
answers are replayed from the scenario's cassette, or sent to the real service while it is being recorded: then
the network is open and the loop follows the real clock.
"""

from __future__ import annotations

import asyncio
import os
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from harness.chance import seeded_chance
from harness.dialects.load import load_graph
from harness.errors import CassetteError, FormatError, HarnessError, Problem, SourceError
from harness.graph.model import Graph
from harness.graph.narration import narration
from harness.graph.native import NativeGraph
from harness.interception.descriptors import preserve_streams
from harness.interception.intercept import intercepted, intercepted_from_first_effect
from harness.scenario import app_process
from harness.scenario.evaluation import outcome_of, refused, skipped_outcome, unjudged_outcome
from harness.scenario.leftovers import leftovers_found
from harness.scenario.model import (
    Scenario,
    absent_variables,
    import_folders,
    load_request,
    place,
    problems_of_native_keys,
    real_timeout_of,
    without_mutator,
)
from harness.scenario.names import names_unknown_in_run, unknown_names
from harness.scenario.outcome import (
    Outcome,
    PriceList,
    RunResult,
    crashed_result,
    failed_result,
)
from harness.scenario.process_state import prepare_process, preserve_process_state
from harness.scenario.real_limit import RealTimeExceeded, progress, real_limit
from harness.scenario.redaction import redacted, redacted_events, redacted_output, secrets_of
from harness.scenario.turns import run_turns
from harness.settings import RecordMode, Settings
from harness.source.frames import located_defects
from harness.source.imports import bundled_data, repeat_environment
from harness.source.module_state import watch
from harness.time.alarms import marked_interrupts
from harness.time.clock import VirtualTimeLoop
from harness.time.one_process import in_one_process
from harness.time.paced import PacedTimeLoop
from harness.time.readings import Readings, clock_readings
from harness.time.real import real
from harness.units import DEFAULT_NOW, instant_text, parse_instant
from harness.world.network import closed_network, open_network
from harness.world.scripted import ScriptedWorld
from harness.world.tool_requests import ToolRequests

if TYPE_CHECKING:
    from harness.recording.backend import RecordedBackend
    from harness.recording.human import Ask
    from harness.scenario.recording import CassetteWriter, RecordingSession
    from harness.world.responder import LastResponder


def run_scenario(
    scenario: Scenario, settings: Settings | None = None, *, ask: Ask | None = None
) -> list[Outcome]:
    """Run a scenario and return its outcomes, see `outcomes`."""
    return list(outcomes(scenario, settings or Settings(), ask=ask))


def outcomes(
    scenario: Scenario, settings: Settings, *, ask: Ask | None = None, graph: Graph | None = None
) -> Iterator[Outcome]:
    """Run a scenario as many times as it repeats; yield each outcome when it is available.

    A scenario with `skip` has one outcome with the verdict `skipped`. Errors in a manifest, a scenario, a
    cassette or the code that they name become outcomes; only KeyboardInterrupt is raised.

    Args:
        scenario: the scenario to run.
        settings: those of its project.
        ask: asks a person at the terminal while the scenario is being recorded.
        graph: runs in place of the graph of its manifest.
    """
    if scenario.skip is not None:
        yield skipped_outcome(scenario)
        return
    try:
        scenario = scenario.whole()
        with _writer(scenario, settings) as cassette:
            if graph is None and app_process.concerns(scenario):
                made = app_process.outcomes_of_app(scenario, settings, partial(_outcomes, ask=ask))
            else:
                made = _outcomes(scenario, settings, range(scenario.repeat), ask=ask, graph=graph)
            for outcome in made:
                yield outcome if cassette is None else cassette.add(outcome)
    except (CassetteError, FormatError) as error:  # raised before the first run: there is nothing to judge
        yield _not_begun(scenario, settings, error)


def _outcomes(
    scenario: Scenario,
    settings: Settings,
    repeats: Iterable[int],
    *,
    ask: Ask | None = None,
    graph: Graph | None = None,
) -> Iterator[Outcome]:
    """Make the runs of a scenario with these numbers; see `outcomes`."""
    secrets = secrets_of(scenario, settings)
    try:
        cassette: RecordingSession | None = None
        if _may_have_cassette(scenario, settings):
            from harness.scenario.recording import recording_session

            cassette = recording_session(scenario, settings, secrets, ask)
        for repeat in repeats:
            with redacted_output(secrets):
                outcome = in_one_process(_repeat, scenario, settings, repeat, cassette, graph)
            if progress.trace is not None and settings.traces.keeps(outcome.verdict):
                outcome.events = redacted_events(progress.trace, secrets)
                outcome.traced = bool(outcome.events)
            yield redacted(outcome, secrets)
    except (CassetteError, FormatError) as error:
        yield _not_begun(scenario, settings, error)


def _not_begun(scenario: Scenario, settings: Settings, error: HarnessError) -> Outcome:
    outcome = outcome_of(scenario, 0, failed_result(error), 0.0)
    if outcome.verdict != "skipped":
        outcome.verdict, outcome.score = "error", 0.0
    return redacted(outcome, secrets_of(scenario, settings))


def _writer(scenario: Scenario, settings: Settings) -> AbstractContextManager[CassetteWriter | None]:
    """Reserve the cassette that is recorded. Most scenarios have none, and skip the import."""
    if not _may_have_cassette(scenario, settings):
        return nullcontext()
    from harness.scenario.recording import cassette_writer

    return cassette_writer(scenario, settings)


def _may_have_cassette(scenario: Scenario, settings: Settings) -> bool:
    named = scenario.cassette is not None or settings.record or scenario.in_manifest
    return named or settings.record_mode is RecordMode.LIVE


def _repeat(
    scenario: Scenario,
    settings: Settings,
    repeat: int,
    cassette: RecordingSession | None,
    graph: Graph | None,
) -> Outcome:
    """Make one run, and restore the state of the process."""
    began = real.perf_counter()
    progress.begin()
    prepare_process()
    folders = () if app_process.is_inside() else import_folders(scenario, settings)
    left: list[str] = []
    try:
        with preserve_process_state(folders, left), leftovers_found(left):
            outcome = _limited(scenario, settings, repeat, cassette, graph, began)
    except (CassetteError, FormatError):
        raise
    except Exception as error:
        # The run has left the process in a state in which not even its result could be made.
        outcome = outcome_of(scenario, repeat, _crashed(error, graph, None), real.perf_counter() - began)
    outcome.observed.warnings += left
    return outcome


def _limited(
    scenario: Scenario,
    settings: Settings,
    repeat: int,
    cassette: RecordingSession | None,
    graph: Graph | None,
    began: float,
) -> Outcome:
    """Make one run within its limit of real time."""
    repeat_environment(import_folders(scenario, settings))
    if cassette is not None:
        return _with_cassette(scenario, settings, repeat, cassette, graph)
    try:
        seed, start = scenario.seed + repeat, start_of(scenario, settings)
        limit = real_limit(real_timeout_of(scenario, settings), progress.doing)
        with limit, clock_readings(start) as readings:
            result = run_once(scenario, settings, seed=seed, readings=readings, graph=graph)
            return outcome_of(scenario, repeat, result, real.perf_counter() - began)
    except RealTimeExceeded as error:
        return unjudged_outcome(scenario, repeat, error, real.perf_counter() - began)


def start_of(scenario: Scenario, settings: Settings, backend: RecordedBackend | None = None) -> datetime:
    """Return the instant at which virtual time begins. Recorded and live runs begin in real time.

    New answers for a recording are added at the instant of those that it has.
    """
    recorded = backend.metadata.now if backend is not None else ""
    if backend is not None and backend.is_real:
        return parse_instant(recorded) if recorded else real.now().replace(microsecond=0)
    given = scenario.now or settings.now
    return given or (parse_instant(recorded) if recorded else DEFAULT_NOW)


def _with_cassette(
    scenario: Scenario, settings: Settings, repeat: int, cassette: RecordingSession, graph: Graph | None
) -> Outcome:
    """Make one run with a cassette. Only replays have a limit of real time."""
    began = real.perf_counter()
    try:
        backend, warnings = cassette.open(repeat)
        of_age, start = cassette.age_warnings(backend), start_of(scenario, settings, backend)
        backend.now = instant_text(start)
        limit_s = None if backend.is_real else real_timeout_of(scenario, settings)
        limit = real_limit(limit_s, progress.doing)
        with limit, clock_readings(start) as readings:
            seed = scenario.seed + repeat
            result = run_once(scenario, settings, seed=seed, readings=readings, backend=backend, graph=graph)
            result.observed.warnings += warnings
            outcome = outcome_of(scenario, repeat, result, real.perf_counter() - began)
        outcome.recording = backend.number
        outcome.observed.warnings += of_age
        if backend.is_real:
            cassette.keep(backend, outcome, result.graph)
        return outcome
    except CassetteError as error:
        return outcome_of(scenario, repeat, failed_result(error), 0.0)


def run_once(
    scenario: Scenario,
    settings: Settings,
    *,
    seed: int,
    readings: Readings | None = None,
    backend: RecordedBackend | None = None,
    last: LastResponder | None = None,
    graph: Graph | None = None,
) -> RunResult:
    """Run a scenario once, in virtual time and with the network closed; neither holds if the backend is real.

    Args:
        scenario: the scenario to run.
        settings: those of its project.
        seed: of ids and random numbers.
        readings: the clocks that its code reads, which its checks may read, too; by default, they end with the run.
        backend: answers what no stub does.
        last: answers what no stub does, if there is no backend.
        graph: runs in place of the graph of its manifest.
    """
    prepare_process()
    is_real = backend is not None and backend.is_real
    result: RunResult | None = None
    network = open_network() if is_real else closed_network()
    begun = nullcontext(readings) if readings else clock_readings(start_of(scenario, settings, backend))
    with (
        network as connections,
        begun as readings,
        preserve_streams(),
        bundled_data(),
        seeded_chance(seed, place(scenario.file, scenario.name, settings.project)) as chance,
        ExitStack() as stack,
    ):
        recorded = backend.metadata.environment if backend is not None and not is_real else {}
        folders = import_folders(scenario, settings)
        upstream = backend.interceptor if backend is not None else None
        known = ChainMap(dict(scenario.env), os.environ)
        of_app = graph is None and app_process.is_app(scenario.manifests[0], scenario.dialect)
        if of_app:  # the import of an app may make requests, which the same stubs answer
            # With LangGraph, which other scenarios need not import.
            from harness.world.mcp.of_apps import answering_factories, wrap_mcp

            wrap_mcp()
            world = ScriptedWorld(scenario.world, seed=seed, folders=folders, backend=backend, last=last)
            requests = ToolRequests(world, known, upstream, of_app=True)
            stack.enter_context(_intercepted(requests, scenario, backend, of_app=True))
            stack.enter_context(answering_factories(world))
        runner = asyncio.Runner(loop_factory=PacedTimeLoop if is_real else VirtualTimeLoop)
        stack.callback(runner.close)  # also where loading fails
        in_turn = stack.enter_context(ExitStack())
        is_native = of_app or isinstance(graph, NativeGraph)
        loop = partial(_loop_of, runner, readings, in_turn if is_native else None)

        try:
            with located_defects(scenario.manifests[0], scenario.manifest_span):
                if graph is None:
                    request = load_request(scenario, settings, recorded)
                    graph = load_graph(replace(request, loop=loop) if of_app else request, scenario.dialect)
                repeat_environment(graph.import_folders)
        except SourceError as error:
            return refused(scenario, error, recorded)
        unanswered = world.unanswered_by_import() if of_app else []
        names: Sequence[Problem] = ()
        try:
            is_open = isinstance(graph, NativeGraph) and graph.has_tasks
            names = unknown_names(scenario, graph, settings) if not is_open else ()
            names = [*names, *problems_of_native_keys(scenario, graph)]
            wrong = [problem for problem in names if problem.severity == "error"]
            names = names if not of_app else wrong  # the rest is known after the run
            if wrong:
                return failed_result(FormatError(wrong))
            if not of_app:
                spec = without_mutator(scenario.world, graph)
                world = ScriptedWorld(spec, seed=seed, folders=folders, backend=backend, last=last)
                requests = ToolRequests(world, known, upstream)
                stack.enter_context(_intercepted(requests, scenario, backend))
            prices = PriceList(settings.prices)
            with marked_interrupts(), runner:
                # Not `runner.run`, whose handler of Ctrl-C would wait for a blocking tool.
                turns = run_turns(scenario, graph, world, seed, backend, requests, prices)
                try:
                    result = loop().run_until_complete(turns)
                finally:
                    in_turn.close()
                    watch.put_back_builtins()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a tool may have raised anything
            result = result or _crashed(error, graph, backend)
        result.observed.warnings += unanswered
        if of_app and not app_process.is_available():
            result.observed.warnings.append(app_process.CANNOT_FORK)
        if isinstance(graph, NativeGraph) and of_app and result.trace is not None:
            ended, connected = result.observed.status in ("completed", "interrupted"), sorted(world.connected)
            names = names_unknown_in_run(scenario, graph, result.trace, settings, connected, ended=ended)
        told = *scenario.warnings, *names, *absent_variables(scenario, recorded, graph.sources)
        result.observed.warnings += [problem.one_line for problem in told]
        # Refused connections are reported, since the agent's code may have caught the error.
        result.observed.warnings += [*connections]
        result.varies = is_real or scenario.draws or chance.drawn
        result.seeded |= scenario.draws or chance.used
        result.now = instant_text(readings.start)
        if settings.narrate and result.trace is not None:
            result.narration = [*narration(result.trace.events, graph)]
        return result


def _loop_of(runner: asyncio.Runner, readings: Readings, in_turn: ExitStack | None) -> VirtualTimeLoop:
    """Return the loop of a run.

    The threads of an app take turns until `in_turn` is closed: over its whole run, since one that the making of the
    graph or a turn of the conversation starts may work for later ones, as that of a connection with a database does.
    """
    made = runner.get_loop()
    assert isinstance(made, VirtualTimeLoop)
    readings.follow(made)
    if in_turn is not None:
        in_turn.enter_context(made.threads_in_turn())
    return made


def _intercepted(
    requests: ToolRequests, scenario: Scenario, backend: RecordedBackend | None, *, of_app: bool = False
) -> AbstractContextManager[None]:
    """Answer the HTTP requests of real tools inside.

    Without stubs and recording, the closed network refuses them. Those of an app are answered in every scenario,
    so that one without stubs fails with `UnscriptedCall`, not with what a client makes of a closed network.
    """
    if backend is not None:
        return backend.intercepted(requests)
    if of_app:  # from now on, as its import may make requests
        return intercepted(requests)
    has_stubs = any(world.llm or world.http for world in scenario.worlds)
    return intercepted_from_first_effect(requests) if has_stubs else nullcontext()


def _crashed(error: BaseException, graph: Graph | None, backend: RecordedBackend | None) -> RunResult:
    """Return the result of a run that crashed or was cut off."""
    result = crashed_result(error, graph)
    if backend is not None:
        result.observed.rewrite(backend.without_secrets)
    return result
