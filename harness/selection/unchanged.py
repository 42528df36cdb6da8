"""Tell whether anything that a scenario may depend on has changed since an earlier session.

A file counts as changed if its status changed since that session began, which no tool can set back. Files that
changed while a session ran may be what it wrote: they count only for scenarios that are known to depend on them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

import harness
from harness.scenario.model import Scenario
from harness.selection.changes import Changes
from harness.selection.inputs import InputFinder
from harness.settings import Projects
from harness.source.document import real_path


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
