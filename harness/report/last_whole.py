"""Keep the last complete run of a results folder while later runs cover only some of the scenarios.

    reports/latest/              the last run, complete or not
    reports/latest/last-whole/   the last complete run, unless it is the last run

A run does not know at its start if it will be complete. So it first moves a complete previous run to `last-whole`,
and removes it from there at its end if it was complete itself.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from harness.report.summary import FORMAT
from harness.report.traces import move_traces, remove_traces

LAST_WHOLE: Final = "last-whole"
_SUMMARY: Final = "summary.json"


def last_whole_run(folder: Path) -> Path | None:
    """Return the folder of the last complete run: this one, or the one kept in it; None if there is none."""
    return next((at for at in (folder, folder / LAST_WHOLE) if _is_whole(at)), None)


def keep_last_whole(folder: Path, files: Sequence[str]) -> None:
    """Move the run with these files, and its traces, to `last-whole`, if it is complete.

    The summary is moved last, since a folder without it does not count as a complete run.

    Raises:
        OSError: a file cannot be moved.
    """
    if not _is_whole(folder):
        return
    kept = folder / LAST_WHOLE
    kept.mkdir(exist_ok=True)
    (kept / _SUMMARY).unlink(missing_ok=True)
    remove_traces(kept)
    move_traces(folder, kept)
    for name in files:
        # Copied and not moved, since one of them is open, and not every system can move an open file.
        if name != _SUMMARY and (folder / name).exists():
            shutil.copyfile(folder / name, kept / name)
    os.replace(folder / _SUMMARY, kept / _SUMMARY)


def remove_last_whole(folder: Path, files: Sequence[str]) -> None:
    """Remove the run in `last-whole`, after a complete run."""
    # OSError: nothing was kept, or the folder has other files. `last_whole_run` copes with both.
    with suppress(OSError):
        for name in files:
            (folder / LAST_WHOLE / name).unlink(missing_ok=True)
        remove_traces(folder / LAST_WHOLE)
        (folder / LAST_WHOLE).rmdir()


def last_whole_summary(folder: Path) -> dict[str, Any] | None:
    """Return the summary of the last complete run; None if there is none or it has another format."""
    run = last_whole_run(folder)
    summary = _summary(run) if run else None
    return summary if summary and summary.get("format") == FORMAT else None


def _is_whole(folder: Path) -> bool:
    return (_summary(folder) or {}).get("complete") is True


def _summary(folder: Path) -> dict[str, Any] | None:
    try:
        summary = json.loads((folder / _SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return summary if isinstance(summary, dict) else None
