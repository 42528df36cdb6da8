"""Runs of LangGraph apps in processes that begin right after the import of the app.

    this process ──fork──▶ an app's process imports it ──fork──▶ a run, which sends its outcomes and ends
                           (kept while its files are the same)

What a run leaves in modules (rate limiters, caches, a checkpointer that was compiled in) reaches no other run, and
two apps may both have a package `agent`.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

from harness.chance import seeded_chance
from harness.dialects.load import load_graph
from harness.dialects.registry import dialect_named, dialect_of
from harness.dialects.request import Stamp, stamp
from harness.errors import HarnessError, SourceError, WorkerDied
from harness.graph.model import Graph
from harness.scenario.evaluation import dead_worker_outcomes
from harness.scenario.model import Scenario, load_request
from harness.scenario.outcome import Outcome
from harness.scenario.process_state import prepare_process
from harness.scenario.real_limit import RealTimeExceeded
from harness.scenario.recording import as_recorded
from harness.settings import RecordMode, Settings
from harness.source.imports import bundled_data
from harness.time.readings import clock_readings
from harness.time.rebinding import USER, origin_of
from harness.units import DEFAULT_NOW
from harness.world.network import closed_network

CANNOT_FORK: Final = (
    "this system cannot fork: what runs of an app leave in its modules reaches later runs in this process"
)
"""The warning of a run of an app in the process of all scenarios."""
PROMPTS_IN_CODE: Final = "the prompts of an app are in its code, and cannot be listed or varied yet"
"""Why there is nothing to list, replace or search for in an app (`is_app`)."""
_MOST_KEPT: Final = 4
"""The most processes of apps that are kept; each has imported LangGraph and more."""
_PIPE: Final = 60_000
"""Bytes that a pipe takes without a reader."""
_OVERTIME_S: Final = 5.0
"""Real seconds past its limit after which the process of a run is killed, if it did not stop the run itself."""

Result = TypeVar("Result")
Runs = Callable[[Iterable[int]], Iterator[Outcome]]
"""Makes the runs of a scenario with these numbers."""

_is_inside = False
"""This process is that of a run of an app."""


def is_available() -> bool:
    """True if the system can fork."""
    return hasattr(os, "fork")


def concerns(scenario: Scenario) -> bool:
    """True if a scenario runs an app in a process of its own."""
    return not _is_inside and is_available() and is_app(scenario.manifests[0], scenario.dialect)


@lru_cache(256)
def is_app(manifest: Path, dialect: str | None) -> bool:
    """True if a manifest is that of a LangGraph app, or names a callable."""
    if dialect is None and ":" not in manifest.name and manifest.suffix not in ("", ".json"):
        return False
    try:
        found = dialect_named(dialect) if dialect is not None else dialect_of(manifest)
    except SourceError:  # the run reports it
        return False
    return hasattr(found, "preload")


def graph_outside_runs(scenario: Scenario, settings: Settings) -> Graph:
    """Load the graph of a scenario for its names. An app is not imported: its runs do that in their own processes."""
    request = replace(load_request(scenario, settings), imports=not concerns(scenario))
    return load_graph(request, scenario.dialect)


def outcomes_of_app(
    scenario: Scenario,
    settings: Settings,
    make: Callable[[Scenario, Settings, Iterable[int]], Iterator[Outcome]],
) -> Iterator[Outcome]:
    """Yield the outcomes of a scenario, each run in a process that has just imported the app.

    `make` makes runs with these numbers, in any process.
    """
    scenario = as_recorded(scenario, settings)
    for number in range(scenario.repeat):
        try:
            app = _app_process(scenario, settings, make)
            app.connection.send((scenario, settings, [number]))
            child = app.connection.recv()
        except (EOFError, OSError):
            close_apps()
            yield from dead_worker_outcomes(scenario, WorkerDied(None), number)
            return
        except HarnessError as error:
            yield from dead_worker_outcomes(scenario, error, number)
            return
        limit_s = settings.real_timeout if settings.record_mode is RecordMode.NONE else None
        yield from _received(app.connection, child, scenario, [number], limit_s)


@contextmanager
def conditions_of_imports(start: datetime) -> Iterator[None]:
    """Let modules that are imported inside read the clock and draw random numbers as they do for a run."""
    with clock_readings(start), bundled_data(), seeded_chance(0, "import"):
        yield


def in_own_process(work: Callable[[], Result]) -> Result:
    """Return what `work` returns in a fork of this process, which then ends.

    Raises:
        WorkerDied: the process ended without a result.
    """
    ours, theirs = Pipe(duplex=False)
    child = _fork(ours)
    if not child:
        _send_outcomes(theirs, lambda: iter([work()]))
    theirs.close()
    with ours:
        try:
            result: Result = ours.recv()
        except EOFError:
            _, status = os.waitpid(child, 0)
            raise WorkerDied(os.waitstatus_to_exitcode(status)) from None
    os.waitpid(child, 0)
    return result


def _received(
    connection: Connection, child: int, scenario: Scenario, numbers: Iterable[int], limit_s: float | None
) -> Iterator[Outcome]:
    """Yield the outcomes that a process sends, and for those that are missing, that it died."""
    missing = list(numbers)
    error: HarnessError | None = None
    try:
        while True:
            if limit_s is not None and not connection.poll(limit_s + _OVERTIME_S):
                error = RealTimeExceeded(limit_s)
                os.kill(child, signal.SIGKILL)
                limit_s = None
            found = connection.recv()
            if not isinstance(found, Outcome):
                break
            missing.remove(found.repeat)
            yield found
    except EOFError:
        found = None
    except BaseException:  # Ctrl-C, or nobody wants more outcomes
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        close_apps()
        raise
    if missing:
        died = error or WorkerDied(found if found != 0 else None)
        for outcome in dead_worker_outcomes(scenario, died, missing[0]):
            if outcome.repeat in missing:
                yield outcome


# ---------------------------------------------------------------- the process of an app


@dataclass(eq=False)
class _AppProcess:
    """A process that has imported an app. `files` are those of the app, as they were then."""

    process: int
    connection: Connection
    files: dict[Path, Stamp | None]

    def is_stale(self) -> bool:
        return any(stamp(path) != before for path, before in self.files.items())

    def close(self) -> None:
        self.connection.close()
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGTERM)
        with suppress(ChildProcessError):
            os.waitpid(self.process, 0)


_apps: Final[dict[Any, _AppProcess]] = {}


def close_apps() -> None:
    """End the processes of all apps. They hold what this one has open, such as the pipe of its redacted output."""
    for app in _apps.values():
        app.close()
    _apps.clear()


def _app_process(
    scenario: Scenario,
    settings: Settings,
    make: Callable[[Scenario, Settings, Iterable[int]], Iterator[Outcome]],
) -> _AppProcess:
    """Return a process that has imported the app of a scenario, and still has its current files."""
    request = load_request(scenario, settings)
    name, of_object, _ = request.path.name.partition(":")
    manifest = request.path.with_name(name) if of_object else request.path  # its objects share one import
    variables = tuple(sorted(request.env.items()))
    key = (
        manifest,
        request.agent,
        variables,
        request.folders,
        scenario.imported or scenario.now,
        os.getcwd(),
    )
    app = _apps.pop(key, None)
    if app is not None and app.is_stale():
        app.close()
        app = None
    if app is None:
        # Once for all apps, as each needs it.
        importlib.import_module("harness.engine.native")
    for imports in (True, False):
        if app is None:
            ours, theirs = Pipe()
            process = _fork(ours)
            if not process:
                _serve_runs(theirs, scenario, settings, make, imports=imports)
            theirs.close()
            app = _AppProcess(process, ours, {})
            try:
                if not ours.poll(settings.real_timeout + _OVERTIME_S):
                    raise RealTimeExceeded(settings.real_timeout, "the import of the app")
                files = ours.recv()
            except (EOFError, OSError):
                files = None
            except BaseException:
                app.close()
                raise
            if files is None:
                app.close()
                app = None
            else:
                app.files = files
    if app is None:
        raise WorkerDied(None)
    _apps[key] = app  # the last one used
    if len(_apps) > _MOST_KEPT:
        _apps.pop(next(iter(_apps))).close()
    return app


def _fork(ours: Connection) -> int:
    """Fork, and return the number of the child; 0 in the child, which keeps nothing that the parent waits for."""
    global _is_inside
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # The threads of this process (those that show progress) hold no lock that a run needs.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        _is_inside = True
        _keep_warnings_warnings()
        ours.close()
        for app in _apps.values():
            app.connection.close()
        _apps.clear()
    return child


def _keep_warnings_warnings() -> None:
    """Drop the filters that raise warnings as errors, such as pytest's: an app has only those that it sets itself."""
    kept = [each for each in warnings.filters if each[0] != "error"]
    warnings.resetwarnings()
    warnings.filters[:] = kept  # type: ignore[index]


def _serve_runs(
    connection: Connection,
    scenario: Scenario,
    settings: Settings,
    make: Callable[[Scenario, Settings, Iterable[int]], Iterator[Outcome]],
    *,
    imports: bool,
) -> None:
    """Import an app, then fork a process for each run that is asked for. Never returns.

    Without `imports`, each run imports the app itself, and tells its problem, or answers its requests by stubs.
    """
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        connection.send(_import_app(scenario, settings) if imports else {})
        gc.collect()
        gc.freeze()
        while True:
            given, its_settings, numbers = connection.recv()
            given = given if imports else replace(given, imported=None)
            reading, writing = os.pipe()
            child = os.fork()
            if not child:
                signal.signal(signal.SIGINT, _left_to_parent)  # not ignored, as programs it starts would be
                imported = partial(_tell_imports, writing, frozenset(sys.modules))
                _send_outcomes(connection, partial(make, given, its_settings, numbers), at_end=imported)
            os.close(writing)
            connection.send(child)
            _, status = os.waitpid(child, 0)
            connection.send(os.waitstatus_to_exitcode(status))
            with os.fdopen(reading) as names:
                _import_for_later_runs(names.read().split())
    except (EOFError, OSError):  # the parent has ended
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _left_to_parent(_signal: int, _frame: object) -> None:
    """Do nothing: after Ctrl-C, the command lets this run end, or kills it."""


def _import_app(scenario: Scenario, settings: Settings) -> dict[Path, Stamp | None] | None:
    """Import an app, and return its files. None if each run must import it itself.

    That is so if it failed, reached for the network, or left a thread at work, such as one with a loop: a fork has
    no threads but its own.
    """
    from harness.world.mcp.of_apps import wrap_mcp  # with LangGraph, which this process needs

    prepare_process()
    threads = set(threading.enumerate())
    request = load_request(scenario, settings)
    start = scenario.imported or scenario.now or settings.now or DEFAULT_NOW
    wrap_mcp()  # before the app has functions of the SDK
    try:
        dialect = dialect_named(scenario.dialect) if scenario.dialect else dialect_of(request.path)
        with closed_network() as refused, conditions_of_imports(start):
            folders = dialect.preload(request)  # type: ignore[attr-defined]
    except (SourceError, Exception):
        return None
    own = [Path(file) for each in list(sys.modules.values()) if (file := getattr(each, "__file__", None))]
    files = {path: stamp(path) for path in own if any(path.is_relative_to(folder) for folder in folders)}
    return None if refused or set(threading.enumerate()) - threads else files


def _tell_imports(pipe: int, before: frozenset[str]) -> None:
    """Write the names of the installed modules that a run imported to a pipe."""
    found = [
        name for name, module in list(sys.modules.items()) if name not in before and _is_installed(module)
    ]
    os.write(pipe, " ".join(found)[:_PIPE].encode())


def _is_installed(module: object) -> bool:
    return isinstance(module, ModuleType) and origin_of(module) is not USER


def _import_for_later_runs(names: Iterable[str]) -> None:
    """Import what a run imported besides modules of the app, which would take each run some tenths of a second."""
    with closed_network(), conditions_of_imports(DEFAULT_NOW):
        for name in names:
            with suppress(Exception):
                importlib.import_module(name)
    gc.freeze()


def _send_outcomes(
    connection: Connection, runs: Callable[[], Iterator[object]], *, at_end: Callable[[], None] | None = None
) -> None:
    """Make runs, send their outcomes, and end this process."""
    status = 1
    try:
        for outcome in runs():
            connection.send(outcome)
        if at_end is None:
            connection.send(0)
        else:
            at_end()
        status = 0
    except (KeyboardInterrupt, OSError):
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
