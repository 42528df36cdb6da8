"""The summary of a run that has ended, from its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.report.reading import RESULTS, read_lines, results_file
from harness.report.summary import FORMAT, Summary


def summary_of(run: Path) -> dict[str, Any]:
    """What summary.json says; of a run that was killed, and has none, the sum of what it has written.

    Raises:
        FormatError: there are no results, or they cannot be read.
    """
    found = written_summary(run)
    if found is not None:
        return found
    sums = Summary()
    for line in read_lines(run):
        sums.add(line)
    return sums.as_json("there is no summary.json beside the results")


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
