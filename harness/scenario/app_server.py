"""The processes of apps from the inside: one imports an app, and forks others for its runs.

    the process of an app: import_app ──▶ serve_runs ──fork──▶ a run: send_outcomes, then its end
                              └── serve_workers ──fork──▶ the same for each worker: serve_runs

`harness.scenario.app_process` starts them, and receives the outcomes.
"""

from __future__ import annotations

import gc
import importlib
import os
import platform
import select
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Final

from harness.chance import seeded_chance
from harness.dialects.registry import dialect_named, dialect_of
from harness.dialects.request import Stamp, stamp
from harness.errors import SourceError
from harness.scenario.leftovers import end_processes
from harness.scenario.model import Scenario, load_request
from harness.scenario.outcome import Outcome
from harness.scenario.process_state import prepare_process
from harness.scenario.redaction import prepare_redaction
from harness.settings import RecordMode, Settings
from harness.source.imports import bundled_data, hide_imported
from harness.time.readings import clock_readings
from harness.time.rebinding import USER, origin_of
from harness.units import DEFAULT_NOW
from harness.world.network import closed_network

Make = Callable[[Scenario, Settings, Iterable[int]], Iterator[Outcome]]
"""Makes runs of a scenario with these numbers, in any process."""
Files = dict[Path, Stamp | None]
"""The files of an app, as they were when it was imported."""

_ENDING_S: Final = 0.3
"""Real seconds in which a thread that an import started may end."""
_PIPE: Final = 60_000
"""Bytes that a pipe takes without a reader."""


@contextmanager
def conditions_of_imports(start: datetime) -> Iterator[None]:
    """Let modules that are imported inside read the clock and draw random numbers as they do for a run."""
    with clock_readings(start), bundled_data(), seeded_chance(0, "import"):
        yield


def keep_warnings_warnings() -> None:
    """Drop the filters that raise warnings as errors, such as pytest's: an app has only those that it sets itself."""
    kept = [each for each in warnings.filters if each[0] != "error"]
    warnings.resetwarnings()
    warnings.filters[:] = kept  # type: ignore[index]


def fork() -> int:
    """Fork this process, without the warnings of Python and of libraries that threads are not forked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def serve_runs(
    scenario: Scenario, settings: Settings, make: Make, connection: Connection, *, imports: bool
) -> None:
    """Import an app and send its files, or None; then fork a process for each run that is asked for.

    Without `imports`, each run imports the app itself, and tells its problem, or answers its requests by stubs.
    """
    with _ends_process():
        hide_imported()
        files = _import_app(scenario, settings, on_refusal=_leave) if imports else {}
        connection.send(files)
        if files is not None:
            _fork_runs(connection, make, imports=imports)


def serve_workers(
    address: str, scenario: Scenario, settings: Settings, make: Make, connection: Connection
) -> None:
    """Import an app and send its files, or None; then fork a process for each worker that connects to the socket.

    It sends its number and the files to the worker, then serves it as `serve_runs` does.
    """
    with _ends_process(), socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(128)
        hide_imported()
        files = _import_app(scenario, settings, on_refusal=_leave)
        connection.send(files)
        if files is None:
            return
        gc.collect()
        gc.freeze()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            readable, _, _ = select.select([listening.fileno(), connection.fileno()], [], [])
            if connection.fileno() in readable:
                connection.recv()  # its end
            accepted, _ = listening.accept()
            if not fork():
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listening.close()
                connection.close()
                of_worker = Connection(accepted.detach())
                of_worker.send((os.getpid(), files))
                _fork_runs(of_worker, make, imports=True)
            accepted.close()


@contextmanager
def _ends_process() -> Iterator[None]:
    """End this process after what is done inside, which ends when the process that it serves has ended."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        yield
    except (EOFError, OSError):
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _fork_runs(connection: Connection, make: Make, *, imports: bool) -> None:
    gc.collect()
    gc.freeze()
    while True:
        given, its_settings, numbers = connection.recv()
        # A recording tells the instant of an import before its runs: so it is here, in the process of the run.
        before = not imports and given.imported is not None and its_settings.record_mode is RecordMode.NONE
        given = given if imports or before else replace(given, imported=None)
        prepare_redaction(given, its_settings)
        reading, writing = os.pipe()
        child = fork()
        if not child:
            signal.signal(signal.SIGINT, _left_to_parent)  # not ignored, as programs it starts would be
            if before:
                _import_app(given, its_settings)
            imported = partial(_tell_imports, writing, len(sys.modules))
            send_outcomes(connection, partial(make, given, its_settings, numbers), at_end=imported)
        os.close(writing)
        connection.send(child)
        _, status = os.waitpid(child, 0)
        connection.send(os.waitstatus_to_exitcode(status))
        with os.fdopen(reading) as names:
            _import_for_later_runs(names.read().split())


def _left_to_parent(_signal: int, _frame: object) -> None:
    """Do nothing: after Ctrl-C, the command lets this run end, or kills it."""


def _leave() -> None:
    """End this process, whose import reached for the network: each run imports the app, where stubs may answer it.

    The client of a database would try again for half a minute of real time.
    """
    os._exit(0)


def _import_app(
    scenario: Scenario, settings: Settings, on_refusal: Callable[[], object] | None = None
) -> dict[Path, Stamp | None] | None:
    """Import an app, and return its files. None if each run must import it itself.

    That is so if it failed, reached for the network, or left a thread at work, such as one with a loop: a fork has
    no threads but its own.
    """
    from harness.world.mcp.of_apps import wrap_mcp  # with LangGraph, which this process needs

    prepare_process()
    platform.platform()  # what clients of models tell in headers: it starts a process, which each run would do again
    threads = set(threading.enumerate())
    request = load_request(scenario, settings)
    start = scenario.imported or scenario.now or settings.now or DEFAULT_NOW
    wrap_mcp()  # before the app has functions of the SDK
    try:
        dialect = dialect_named(scenario.dialect) if scenario.dialect else dialect_of(request.path)
        with closed_network(on_refusal) as refused:
            with conditions_of_imports(start):
                folders = dialect.preload(request)  # type: ignore[attr-defined]
            for each in set(threading.enumerate()) - threads:
                each.join(_ENDING_S)  # one that the import needed for a moment may just be ending
    except (SourceError, Exception):
        return None
    own = [Path(file) for each in list(sys.modules.values()) if (file := getattr(each, "__file__", None))]
    files = {path: stamp(path) for path in own if any(path.is_relative_to(folder) for folder in folders)}
    return None if refused or set(threading.enumerate()) - threads else files


def _tell_imports(pipe: int, before: int) -> None:
    """Write the names of the installed modules that a run imported, after `before` others, to a pipe.

    The others are not looked at: each would be a page of memory that this process no longer shares.
    """
    latest = [*islice(reversed(sys.modules), len(sys.modules) - before)] if len(sys.modules) > before else []
    found = [name for name in reversed(latest) if _is_installed(sys.modules[name])]
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


def send_outcomes(
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
        end_processes()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
