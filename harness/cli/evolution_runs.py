"""The scenario runs of a search: silent, returned as lines of results."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from harness.cli.selection import Selection
from harness.cli.session import Session
from harness.report.console import ProgressReporter, open_console
from harness.scenario.model import Scenario
from harness.settings import Projects, RecordMode
from harness.workers.pool import WorkerPool


class _PersistentPool(WorkerPool):
    """A worker pool that several sessions share: `close` does nothing, `end` ends the processes."""

    def close(self) -> None:
        """Do nothing: the next session uses the same processes."""

    def end(self) -> None:
        """End the processes."""
        super().close()


@dataclass
class ScenarioRuns:
    """A callable that runs scenarios, in this process or in `jobs` others. Use it as a context manager."""

    projects: Projects
    jobs: int = 1
    _workers: _PersistentPool | None = None
    _folder: tempfile.TemporaryDirectory[str] = field(default_factory=tempfile.TemporaryDirectory)

    def __enter__(self) -> Self:
        if self.jobs > 1 and self.projects.record_mode is RecordMode.NONE:
            self._workers = _PersistentPool(self.jobs, self.projects, one_by_one=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._workers is not None:
            self._workers.end()
        self._folder.cleanup()

    def __call__(self, scenarios: Sequence[Scenario], folder: Path | None) -> Sequence[dict[str, Any]]:
        """Run scenarios and return their lines of results, in order. With `folder`, also write the results there.

        Raises:
            KeyboardInterrupt: the run was asked to end.
            FormatError: results cannot be written, or two scenarios would write one cassette.
        """
        if self.projects.record_mode is not RecordMode.NONE:
            from harness.scenario.cassette import check_cassettes

            check_cassettes(scenarios, self.projects)
        lines = io.BytesIO()
        session = Session(
            self.projects,
            folder or Path(self._folder.name),
            ProgressReporter(open_console()),  # shows nothing unless it is started
            lines,
            quiet=True,
            workers=self._workers,
        )
        files = tuple(dict.fromkeys(each.file for each in scenarios))
        session.run(Selection(tuple(scenarios), {}, files))
        if session.interrupted:
            raise KeyboardInterrupt
        return [json.loads(line) for line in lines.getvalue().splitlines()]
