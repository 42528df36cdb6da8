"""Writes the report of a command that cannot do so: a run that cannot be interrupted holds it, or has ended it."""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from harness.errors import HarnessError, SourceError, WorkerDied
from harness.report.results import ResultsWriter
from harness.scenario import app_process
from harness.scenario.evaluation import dead_worker_outcomes
from harness.scenario.load import load_file
from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome
from harness.scenario.real_limit import RealTimeExceeded, progress
from harness.settings import Projects, RecordMode, Settings
from harness.source.document import shown_path
from harness.workers.guardian import OVERTIME_S, REPORTED, SIZE, Guardian, Note, end, read_note


class _Task(NamedTuple):
    """All that is needed for the report. `report` is its folder; None if another process writes it."""

    projects: Projects
    report: Path | None


_guardians: Final[list[Guardian]] = []
"""The guardian of this process, if it has one."""


def start_guardian(projects: Projects, report: Path | None) -> None:
    """Start a guardian for this process, unless it has one. `report`: the folder of its report, if it writes one."""
    if not _guardians and hasattr(signal, "SIGQUIT"):
        guardian = Guardian(pickle.dumps(_Task(projects, report and report.absolute())))
        progress.listener = progress.listener or guardian.doing
        _guardians.append(guardian)


def guarded(runs: Iterator[Outcome], scenario: Scenario, settings: Settings) -> Iterator[Outcome]:
    """Yield from the runs of a scenario, which the guardian watches."""
    if not _guardians:
        return runs
    is_limited = settings.record_mode is RecordMode.NONE and not app_process.concerns(scenario)
    return _guardians[0].guarded(runs, scenario.id, settings.real_timeout if is_limited else 0)


def reported() -> None:
    """Tell the guardian that the report is written."""
    for guardian in _guardians:
        guardian.reported()


def end_guardian(*, has_more: bool = False) -> None:
    """Let the guardian go, as the process is about to leave, or have it watch that: code of runs has more to do."""
    while _guardians:
        _guardians.pop().leave(has_more=has_more)


def _main(file: int, command: int) -> None:
    """Write the report, say why, and end the command, whose number is 0 if it has ended."""
    note = read_note(mmap.mmap(file, SIZE))
    try:
        task: _Task = pickle.loads(os.pread(file, os.fstat(file).st_size - SIZE, SIZE))
        text = "the command did not leave, as code that runs have left goes on"
        if note.state != REPORTED:
            number, _, name = note.run.partition("\0")
            text = _report(task, note, name, int(number or 0), has_ended=not command)
        if command or task.report is not None:  # else the controller of workers tells it
            print(f"\nerror: {text}", file=sys.stderr, flush=True)
    finally:
        if command:
            end(command)


def _report(task: _Task, note: Note, name: str, number: int, *, has_ended: bool) -> str:
    path, _, scenario_name = name.partition("::")
    limit_s = note.limit_s - OVERTIME_S
    error: HarnessError = WorkerDied(None, note.doing) if has_ended else RealTimeExceeded(limit_s, note.doing)
    shown = f"{shown_path(Path(path))}::{scenario_name}"
    text = f'{shown}: {error}; this ended the command, and `isolation = "process"` would have ended this run alone'
    if task.report is not None:
        writer = ResultsWriter(task.report)
        writer.take_over()
        if scenario := _scenario(task, Path(path), scenario_name):
            for outcome in dead_worker_outcomes(scenario, error, number):
                writer.add(outcome)
        writer.finish(f"the command was ended in {shown}")
        text += f"\nresults: {shown_path(task.report)}"
    return text


def _scenario(task: _Task, path: Path, name: str) -> Scenario | None:
    with suppress(SourceError):
        found = load_file(path, task.projects.of(path)).scenarios
        return next((each for each in found if each.name == name), None)
    return None


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]))
