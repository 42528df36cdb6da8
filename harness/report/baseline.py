"""Compare a run with an earlier one for report.html: new, fixed and removed scenarios, and the earlier totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import FormatError, Problem
from harness.report.baseline_file import is_baseline_file
from harness.report.html.scenarios import Row, Rows
from harness.report.reading import read_lines
from harness.report.repeats import label
from harness.report.summary import Summary
from harness.report.verdicts import NOT_PASSED
from harness.source.document import shown_path


@dataclass(frozen=True)
class Baseline:
    """An earlier run: its name, its total (a group of summary.json) and its scenarios."""

    name: str
    total: Mapping[str, Any]
    rows: Rows

    @classmethod
    def read(cls, run: Path) -> Baseline:
        """Read a run from its folder or its results.jsonl.

        Raises:
            FormatError: the run cannot be read, or is a baseline file, which lacks the paths and totals of a report.
        """
        if is_baseline_file(run):
            message = f"{shown_path(run)} is a baseline file: it has no paths and no totals, which a report compares"
            hint = "name a folder of results; `harness gate` and `harness compare` take this file"
            raise FormatError(Problem("baseline-refused", message, None, hint))
        rows, sums = Rows(), Summary()
        for number, line in enumerate(read_lines(run)):
            rows.add(number, line)
            sums.add(line)
        return cls(shown_path(run), sums.as_json()["total"], rows)

    def change(self, row: Row) -> str:
        """Return the change of a scenario since this baseline as one word; "" for none.

        new     it does not pass, and passed before or did not exist
        still   it does not pass, and did not pass before
        fixed   it passes, and did not pass before
        added   it passes or is skipped, and did not exist
        moved   it has the same verdict and took another path
        """
        before = self.rows.get(row.key)
        fails = row.verdict in NOT_PASSED
        if before is None:
            return "new" if fails else "added"
        failed = before.verdict in NOT_PASSED
        if fails:
            return "still" if failed else "new"
        if failed:
            return "fixed"
        return "moved" if list(before.path) != list(row.path) and before.verdict == row.verdict else ""

    def before(self, row: Row) -> dict[str, Any] | None:
        """Return the earlier {verdict, score, latency, path} of a scenario; `path` is None where it is unchanged."""
        found = self.rows.get(row.key)
        if found is None:
            return None
        path = None if list(found.path) == list(row.path) else found.path
        return {"verdict": found.verdict, "score": found.score, "latency": found.latency, "path": path}

    def removed(self, rows: Rows) -> Iterator[str]:
        """Yield the names of the scenarios that `rows` no longer has."""
        for row in self.rows:
            if rows.get(row.key) is None:
                yield label(row.id, row.variant)
