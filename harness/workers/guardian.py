"""A process beside the command, which writes its report where the command itself cannot do so any more.

    command ──notes in shared memory──▶ guardian, a fork, which waits for the end of the command, or of a run's time

Code in C that never ends holds the interpreter, so that no other code of its process runs, and a crash ends the
process. The guardian needs nothing of it.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import mmap
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from harness.errors import HarnessError, SourceError, WorkerDied
from harness.report.results import ResultsWriter
from harness.scenario import app_process
from harness.scenario.evaluation import dead_worker_outcomes
from harness.scenario.leftovers import at_cut_off
from harness.scenario.load import load_file
from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome
from harness.scenario.real_limit import RealTimeExceeded, progress
from harness.settings import Projects, RecordMode, Settings
from harness.source.document import shown_path
from harness.time.real import real

BETWEEN, RUNNING, REPORTED = range(3)
"""States of the command: it is between two runs, makes one, or has written its report."""
OVERTIME_S: Final = 5.0
"""Real seconds past its limit after which a run cannot be interrupted."""
ALONE: Final = '`isolation = "process"` would have ended this run alone'
_EXIT_S: Final = 10.0
"""Real seconds that the command may take to leave when it has written its report."""
_POLL_S: Final = 0.1


class _Note(ctypes.Structure):
    """The state of the command, for how many real seconds it may last (0: without a limit), and in which run."""

    _fields_ = (
        ("number", ctypes.c_uint),
        ("state", ctypes.c_uint),
        ("limit_s", ctypes.c_double),
        ("repeat", ctypes.c_uint),
        ("name", ctypes.c_char * 2000),
        ("doing", ctypes.c_char * 2000),
    )


class _Guardian:
    """The guardian of this process. `report`: the folder of its report; None if another process writes that."""

    def __init__(self, projects: Projects, report: Path | None) -> None:
        self.report = report
        self._projects = projects
        self._note = _Note.from_buffer(mmap.mmap(-1, ctypes.sizeof(_Note)))
        self._command = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # no thread of this process holds what it needs
            self._process = os.fork()
        if not self._process:
            try:
                self._watch()
            finally:
                os._exit(0)
        # To end this process with this number as its exit code, which works while code in C holds the interpreter.
        libc = ctypes.CDLL(None)
        libc.signal(signal.SIGQUIT, ctypes.cast(libc._exit, ctypes.c_void_p))
        self._at_exit = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._exit_of_code)
        self._libc = libc if hasattr(libc, "gnu_get_libc_version") else None  # others cannot forget it
        if self._libc is not None:
            self._libc["__cxa_atexit"](self._at_exit, None, ctypes.byref(self._note))
        progress.listener = progress.listener or self._doing

    def note(self, state: int, limit_s: float = 0, name: str = "", repeat: int = 0) -> None:
        note = self._note
        note.number += 1
        note.state, note.limit_s, note.repeat, note.name = state, limit_s, repeat, _fitting(name)

    def end(self) -> None:
        process, self._process = self._process, 0
        if self._libc is not None:
            self._libc["__cxa_finalize"](ctypes.byref(self._note))  # Python may not be called later
        if process and os.getpid() == self._command:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)

    def _exit_of_code(self, _: object) -> None:
        """Leave with 3 where code in C calls `exit`, whose code might say that all is well."""
        if self._process and os.getpid() == self._command:
            os.kill(self._command, signal.SIGQUIT)

    def _doing(self, text: str) -> None:
        self._note.doing = _fitting(text)

    # ------------------------------------------------------------ in the guardian

    def _watch(self) -> None:
        """Wait for the end of the command, or of a run's time. Time while this process is stopped does not count."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.closerange(3, 1 << 16)  # what others wait for the end of
        number, waited_s = 0, 0.0
        while True:
            real.sleep(_POLL_S)
            has_ended = os.getppid() != self._command
            note = self._note
            waited_s = waited_s + _POLL_S if note.number == number else 0.0
            number = note.number
            if has_ended or 0 < note.limit_s < waited_s:
                break
        try:
            text = "the command did not leave, as code that runs have left goes on"
            if note.state != REPORTED:
                text = self._rescue(has_ended)
            is_told = has_ended and (
                note.state == REPORTED or self.report is None
            )  # by who waits for its end
            if not is_told:
                os.write(2, f"\nerror: {text}\n".encode())
        finally:
            self._end_command()

    def _rescue(self, has_ended: bool) -> str:
        """Write the report, and return what happened."""
        note = self._note
        path, _, name = note.name.decode("utf-8", "replace").partition("::")
        doing, limit_s = note.doing.decode("utf-8", "replace"), note.limit_s - OVERTIME_S
        error: HarnessError = WorkerDied(None, doing) if has_ended else RealTimeExceeded(limit_s, doing)
        shown = f"{shown_path(Path(path))}::{name}"
        text = f"{shown}: {error}; this ended the command, and {ALONE}"
        if self.report is not None:
            writer = ResultsWriter(self.report)
            writer.take_over()
            with suppress(SourceError, StopIteration):
                scenarios = load_file(Path(path), self._projects.of(Path(path))).scenarios
                scenario = next(each for each in scenarios if each.name == name)
                for outcome in dead_worker_outcomes(scenario, error, note.repeat):
                    writer.add(outcome)
            writer.finish(f"the command was ended in {shown}")
            text += f"\nresults: {shown_path(self.report)}"
        return text

    def _end_command(self) -> None:
        """End the command with 3 as its exit code: something could not be judged."""
        for number in (signal.SIGQUIT, signal.SIGKILL):  # the first may be blocked
            for _ in range(20):
                if os.getppid() != self._command:
                    return
                os.kill(self._command, number)
                real.sleep(_POLL_S / 2)


def _fitting(text: str) -> bytes:
    return text.encode("utf-8", "replace")[:1999]


_guardians: Final[list[_Guardian]] = []
"""The guardian of this process, if it has one."""


def start_guardian(projects: Projects, report: Path | None) -> None:
    """Start a guardian for this process, unless it has one. `report`: the folder of its report, if it writes one."""
    report = report and report.absolute()
    if _guardians and _guardians[0].report != report:  # of another session
        _guardians.pop().end()
    if not _guardians and hasattr(signal, "SIGQUIT"):
        _guardians.append(guardian := _Guardian(projects, report))
        at_cut_off[:] = [lambda: guardian.note(REPORTED, _EXIT_S)]
        atexit.register(guardian.end)  # called after what runs register


def guarded(runs: Iterator[Outcome], scenario: Scenario, settings: Settings) -> Iterator[Outcome]:
    """Yield from the runs of a scenario, which the guardian watches, if there is one."""
    if not _guardians:
        yield from runs
        return
    is_limited = settings.record_mode is RecordMode.NONE and not app_process.concerns(scenario)
    limit_s = settings.real_timeout + OVERTIME_S if is_limited and settings.real_timeout else 0
    for repeat in itertools.count():
        sys.stdout.flush()  # as what is held would be lost
        _guardians[0].note(RUNNING, limit_s, scenario.id, repeat)
        made = next(runs, None)
        _guardians[0].note(BETWEEN, 0, scenario.id, repeat + 1)
        if made is None:
            return
        yield made


def reported() -> None:
    """Tell the guardian that the report is written."""
    for guardian in _guardians:
        guardian.note(REPORTED)
