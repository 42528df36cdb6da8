"""The file of a history: a line of JSON for each run, appended whole. Runs that end at once wait for each other."""

from __future__ import annotations

import errno
import json
import os
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from harness.errors import FormatError, Problem, Span
from harness.report.encoding import encode
from harness.report.history.record import FORMAT, RunRecord, Verdicts
from harness.report.history.revision import revision_of
from harness.settings import Settings
from harness.source.document import shown_path

_MAX_LINE: Final = 200_000_000
_BEGINNING: Final = f'{{"format":"{FORMAT}"'.encode()
_PIECE: Final = 1 << 16
_PATIENCE: Final = 10.0
"""Real seconds to wait for another run that is writing to the file; that takes it milliseconds."""


class HistoryWriter:
    """Appends a run to a history: `check` before it, `add` for each line of its results, `append` at its end.

    project   a folder of the repository whose revision is noted
    """

    def __init__(self, file: Path, project: Path) -> None:
        self.file, self._project = file.absolute(), project.absolute()
        self._verdicts = Verdicts()

    def check(self) -> None:
        """Make the file, if need be, and see that it is a history: before a run and not after it.

        Raises:
            FormatError: it cannot be written, or is something else.
        """
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            if (
                self.file.exists() and not self.file.is_file()
            ):  # a pipe, a device: nothing can be looked up there
                raise OSError(errno.EINVAL, "it is no file" if not self.file.is_dir() else "it is a folder")
            with self.file.open("ab+") as file:
                file.seek(0)
                first = file.readline(_MAX_LINE)
        except OSError as error:
            raise _unwritable(self.file, error) from None
        if first and not _is_cut(first):
            _record(self.file, 1, first)

    def add(self, line: Mapping[str, Any]) -> None:
        """Count a line of results.jsonl."""
        self._verdicts.add(line)

    def append(self, summary: Mapping[str, Any]) -> None:
        """Append the run that this is the summary of. One in which nothing ran is none.

        Raises:
            FormatError: it cannot be written.
        """
        if not summary["total"]["runs"]:
            return
        ended = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: TID251 - no run goes on
        record = RunRecord.of(summary, self._verdicts, ended, revision_of(self._project))
        try:
            with self.file.open("ab+") as file:
                _lock(file, self.file)
                _append(file, encode(record.written()).encode() + b"\n")
        except OSError as error:
            raise _unwritable(self.file, error) from None


def writer_of(settings: Settings) -> HistoryWriter | None:
    """What appends to the history that the settings name; None where they name none."""
    return None if settings.history is None else HistoryWriter(settings.history, settings.project)


def _append(file: BinaryIO, line: bytes) -> None:
    """Write a line in one piece, or nothing of it; what an earlier run did not get to the end of is removed."""
    size = file.seek(0, os.SEEK_END)
    start = _start_of_last_line(file, size)
    file.seek(start)
    last = file.read()
    end = start if _is_cut(last) else size
    line = b"\n" + line if last and end == size else line
    os.ftruncate(file.fileno(), end)
    try:
        if os.write(file.fileno(), line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            os.ftruncate(file.fileno(), size)
        raise


def _is_cut(line: bytes) -> bool:
    """True for the beginning of a line of ours without its end: the run that wrote it was killed."""
    if not line or line.endswith((b"\n", b"}")):
        return False
    return line.startswith(_BEGINNING) or _BEGINNING.startswith(line)


def _start_of_last_line(file: BinaryIO, size: int) -> int:
    """Where the line begins that has no line break; the end of the file where all have."""
    at = size
    while at > 0:
        start = max(0, at - _PIECE)
        file.seek(start)
        found = file.read(at - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at = start
    return 0


def _lock(file: BinaryIO, path: Path) -> None:
    """Wait until no other run writes to the file; the lock ends with the file, or with the process."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system: nothing to lock with
        return
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > until:
                message = f"another process has locked the history {shown_path(path)} for {_PATIENCE:g} s"
                raise FormatError(Problem("history-unwritable", message)) from None
            time.sleep(0.01)  # noqa: TID251 - no run goes on
        else:
            return


def read_history(path: Path) -> Iterator[RunRecord]:
    """The runs of a history, the oldest first, one after the other: the file may be large.

    A last line that was cut off is left out with a UserWarning.

    Raises:
        FormatError: the file cannot be read (`history-missing`), or a line is none of this format (`history-line`).
    """
    try:
        file = path.open("rb")
    except OSError as error:
        hint = "it is a folder; a folder with results is an argument, not --file" if path.is_dir() else ""
        message = f"cannot read the history {shown_path(path)}: {error.strerror or error}"
        raise FormatError(Problem("history-missing", message, hint=hint)) from None
    with file:
        number = 0
        while raw := file.readline(_MAX_LINE):
            number += 1
            if not raw.strip():
                continue
            try:
                record = _record(path, number, raw)
            except FormatError:
                if not _is_cut(raw):
                    raise
                warnings.warn(
                    f"{shown_path(path)}:{number}: the last line was cut off and is left out", stacklevel=2
                )
                return
            yield record


def _record(path: Path, number: int, raw: bytes) -> RunRecord:
    try:
        return RunRecord.read(_parsed(raw))
    except ValueError as error:
        raise FormatError(Problem("history-line", str(error), Span(shown_path(path), number, 1))) from None


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        shown = raw[:40].decode(errors="replace")
        raise ValueError(f"not a line of JSON: {shown!r}") from None


def _unwritable(path: Path, error: OSError) -> FormatError:
    message = f"cannot write the history {shown_path(path)}: {error.strerror or error}"
    return FormatError(Problem("history-unwritable", message))
