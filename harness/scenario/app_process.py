"""Runs of LangGraph apps in processes that begin right after the import of the app.

    this process ──fork──▶ an app's process imports it ──fork──▶ a run, which sends its outcomes and ends
                           (kept while its files are the same)

What a run leaves in modules (rate limiters, caches, a checkpointer that was compiled in) reaches no other run, and
two apps may both have a package `agent`.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from multiprocessing.connection import Client, Connection, Pipe
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harness.dialects.load import load_graph
from harness.dialects.registry import dialect_named, dialect_of
from harness.dialects.request import stamp
from harness.errors import HarnessError, SourceError, WorkerDied
from harness.graph.model import Graph
from harness.scenario.app_server import (
    Files,
    Make,
    fork,
    keep_warnings_warnings,
    send_outcomes,
    serve_runs,
    serve_workers,
)
from harness.scenario.evaluation import dead_worker_outcomes, unjudged_outcome
from harness.scenario.model import Scenario, load_request, real_timeout_of
from harness.scenario.outcome import Outcome
from harness.scenario.real_limit import RealTimeExceeded
from harness.settings import RecordMode, Settings

if TYPE_CHECKING:
    from harness.recording.permits import PermitSource

CANNOT_FORK: Final = (
    "this system cannot fork: what runs of an app leave in its modules reaches later runs in this process"
)
"""The warning of a run of an app in the process of all scenarios."""
_MOST_KEPT: Final = 4
"""The most processes of apps that are kept; each has imported LangGraph and more."""
_OVERTIME_S: Final = 5.0
"""Real seconds past its limit after which the process of a run is killed, if it did not stop the run itself."""

Result = TypeVar("Result")

_is_inside = False
"""This process is that of a run of an app."""


def is_available() -> bool:
    """True if the system can fork."""
    return hasattr(os, "fork")


def is_inside() -> bool:
    """True in the process of one run of an app, which ends with it."""
    return _is_inside


def concerns(scenario: Scenario) -> bool:
    """True if a scenario runs an app in a process of its own."""
    return (
        not _is_inside
        and not scenario.in_process
        and is_available()
        and is_app(scenario.manifests[0], scenario.dialect)
    )


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
    make: Make,
) -> Iterator[Outcome]:
    """Yield the outcomes of a scenario, each run in a process that has just imported the app.

    `make` makes runs with these numbers, in any process.
    """
    from harness.scenario.recording import as_recorded  # agents of the other dialects may need no recording

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
        limit_s = real_timeout_of(scenario, settings) if settings.record_mode is RecordMode.NONE else None
        yield from _received(app.connection, child, scenario, number, limit_s)


def in_own_process(work: Callable[[], Result]) -> Result:
    """Return what `work` returns in a fork of this process, which then ends.

    Raises:
        WorkerDied: the process ended without a result.
    """
    results: list[Result] = []
    told_by(lambda tell: tell(work()), results.append)
    return results[0]


def told_by(work: Callable[[Callable[[Any], None]], None], receive: Callable[[Any], None]) -> None:
    """Do `work` in a fork of this process, which then ends, and receive what it tells.

    Raises:
        WorkerDied: the process ended before its work.
    """
    ours, theirs = Pipe(duplex=False)
    child = _fork(ours)
    if not child:

        def told() -> Iterator[object]:
            work(lambda each: theirs.send((each,)))
            yield from ()

        send_outcomes(theirs, told)
    theirs.close()
    with ours:
        try:
            while received := ours.recv():
                receive(received[0])
        except EOFError:
            _, status = os.waitpid(child, 0)
            raise WorkerDied(os.waitstatus_to_exitcode(status)) from None
        except BaseException:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
    os.waitpid(child, 0)


def _received(
    connection: Connection, child: int, scenario: Scenario, number: int, limit_s: float | None
) -> Iterator[Outcome]:
    """Yield the outcome that the process of a run sends; if it sends none, that it died."""
    error: HarnessError | None = None
    is_missing = True
    try:
        while True:
            if limit_s is not None and not connection.poll(limit_s + _OVERTIME_S):
                error = RealTimeExceeded(limit_s)
                os.kill(child, signal.SIGKILL)
                limit_s = None
            found = connection.recv()
            if not isinstance(found, Outcome):
                break
            is_missing = False
            yield found
    except EOFError:
        found = None
    except BaseException:  # Ctrl-C, or nobody wants more outcomes
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        close_apps()
        raise
    if is_missing:
        yield unjudged_outcome(scenario, number, error or WorkerDied(found or None), 0.0)


# ---------------------------------------------------------------- the process of an app


@dataclass(eq=False)
class _AppProcess:
    """A process that has imported an app. `files` are those of the app, as they were then."""

    process: int
    connection: Connection
    files: Files

    def is_stale(self) -> bool:
        return any(stamp(path) != before for path, before in self.files.items())

    def close(self) -> None:
        self.connection.close()
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)  # the app may have a handler of SIGTERM
        with suppress(ChildProcessError):
            os.waitpid(self.process, 0)


_apps: Final[dict[Any, _AppProcess]] = {}
_held: Final = ExitStack()
"""The parts of this worker that others use: processes of apps, and what tells them where to find these."""


def close_apps() -> None:
    """End the processes of all apps. They hold what this one has open, such as the pipe of its redacted output."""
    for app in _apps.values():
        app.close()
    _apps.clear()
    _held.close()


def _app_process(
    scenario: Scenario,
    settings: Settings,
    make: Make,
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
        request.changes.texts,
    )
    app = _apps.pop(key, None)
    if app is not None and app.is_stale():
        app.close()
        app = None
    if app is None:
        # Once for all apps, as each needs it.
        importlib.import_module("harness.engine.native")
    from harness.recording.permits import current_source

    source = current_source()
    # Of many variants and mutants, each would be kept to the end of the command if it were shared.
    if app is None and source is not None and not request.changes.texts:
        app = _shared_app(source, repr(key), scenario, settings, make)
    for imports in (True, False):
        app = app or _new_app(
            scenario, settings, partial(serve_runs, scenario, settings, make, imports=imports)
        )
    if app is None:
        raise WorkerDied(None)
    _apps[key] = app  # the last one used
    if len(_apps) > _MOST_KEPT:
        _apps.pop(next(iter(_apps))).close()
    return app


def _new_app(
    scenario: Scenario, settings: Settings, serve: Callable[[Connection], object]
) -> _AppProcess | None:
    """Fork a process that imports the app, and then serves; None if it cannot be imported beforehand."""
    ours, theirs = Pipe()
    process = _fork(ours)
    if not process:
        serve(theirs)
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
        return None
    app.files = files
    return app


def _shared_app(
    source: PermitSource,
    key: str,
    scenario: Scenario,
    settings: Settings,
    make: Make,
) -> _AppProcess | None:
    """Return a fork of the process that has imported the app for all workers; the first of them makes that one.

    None if it cannot be imported beforehand, or is not there any more, or its files have changed.
    """
    known = _held.enter_context(source.shared(key))
    address = known.recv()
    if address is None:
        folder = mkdtemp(prefix="harness-")
        _held.callback(shutil.rmtree, folder, ignore_errors=True)
        app = None
        try:
            made_at = str(Path(folder, "app"))
            app = _new_app(scenario, settings, partial(serve_workers, made_at, scenario, settings, make))
        finally:  # the other workers wait for this
            address = made_at if app is not None else ""
            known.send(address)
        if app is not None:
            _held.callback(app.close)
    return _connected(address) if address else None


def _connected(address: str) -> _AppProcess | None:
    try:
        connection = Client(address)
        process, files = connection.recv()
    except (EOFError, OSError):
        return None
    app = _AppProcess(process, connection, files)
    if app.is_stale():
        app.close()
        return None
    return app


def _fork(ours: Connection) -> int:
    """Fork, and return the number of the child; 0 in the child, which keeps nothing that the parent waits for."""
    global _is_inside
    sys.stdout.flush()
    sys.stderr.flush()
    child = fork()  # the threads of this process (those that show progress) hold no lock that a run needs
    if not child:
        _is_inside = True
        keep_warnings_warnings()
        sys.argv = [""]  # those of the command are not the app's, which does the same in each command
        ours.close()
        for app in _apps.values():
            app.connection.close()
        _apps.clear()
        _held.pop_all()  # they are the parent's
    return child
