"""Read the summary of a run that has ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import FormatError, Problem
from harness.report.reading import RESULTS, read_lines, results_file
from harness.report.summary import FORMAT, summarise
from harness.source.document import shown_path


def summary_of(run: Path) -> dict[str, Any]:
    """Return summary.json, or if the run was killed before writing it, the sum of its lines.

    Raises:
        FormatError: there are no results, nothing ran, or they cannot be read.
    """
    found = written_summary(run)
    if found is not None:
        return found
    summary = summarise(read_lines(run), "there is no summary.json next to the results")
    if not summary["total"]["runs"]:
        raise nothing_ran(run)
    return summary


def why_incomplete(summary: Mapping[str, Any]) -> str:
    """Return why a summary is not of a complete run; "" if it is."""
    return "" if summary.get("complete") is True else str(summary.get("reason") or "it does not say why")


def nothing_ran(run: Path) -> FormatError:
    """Return the error for results without a single run (code `no-runs`)."""
    return FormatError(Problem("no-runs", f"nothing ran: {shown_path(results_file(run))} is empty"))


def written_summary(run: Path) -> dict[str, Any] | None:
    """Return the summary.json in a results folder or beside a results.jsonl; None if there is none."""
    if not run.is_dir() and run.name != RESULTS:
        return None
    file = results_file(run).with_name("summary.json")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None
