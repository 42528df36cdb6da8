"""The last whole run of a report folder, which stays while runs of a part come and go.

    reports/latest/              the last run, of a part or whole
    reports/latest/last-whole/   the last whole run, while the last run is none

A run does not know whether it will be whole, so what is there is put aside when it starts, and goes when it was.
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
    """The folder of the last whole run: this one, or the one kept in it; None when there was none."""
    return next((at for at in (folder, folder / LAST_WHOLE) if _is_whole(at)), None)


def put_aside(folder: Path, files: Sequence[str]) -> None:
    """Keep the whole run that these files are of, if they are, and its traces.

    The summary goes last: without it nothing is whole.

    Raises:
        OSError: they cannot be moved.
    """
    if not _is_whole(folder):
        return
    kept = folder / LAST_WHOLE
    kept.mkdir(exist_ok=True)
    (kept / _SUMMARY).unlink(missing_ok=True)
    remove_traces(kept)
    move_traces(folder, kept)
    for name in sorted(files, key=_SUMMARY.__eq__):
        if name == _SUMMARY:
            os.replace(folder / name, kept / name)
        elif (folder / name).exists():  # one of them is open, so that it cannot be moved everywhere
            shutil.copyfile(folder / name, kept / name)


def forget(folder: Path, files: Sequence[str]) -> None:
    """Remove what was put aside: the run that has ended was whole."""
    with suppress(
        OSError
    ):  # there was none, or something else is in it; `last_whole_run` does not need it gone
        for name in files:
            (folder / LAST_WHOLE / name).unlink(missing_ok=True)
        remove_traces(folder / LAST_WHOLE)
        (folder / LAST_WHOLE).rmdir()


def last_whole_summary(folder: Path) -> dict[str, Any] | None:
    """The summary of the last whole run; None when there was none, or it is of another format."""
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
