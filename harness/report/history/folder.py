"""A results folder as a run of the history. Results contain no time, so neither does the record."""

from __future__ import annotations

from pathlib import Path

from harness.report.history.record import RunRecord, Verdicts
from harness.report.history.revision import Revision
from harness.report.scenario_runs import read_run
from harness.report.summary import Summary


def record_of(path: Path) -> RunRecord:
    """Return the record of the run in a results folder or results file.

    Raises:
        FormatError: its results cannot be read.
    """
    sums, verdicts = Summary(), Verdicts()
    run = read_run(path, [sums.add, verdicts.add])
    return RunRecord.of(sums.as_json(run.incomplete), verdicts, None, Revision())
