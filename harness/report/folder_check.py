"""The folders that a report may be written to: a new one, an empty one, or one that has a report already.

A report replaces files by their names, which may be those of the user's own files.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from harness.errors import FormatError, Problem
from harness.report.reading import RESULTS, SCORE
from harness.report.traces import FOLDER, LAST_WHOLE
from harness.source.document import shown_path

_OF_A_REPORT: Final = (RESULTS, "summary.json", "session.json", "scoring.json", "mutation.json", SCORE)
_SIGNATURE: Final = re.compile(rb'\s*\{\s*"format":\s*"harness-[a-z]+/')
_FOLDERS: Final = {FOLDER, LAST_WHOLE, ".before"}
_HARMLESS: Final = {".gitignore", ".DS_Store"}
_NAMED: Final = 3


def refuse_foreign(folder: Path) -> None:
    """Check that a folder has nothing but files of the harness, if anything, or a report among others.

    Raises:
        FormatError: it has other files, and no report (code `report-folder`).
    """
    try:
        found = sorted(each for each in folder.iterdir() if _is_foreign(each))
    except OSError:  # it does not exist, or writing to it will say what is wrong
        return
    if not found or any(_is_signed(folder / name) for name in _OF_A_REPORT):
        return
    names = [each.name for each in found[:_NAMED]] + ["…"] * (len(found) > _NAMED)
    text = f"{shown_path(folder)} has files and no report of the harness ({', '.join(names)})"
    hint = "name a new or empty folder (--report DIR, --harness-report DIR with pytest); nothing was written"
    raise FormatError(Problem("report-folder", f"cannot write the report: {text}", hint=hint))


def _is_foreign(entry: Path) -> bool:
    """True unless it is empty, a file of the harness, or what a run leaves that is killed before its first result."""
    if entry.is_dir():
        return entry.name not in _FOLDERS or not entry.with_name(RESULTS).is_file()
    return entry.name not in _HARMLESS and entry.stat().st_size > 0 and not _is_signed(entry)


def _is_signed(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return _SIGNATURE.match(opened.read(100)) is not None
    except OSError:
        return False
