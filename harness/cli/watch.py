"""`harness run --watch`: what is selected runs once, and from then on what a saved file touches.

    choose, run ─▶ wait for a file to be saved ─▶ choose again ─▶ which of them the files touch ─▶ run those ─▶ wait

Scenarios run in processes of their own, which import the modules of agents anew; this process imports none. What
is saved while scenarios run is looked at when they have ended; of that only what they are known to depend on counts,
since the rest may be what they have written. The exit code is that of the last verdict of every scenario.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import click

from harness.cli import exit_code
from harness.cli.problems import print_problems
from harness.cli.run_selection import Finished
from harness.cli.saved_files import SavedFiles
from harness.cli.selection import Selection
from harness.errors import SourceError
from harness.report.formatting import plural, some_of
from harness.report.reading import read_lines
from harness.report.verdicts import NOT_PASSED, worst
from harness.selection.changes import Changes
from harness.selection.inputs import InputFinder
from harness.settings import Projects
from harness.source.document import real_path, shown_path

_MOST_SHOWN: Final = 10


@dataclass
class Watch:
    """Runs a selection, and what of it a saved file touches, until Ctrl-C.

    projects  gives the settings as they are now; `choose` the selection; `run` runs one
    """

    projects: Callable[[], Projects]
    choose: Callable[[Projects], Selection]
    run: Callable[[Selection, Projects], Finished]
    _standing: dict[str, str] = field(default_factory=dict)
    """The last verdict of each scenario that ran, by its id."""
    _ids: frozenset[str] = frozenset()
    """The scenarios that are selected now."""
    _ran: tuple[int, int] = (0, 0)
    """When the last run began and ended, in the nanoseconds that files have."""

    def loop(self) -> int:
        """Run until Ctrl-C, and give the exit code: of the run that it ended, else of all that ran.

        Raises:
            SourceError: the selection is wrong from the start.
            ExtraMissing: `watchfiles` is not installed.
        """
        projects = self.projects()
        selection = self._chosen(projects)
        try:
            saved_files = SavedFiles(_roots(selection, projects), _reports(selection, projects))
            if self._runs_to_end(selection, projects):
                return exit_code.NOT_JUDGED
            while True:
                saved = saved_files.next()
                click.echo(f"changed: {some_of([shown_path(path) for path in sorted(saved)], _MOST_SHOWN)}")
                try:
                    projects = self.projects()
                    selection = self._chosen(projects)
                    touched = self._touched(selection, projects, saved)
                except SourceError as error:  # broken for a moment, perhaps
                    print_problems(error.problems)
                    continue
                if touched is not None and self._runs_to_end(touched, projects):
                    return exit_code.NOT_JUDGED
        except KeyboardInterrupt:
            click.echo()
            return self._code(selection)

    def _chosen(self, projects: Projects) -> Selection:
        selection = self.choose(projects)
        self._ids = frozenset(each.id for each in selection.scenarios)
        return selection

    def _runs_to_end(self, selection: Selection, projects: Projects) -> bool:
        """Run, and tell what of before still does not pass; True if Ctrl-C ended the run."""
        began = time.time_ns()
        finished = self.run(selection, projects)
        self._ran = (began, time.time_ns())
        now: dict[str, set[str]] = {}
        for line in read_lines(finished.report):
            now.setdefault(line["id"], set()).add(line["verdict"])
        others = [id_ for id_ in self._standing.keys() - now.keys() if self._standing[id_] in NOT_PASSED]
        self._standing |= {id_: worst(verdicts) for id_, verdicts in now.items()}
        if others := sorted(self._ids.intersection(others)):
            click.echo(f"{plural(len(others), 'other')} did not pass before: {some_of(others, _MOST_SHOWN)}")
        if not finished.interrupted:
            click.echo("watching; Ctrl-C ends")
        return finished.interrupted

    def _code(self, selection: Selection) -> int:
        verdicts = {verdict for id_, verdict in self._standing.items() if id_ in self._ids}
        if selection.refused:
            return exit_code.BAD_INPUT
        if "error" in verdicts:
            return exit_code.NOT_JUDGED
        return exit_code.FAILED if "failed" in verdicts else exit_code.OK

    def _touched(self, selection: Selection, projects: Projects, saved: frozenset[Path]) -> Selection | None:
        """The scenarios to run again, which are printed; None if there are none, and no file is wrong."""
        meanwhile = frozenset(filter(self._is_of_the_run, saved))
        why = InputFinder(projects, Changes("", saved), meanwhile).why(selection.scenarios)
        kept = [(each, reason) for each, reason in zip(selection.scenarios, why, strict=True) if reason]
        refused = {file: error for file, error in selection.refused.items() if real_path(file) in saved}
        if not kept and not refused:
            click.echo("  it touches no scenario")
            return None
        part = f"{len(kept)} of {plural(len(selection.scenarios), 'scenario')} selected (--watch)"
        touched = replace(
            selection,
            scenarios=tuple(each for each, _ in kept),
            refused=refused,
            part=part if len(kept) < len(selection.scenarios) else selection.part,
        )
        for each, reason in kept[:_MOST_SHOWN]:
            click.echo(f"  rerun {each.id}: {reason}")
        if len(kept) > _MOST_SHOWN:
            click.echo(f"  … and {len(kept) - _MOST_SHOWN} more")
        return touched

    def _is_of_the_run(self, path: Path) -> bool:
        """True if a file was written while scenarios ran."""
        try:
            return self._ran[0] <= path.stat().st_mtime_ns <= self._ran[1]
        except OSError:
            return False


def _roots(selection: Selection, projects: Projects) -> list[Path]:
    """The projects of the scenarios, and the folders outside them that settings and scenarios name."""
    found: dict[Path, None] = {}
    for file in selection.files:
        settings = projects.of(file)
        named = (settings.project, *settings.pythonpath, *settings.allow_paths, settings.cassettes)
        found |= dict.fromkeys(real_path(folder) for folder in named)
    for scenario in selection.scenarios:
        found |= dict.fromkeys(real_path(path.parent) for path in scenario.manifests)
    there = [folder for folder in found if folder.is_dir()]
    return [each for each in there if not any(each.is_relative_to(other) for other in there if other != each)]


def _reports(selection: Selection, projects: Projects) -> set[Path]:
    reports = {projects.of(file).report for file in selection.files}
    return {real_path(folder) for folder in (*reports, projects.common(selection.files).report)}
