"""The runs of scenarios that a search asks for: silent, and given back as lines of results."""

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


class _KeptPool(WorkerPool):
    """Processes that are kept from one session to the next."""

    def close(self) -> None:
        """Keep them."""

    def end(self) -> None:
        """End them."""
        super().close()


@dataclass
class ScenarioRuns:
    """Runs scenarios again and again, in this process or in so many others. Use as a context manager."""

    projects: Projects
    jobs: int = 1
    _workers: _KeptPool | None = None
    _folder: tempfile.TemporaryDirectory[str] = field(default_factory=tempfile.TemporaryDirectory)

    def __enter__(self) -> Self:
        if self.jobs > 1 and self.projects.record_mode is RecordMode.NONE:
            self._workers = _KeptPool(self.jobs, self.projects, one_by_one=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._workers is not None:
            self._workers.end()
        self._folder.cleanup()

    def __call__(self, scenarios: Sequence[Scenario], folder: Path | None) -> Sequence[dict[str, Any]]:
        """The lines of results of these scenarios, in order; they are also written into a folder, if one is given.

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
            ProgressReporter(open_console()),  # which shows nothing where it is not started
            lines,
            quiet=True,
            workers=self._workers,
        )
        files = tuple(dict.fromkeys(each.file for each in scenarios))
        session.run(Selection(tuple(scenarios), {}, files))
        if session.interrupted:
            raise KeyboardInterrupt
        return [json.loads(line) for line in lines.getvalue().splitlines()]
