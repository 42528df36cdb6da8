"""The main function of a worker process: run the scenarios it is given, and send their outcomes."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import redirect_stdout, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.scenario.model import Scenario
from harness.settings import Projects
from harness.workers.garbage import collect_rarely

NOTE_SIZE: Final = 400
"""Bytes of memory in which a worker says what it is doing. They outlive it."""


class Task(NamedTuple):
    """A scenario to run, and what of the parent's process it is run in."""

    number: int
    scenario: Scenario
    environment: dict[str, str]
    folder: str


def work(
    connection: Connection, note: Any, projects: Projects, stdout_to_stderr: bool, only_one: bool
) -> None:
    """Run scenarios until the parent wants no more, or `only_one`. Ctrl-C is the parent's to handle.

    Sends (-1, None) when everything is imported, an outcome with its record for each repeat of a scenario, and
    (number, None) at its end. `note` is shared memory; see NOTE_SIZE.
    """
    from harness.report.results import record
    from harness.scenario.progress import progress
    from harness.scenario.redaction import secrets_of_process
    from harness.scenario.run import outcomes
    from harness.secrets.output import redacted_process

    def take_note(text: str) -> None:
        note.value = text.encode("utf-8", "replace")[: NOTE_SIZE - 1]

    if stdout_to_stderr:
        os.dup2(2, 1)  # for child processes, too
    collect_rarely()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    progress.listener = take_note
    with (
        suppress(EOFError, OSError, KeyboardInterrupt),  # the parent wants no more, or is gone
        redacted_process(secrets_of_process(projects.around(Path.cwd())).text),
        redirect_stdout(sys.stderr if stdout_to_stderr else sys.stdout),
    ):
        connection.send((-1, None))
        while True:
            task = Task(*connection.recv())
            _enter(task)
            for outcome in outcomes(task.scenario, projects.of(task.scenario.file)):
                made = record(outcome)  # first: the outcome is sent without its events
                connection.send((task.number, outcome, made))
            take_note("")
            sys.stdout.flush()
            connection.send((task.number, None))
            if only_one:
                return


def _enter(task: Task) -> None:
    """Be where the parent is: workers are forked from a server that was started before."""
    if dict(os.environ) != task.environment:
        os.environ.clear()
        os.environ.update(task.environment)
    os.chdir(task.folder)
