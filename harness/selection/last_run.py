"""The last run of a project: the scenarios that did not pass in it, and whether their inputs have changed since.

    the last whole run ──▶ overlaid by the part that ran since ──▶ the verdict of each scenario

A part (`harness.report.traces`) says nothing of the scenarios that it left out: theirs is the verdict before it.

A file counts as changed if its status changed since that session began, which no tool can set back. Files that
changed while a session ran may be what it wrote: they count only for scenarios that are known to depend on them.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import harness
from harness.errors import FormatError, Problem
from harness.report.formatting import plural, some_of
from harness.report.reading import RESULTS, read_lines
from harness.report.repeats import NOT_PASSED, worst
from harness.report.scenario_runs import FILE
from harness.report.traces import last_whole_run
from harness.scenario.model import Scenario
from harness.selection.changes import Changes
from harness.selection.inputs import InputFinder
from harness.settings import Projects
from harness.source.document import real_path, relative_path, shown_path

_NAMED = 3
"""The number of scenarios and files that a message names."""


@dataclass(frozen=True)
class LastRun:
    """The last run of a project.

    file      its results
    verdicts  the worst verdict of each scenario, by suite (the path of its file) and name
    """

    file: Path
    verdicts: Mapping[tuple[str, str], str]

    @property
    def not_passed(self) -> list[tuple[str, str]]:
        """The scenarios that did not pass, in the order of the results."""
        return [key for key, verdict in self.verdicts.items() if verdict in NOT_PASSED]

    def did_not_pass(self, scenario: Scenario, project: Path) -> bool:
        """True if the scenario did not pass, or its file could not be read."""
        return any(
            self.verdicts.get((suite, name)) in NOT_PASSED
            for suite in _suites(scenario.file, project)
            for name in (scenario.name, FILE)
        )

    def gone(self, scenarios: Collection[Scenario], project: Path) -> list[str]:
        """Return the ids of those that did not pass and are no longer in their files, which are all read."""
        there = {(suite, each.name) for each in scenarios for suite in _suites(each.file, project)}
        read = {suite for suite, _ in there}
        return [
            f"{suite}::{name}"
            for suite, name in self.not_passed
            if name != FILE and (suite, name) not in there and (suite in read or not _exists(suite, project))
        ]

    def changed(self, files: Iterable[Path]) -> list[Path]:
        """Return the files that were saved after the run."""
        ended = self.file.stat().st_mtime
        return [file for file in dict.fromkeys(files) if file.is_file() and file.stat().st_mtime > ended]

    @property
    def description(self) -> str:
        """The condition on scenarios that is taken from it, as text."""
        if self.not_passed:
            return "did not pass in the last run"
        return f"none of {plural(len(self.verdicts), 'scenario')} failed in the last run"


def read_last_run(folder: Path) -> LastRun:
    """Return the last run that was written to a report folder.

    Raises:
        FormatError: there is none (`no-last-run`), or its results are damaged.
    """
    runs = [run for run in (last_whole_run(folder), folder) if run is not None and (run / RESULTS).is_file()]
    if not runs:
        text = f"--last-failed: there is no last run, as {shown_path(folder / RESULTS)} does not exist"
        raise FormatError(Problem("no-last-run", text, hint="run once without --last-failed"))
    verdicts: dict[tuple[str, str], str] = {}
    for run in dict.fromkeys(runs):
        found: dict[tuple[str, str], list[str]] = {}
        with warnings.catch_warnings(action="ignore"):  # about the last line of a run that was killed
            for line in read_lines(run):
                found.setdefault((line["suite"], line["scenario"]), []).append(line["verdict"])
        for suite in {suite for suite, _ in found}:
            verdicts.pop((suite, FILE), None)
        verdicts |= {key: worst(of) for key, of in found.items()}
    return LastRun(runs[-1] / RESULTS, verdicts)


def remarks(last: LastRun, scenarios: Collection[Scenario], project: Path) -> list[Problem]:
    """Return what the user must know of files that have changed since the last run.

    Raises:
        FormatError: nothing that did not pass is there any more.
    """
    found = []
    if gone := last.gone(scenarios, project):
        what = f"{plural(len(gone), 'scenario')} of the last run did not pass, and no longer exist"
        text = f"--last-failed: {what}{'s' if len(gone) == 1 else ''}: {some_of(gone, _NAMED)}"
        if len(gone) == len(last.not_passed):
            raise FormatError(Problem("changed-since", text, hint="run without --last-failed"))
        found.append(Problem("changed-since", text, severity="warning"))
    files = [file for each in scenarios for file in (each.file, *each.manifests)]
    if last.not_passed and (changed := last.changed(files)):
        names = some_of([shown_path(file) for file in changed], _NAMED)
        text = f"--last-failed: changed since the last run: {names}; what passed then does not run again"
        found.append(Problem("changed-since", text, severity="note"))
    return found


def _exists(suite: str, project: Path) -> bool:
    return Path(suite).exists() or (project / suite).exists()


def _suites(file: Path, project: Path) -> tuple[str, str]:
    """Return the paths by which results name a file, from here and from the root of its project."""
    return shown_path(file), relative_path(file.absolute(), project)


class UnchangedInputs:
    """Answers `(id, began, ended)`: are the inputs of that scenario those of the session between the instants?

    Args:
        scenarios: the scenarios of the present session.
        projects: their settings.
        started: the real instant at which the present session began.
    """

    def __init__(self, scenarios: Iterable[Scenario], projects: Projects, started: datetime) -> None:
        self._scenarios = {scenario.id: scenario for scenario in scenarios}
        self._projects, self._started = projects, started.timestamp()
        self._finder: InputFinder | None = None

    def __call__(self, id_: str, began: datetime, ended: datetime) -> bool:
        scenario = self._scenarios.get(id_)
        if scenario is None or _packages_changed(began.timestamp()):
            return False
        if self._finder is None:
            self._finder = self._changes(began.timestamp(), ended.timestamp())
        inputs = self._finder.inputs(scenario)
        own = [*inputs.files, *inputs.modules.files, *(file for at in inputs.folders for file in _files(at))]
        if any(_changed(file) >= began.timestamp() for file in own):
            return False
        return not self._finder.reasons([scenario])[0]

    def _changes(self, began: float, ended: float) -> InputFinder:
        """Return the changes of the files of all projects since a session began."""
        roots = {real_path(self._projects.of(each.file).project) for each in self._scenarios.values()}
        times = {file: _changed(file) for root in roots for file in _files(root)}
        changed = {file: at for file, at in times.items() if at >= began}
        during = {file for file, at in changed.items() if at < ended or at >= self._started}
        return InputFinder(self._projects, Changes("", frozenset(changed)), frozenset(during))


def _packages_changed(began: float) -> bool:
    """True if packages were installed, or this one was changed. A folder changes with the names in it."""
    installed = [Path(at) for at in sys.path if at.endswith(("-packages", ".zip"))]
    own = _files(Path(harness.__file__).parent)
    code = (file for file in own if file.suffix == ".py")
    return any(_changed(path) >= began for path in (*installed, *code))


def _files(folder: Path) -> Iterator[Path]:
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        yield from (Path(at, name) for name in names)


def _changed(path: Path) -> float:
    """Return the time at which the content or the name of a file last changed; 0 if there is none."""
    try:
        return path.stat().st_ctime
    except OSError:
        return 0.0
