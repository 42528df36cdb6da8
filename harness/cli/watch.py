"""`harness run --watch`: run the selection once, then rerun the scenarios that saved files affect.

    select, run ─▶ wait for a file to be saved ─▶ select again ─▶ find affected scenarios ─▶ run them ─▶ wait

Scenarios run in worker processes, which import the modules of agents anew; this process imports none. Files saved
while scenarios run are looked at when they have ended. Of those, only known inputs of scenarios count, since the
others may be outputs of the run. The exit code is that of the last verdict of every scenario.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import click

from harness.cli import output as exit_code
from harness.cli.output import print_problems
from harness.cli.selection import Selection
from harness.cli.session import Session
from harness.errors import SourceError
from harness.report.formatting import plural, some_of
from harness.report.reading import read_lines
from harness.report.repeats import NOT_PASSED, worst
from harness.selection.changes import Changes
from harness.selection.inputs import InputFinder
from harness.settings import Projects
from harness.source.document import real_path, shown_path
from harness.source.imports import import_extra
from harness.time.real import real

_SETTLE_MS: Final = 60
"""Time without another save after which the saves so far count as one change."""
_LOOK_UP_MS: Final = 200
"""Time in which a watcher starts, and notices that it has to end."""
_IGNORED_FOLDERS: Final = frozenset({"__pycache__", "node_modules"})
_EDITOR_SUFFIXES: Final = (".swp", ".swx", ".tmp", ".pyc")
_VIM_PROBE: Final = "4913"


class SavedFiles:
    """A watcher of folders and everything below them but hidden folders, installed packages and `reports`.

    It watches from its creation, so no file saved before the first `next` is missed.

    Raises:
        ExtraMissing: `watchfiles` is not installed.
    """

    def __init__(self, roots: Iterable[Path], reports: Iterable[Path]) -> None:
        self._watch = import_extra("watchfiles", "watch", "to watch files").watch
        self._roots, self._reports = list(roots), set(reports)
        self._pending: set[Path] = set()
        self._begin()

    def next(self) -> frozenset[Path]:
        """Wait until files are saved, created or removed, and return them.

        Raises:
            KeyboardInterrupt: Ctrl-C.
        """
        while not self._pending:
            self._note(next(self._changes))
        found, self._pending = frozenset(self._pending), set()
        return found

    def _begin(self) -> None:
        self._folders = set(self._below(self._roots))
        self._changes: Generator[set[Any]] = self._watch(
            *self._folders,
            watch_filter=None,
            step=_SETTLE_MS,
            rust_timeout=_LOOK_UP_MS,
            yield_on_timeout=True,
            recursive=False,
            raise_interrupt=True,
        )
        self._note(next(self._changes))  # the generator starts watching on its first `next`

    def _note(self, changes: set[Any]) -> None:
        paths = {real_path(Path(path)) for _, path in changes}
        made = [path for path in paths - self._folders if path.is_dir() and self._is_watched(path)]
        self._pending |= {path for path in paths if not path.is_dir() and self._is_relevant(path)}
        if made:  # files put into new folders before they were watched
            for folder in self._below(made):
                self._pending |= {at for at in folder.iterdir() if at.is_file() and self._is_relevant(at)}
            self._changes.close()
            self._begin()

    def _below(self, roots: Iterable[Path]) -> Iterator[Path]:
        for root in roots:
            for at, folders, _ in os.walk(root):
                yield Path(at)
                folders[:] = [name for name in folders if self._is_watched(Path(at, name))]

    def _is_watched(self, folder: Path) -> bool:
        hidden = folder.name.startswith(".") or folder.name in _IGNORED_FOLDERS
        return not hidden and folder not in self._reports and not (folder / "pyvenv.cfg").exists()

    def _is_relevant(self, path: Path) -> bool:
        """False for files that editors and Python leave beside a file, and for reports."""
        beside = path.suffix in _EDITOR_SUFFIXES or path.name.endswith("~") or path.name == _VIM_PROBE
        return not beside and self._reports.isdisjoint(path.parents)


_MAX_SHOWN: Final = 10


@dataclass
class Watch:
    """A loop that runs a selection, and then the scenarios that saved files affect, until Ctrl-C.

    projects  returns the current settings
    choose    returns the selection
    run       runs a selection
    """

    projects: Callable[[], Projects]
    choose: Callable[[Projects], Selection]
    run: Callable[[Selection, Projects], Session]
    _last_verdicts: dict[str, str] = field(default_factory=dict)
    """The last verdict of each scenario that ran, by id."""
    _ids: frozenset[str] = frozenset()
    """The ids of the scenarios that are selected now."""
    _ran: tuple[int, int] = (0, 0)
    """Start and end of the last run, in nanoseconds as in file times."""

    def loop(self) -> int:
        """Run until Ctrl-C, and return the exit code: of the interrupted run, or else of all last verdicts.

        Raises:
            SourceError: the first selection fails.
            ExtraMissing: `watchfiles` is not installed.
        """
        projects = self.projects()
        selection = self._select(projects)
        try:
            saved_files = SavedFiles(_roots(selection, projects), _reports(selection, projects))
            if self._run_and_report(selection, projects):
                return exit_code.NOT_JUDGED
            while True:
                saved = saved_files.next()
                click.echo(f"changed: {some_of([shown_path(path) for path in sorted(saved)], _MAX_SHOWN)}")
                try:
                    projects = self.projects()
                    selection = self._select(projects)
                    touched = self._touched(selection, projects, saved)
                except SourceError as error:  # perhaps a half-edited file
                    print_problems(error.problems)
                    continue
                if touched is not None and self._run_and_report(touched, projects):
                    return exit_code.NOT_JUDGED
        except KeyboardInterrupt:
            click.echo()
            return self._exit_code(selection)

    def _select(self, projects: Projects) -> Selection:
        selection = self.choose(projects)
        self._ids = frozenset(each.id for each in selection.scenarios)
        return selection

    def _run_and_report(self, selection: Selection, projects: Projects) -> bool:
        """Run, and print the other scenarios that do not pass; return True if Ctrl-C ended the run."""
        began = real.time_ns()
        finished = self.run(selection, projects)
        self._ran = (began, real.time_ns())
        now: dict[str, set[str]] = {}
        for line in read_lines(finished.report):
            now.setdefault(line["id"], set()).add(line["verdict"])
        others = [id_ for id_, last in self._last_verdicts.items() if id_ not in now and last in NOT_PASSED]
        self._last_verdicts |= {id_: worst(verdicts) for id_, verdicts in now.items()}
        if others := sorted(self._ids.intersection(others)):
            click.echo(f"{plural(len(others), 'other')} did not pass before: {some_of(others, _MAX_SHOWN)}")
        interrupted = finished.interrupted
        del finished  # this closes its streams by Python code, in which a Ctrl-C would be lost
        if not interrupted:
            click.echo("watching; Ctrl-C ends")
        return interrupted

    def _exit_code(self, selection: Selection) -> int:
        verdicts = {verdict for id_, verdict in self._last_verdicts.items() if id_ in self._ids}
        if selection.refused:
            return exit_code.BAD_INPUT
        if "error" in verdicts:
            return exit_code.NOT_JUDGED
        return exit_code.FAILED if "failed" in verdicts else exit_code.OK

    def _touched(self, selection: Selection, projects: Projects, saved: frozenset[Path]) -> Selection | None:
        """Return the scenarios to rerun, and print them; None if there are none and no file is refused."""
        meanwhile = frozenset(filter(self._written_during_run, saved))
        why = InputFinder(projects, Changes("", saved), meanwhile).reasons(selection.scenarios)
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
        for each, reason in kept[:_MAX_SHOWN]:
            click.echo(f"  rerun {each.id}: {reason}")
        if len(kept) > _MAX_SHOWN:
            click.echo(f"  … and {len(kept) - _MAX_SHOWN} more")
        return touched

    def _written_during_run(self, path: Path) -> bool:
        """True if a file was written while scenarios ran."""
        try:
            return self._ran[0] <= path.stat().st_mtime_ns <= self._ran[1]
        except OSError:
            return False


def _roots(selection: Selection, projects: Projects) -> list[Path]:
    """Return the folders to watch: the projects of the scenarios, and folders that settings and scenarios name."""
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
