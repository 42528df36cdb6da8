"""Append to and read the file of a history: JSON lines, written whole. Runs that end together take turns."""

from __future__ import annotations

import errno
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from harness.errors import FormatError, Problem, Span
from harness.report.encoding import encode
from harness.report.history.record import FORMAT, RunRecord, Verdicts, revision_of
from harness.source.document import shown_path
from harness.time.real import real

_MAX_LINE: Final = 200_000_000
_BEGINNING: Final = f'{{"format":"{FORMAT}"'.encode()
_PIECE: Final = 1 << 16
_PATIENCE: Final = 10.0
"""Real seconds to wait for another run that is writing to the file, which takes milliseconds."""


class HistoryWriter:
    """Appends a run to a history: `check` before the run, `add` for each line of results, `append` at the end.

    file     the file of the history
    project  a folder of the repository whose revision is recorded
    inputs   returns the digests of the inputs of scenarios; called by `check`, since a run may write to files
    """

    def __init__(
        self, file: Path, project: Path, inputs: Callable[[], Mapping[str, str]] = lambda: {}
    ) -> None:
        self.file, self._project = file.absolute(), project.absolute()
        self._verdicts = Verdicts()
        self._find_inputs, self._inputs = inputs, dict[str, str]()

    def check(self) -> None:
        """Create the file if needed, and check that it is a history, so that errors show before the run.

        Raises:
            FormatError: it cannot be written, or is something else.
        """
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            # Pipes and devices cannot be searched for an incomplete last line.
            if self.file.exists() and not self.file.is_file():
                raise OSError(
                    errno.EINVAL, "it is not a file" if not self.file.is_dir() else "it is a folder"
                )
            with self.file.open("ab+") as file:
                file.seek(0)
                first = file.readline(_MAX_LINE)
        except OSError as error:
            raise _unwritable(self.file, error) from None
        if first and not _is_incomplete(first):
            _record(self.file, 1, first)
        self._inputs = dict(self._find_inputs())

    def add(self, line: Mapping[str, Any]) -> None:
        """Add a line of results.jsonl."""
        self._verdicts.add(line)

    def append(self, summary: Mapping[str, Any]) -> None:
        """Append the run with this summary. A run in which nothing ran is not appended.

        Raises:
            FormatError: it cannot be written.
        """
        if not summary["total"]["runs"]:
            return
        ended = real.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        record = RunRecord.of(summary, self._verdicts, ended, revision_of(self._project), self._inputs)
        try:
            with self.file.open("ab+") as file:
                _lock(file, self.file)
                _append(file, encode(record.as_json()).encode() + b"\n")
        except OSError as error:
            raise _unwritable(self.file, error) from None


def _append(file: BinaryIO, line: bytes) -> None:
    """Write a line as a whole or not at all. An incomplete line of an earlier run is removed."""
    size = file.seek(0, os.SEEK_END)
    start = _start_of_last_line(file, size)
    file.seek(start)
    last = file.read()
    end = start if _is_incomplete(last) else size
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


def _is_incomplete(line: bytes) -> bool:
    """True for the beginning of a history line without its end, left by a run that was killed."""
    if not line or line.endswith((b"\n", b"}")):
        return False
    return line.startswith(_BEGINNING) or _BEGINNING.startswith(line)


def _start_of_last_line(file: BinaryIO, size: int) -> int:
    """Return the offset of the last line if it has no line break, else the end of the file."""
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
    """Wait for an exclusive lock on the file, which is released when the file is closed."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system: locks are not available
        return
    until = real.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if real.monotonic() > until:
                message = f"another process has locked the history {shown_path(path)} for {_PATIENCE:g} s"
                raise FormatError(Problem("history-unwritable", message)) from None
            real.sleep(0.01)
        else:
            return


def read_history(path: Path) -> Iterator[RunRecord]:
    """Yield the runs of a history, the oldest first, without loading the whole file.

    An incomplete last line is skipped with a UserWarning.

    Raises:
        FormatError: the file cannot be read (`history-missing`), or a line is not valid (`history-line`).
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
                if not _is_incomplete(raw):
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
