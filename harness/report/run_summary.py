"""The summary of a run that has ended, from its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import FormatError, Problem
from harness.report.reading import RESULTS, read_lines, results_file
from harness.report.summary import FORMAT, Summary
from harness.source.document import shown_path


def summary_of(run: Path) -> dict[str, Any]:
    """What summary.json says; of a run that was killed, and has none, the sum of what it has written.

    Raises:
        FormatError: there are no results, nothing ran, or they cannot be read.
    """
    found = written_summary(run)
    if found is not None:
        return found
    sums, lines = Summary(), 0
    for lines, line in enumerate(read_lines(run), start=1):  # noqa: B007 -- counted for after the loop
        sums.add(line)
    if not lines:
        raise nothing_ran(run)
    return sums.as_json("there is no summary.json beside the results")


def why_incomplete(summary: Mapping[str, Any]) -> str:
    """Why a summary is not that of a whole run; "" if it is."""
    return "" if summary.get("complete") is True else str(summary.get("reason") or "it does not say why")


def nothing_ran(run: Path) -> FormatError:
    """The error for a folder of results, or a file of them, without a single run (code `no-runs`)."""
    return FormatError(Problem("no-runs", f"nothing ran: {shown_path(results_file(run))} is empty"))


def written_summary(run: Path) -> dict[str, Any] | None:
    """The summary.json of a folder of results, or beside its results.jsonl; None where there is none."""
    if not run.is_dir() and run.name != RESULTS:
        return None
    file = results_file(run).with_name("summary.json")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None
