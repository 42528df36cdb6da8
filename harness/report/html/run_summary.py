"""The summary of a run that has ended, from its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.report.reading import RESULTS, read_lines
from harness.report.summary import FORMAT, Summary


def summary_of(run: Path) -> dict[str, Any]:
    """What summary.json says; of a run that was killed, and has none, the sum of what it has written.

    Raises:
        FormatError: there are no results, or they cannot be read.
    """
    file = (run if run.is_dir() else run.parent) / "summary.json"
    if run.is_dir() or run.name == RESULTS:
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and found.get("format") == FORMAT:
            return found
    sums = Summary()
    for line in read_lines(run):
        sums.add(line)
    return sums.as_json("there is no summary.json beside the results")
