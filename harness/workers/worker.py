"""The main function of a worker process, which runs the scenarios that it receives and sends their outcomes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harness.scenario.model import Scenario
from harness.settings import Projects, Settings
from harness.workers.garbage import reduce_gc

if TYPE_CHECKING:
    from harness.recording.permits import PermitSource

NOTE_SIZE: Final = 400
"""Bytes of the shared memory in which a worker describes its current activity. It outlives the worker."""


Work = Callable[[int, Scenario, Settings, Callable[[Any], None]], None]
"""The work for a scenario: takes its number, the scenario, its settings, and a function that tells the parent."""


class Task(NamedTuple):
    """A scenario to run, with the environment variables and the current folder of the parent process."""

    number: int
    scenario: Scenario
    environment: dict[str, str]
    folder: str


def worker_main(
    connection: Connection,
    note: Any,
    projects: Projects,
    stdout_to_stderr: bool,
    only_one: bool,
    source: PermitSource | None,
    work: Work | None = None,
) -> None:
    """Run scenarios until the parent closes the connection, or after the first with `only_one`.

    The worker sends (-1, None) when everything is imported, an outcome with its record for each repeat of a scenario,
    and (number, None) at the end of a scenario. It ignores Ctrl-C, which the parent handles.

    Args:
        connection: the pipe to the parent.
        note: shared memory of `NOTE_SIZE` bytes for the current activity.
        projects: the settings of the scenarios.
        stdout_to_stderr: redirect standard output to standard error.
        only_one: end after one scenario.
        source: the permits for calls of real systems; None if they need none.
        work: done for each scenario in place of its runs; what it tells is sent as an outcome is.
    """
    from harness.recording.permits import permits_from
    from harness.report.results import record
    from harness.scenario.app_process import close_apps
    from harness.scenario.real_limit import progress
    from harness.scenario.redaction import secrets_of_process
    from harness.scenario.run import outcomes
    from harness.secrets.output import redacted_process

    def take_note(text: str) -> None:
        note.value = text.encode("utf-8", "replace")[: NOTE_SIZE - 1]

    def stop(_signal: int, _frame: object) -> None:
        progress.stopped = True
        raise KeyboardInterrupt

    if stdout_to_stderr:
        os.dup2(2, 1)  # redirects child processes, too
    reduce_gc()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, stop)
    progress.listener = take_note
    with (
        suppress(EOFError, OSError, KeyboardInterrupt),  # the parent stops the worker, or has ended
        redacted_process(secrets_of_process(projects.around(Path.cwd())).text),
        redirect_stdout(sys.stderr if stdout_to_stderr else sys.stdout),
        ExitStack() as at_end,
    ):
        at_end.callback(close_apps)
        at_end.enter_context(permits_from(source))
        connection.send((-1, None))
        while True:
            task = Task(*connection.recv())
            _enter(task)
            settings = projects.of(task.scenario.file)
            if work is not None:
                work(task.number, task.scenario, settings, partial(_tell, connection, task.number))
            else:
                for outcome in outcomes(task.scenario, settings):
                    made = record(outcome)  # made here, as the outcome is sent without its events
                    connection.send((task.number, outcome, made))
            take_note("")
            sys.stdout.flush()
            connection.send((task.number, None))
            if only_one:
                return


def _tell(connection: Connection, number: int, told: Any) -> None:
    connection.send((number, told))


def _enter(task: Task) -> None:
    """Take over the parent's environment and folder, which may have changed since the server was started."""
    if dict(os.environ) != task.environment:
        os.environ.clear()
        os.environ.update(task.environment)
    os.chdir(task.folder)
