"""The calls of a run that is being recorded, written as each ends: what was paid for survives a killed process.

    cassettes/NAME/.unfinished/MODE/REPEAT/000001/http.yaml …   one call, without secrets; in the order of their ends

The next recording in the same mode answers with them instead of calling again. They are removed when the cassette is
written. A folder appears by one rename, so that each is whole or absent.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Final

from harness.errors import SourceError
from harness.recording import files
from harness.recording.interactions import Recording, merged
from harness.recording.reading import MAX_BYTES, read
from harness.recording.scrubber import Scrubber
from harness.source.document import read as read_document

FOLDER: Final = ".unfinished"
_GITIGNORE: Final = ".gitignore"


class UnfinishedRun:
    """The calls of one repeat, in `folder`.

    Args:
        folder: need not exist yet.
        scrubber: removes the secrets of the run.
    """

    def __init__(self, folder: Path, scrubber: Scrubber) -> None:
        self._folder, self._scrubber = folder, scrubber
        self._calls: list[Recording] = []
        self._texts: list[bytes] = []
        """The files of each call, as they are written."""
        self._ends_with_error = False
        self._lock = Lock()  # tools make requests from threads

    def load(self) -> Recording | None:
        """Return the calls of an earlier recording that did not end, up to the first that cannot be read."""
        whole = None
        with suppress(FileNotFoundError, NotADirectoryError):
            for path in sorted(self._folder.iterdir()):
                call = self._read(path) if path.name == _name(len(self._calls) + 1) else None
                if call is None:
                    shutil.rmtree(path, ignore_errors=True)
                    continue
                self._calls.append(call)
                self._texts.append(b"".join(files.write(call).values()))
                whole = call if whole is None else merged(whole, call)
        return whole

    def _read(self, path: Path) -> Recording | None:
        try:
            found = {
                name: read_document(path / name, yaml="vcr", error=SourceError, max_bytes=MAX_BYTES)
                for name in files.NAMES
                if (path / name).is_file() and not path.is_symlink()
            }
            return read(found) if found else None
        except (SourceError, OSError):
            return None

    def add(self, call: Recording) -> None:
        """Write a call that has ended, if it was answered: nothing was paid for one that ended with an error.

        A disk that is full must not end the run: then only this copy is missing.
        """
        answered = [each for each in call.http if each.response is not None and each.response.status < 400]
        call = replace(call, http=tuple(answered))
        with self._lock:
            self._ends_with_error = not call
            if not call:
                return
            known = self._scrubber.secrets.known
            self._calls.append(call)
            self._texts.append(b"")
            self._write(len(self._calls) - 1)
            # What this call reveals may be in those before.
            found = [value.encode() for value in self._scrubber.secrets.found_after(known)]
            for at, text in enumerate(self._texts[:-1]):
                if any(value in text for value in found):
                    self._write(at)

    def kept(self, *, but_last: bool) -> int:
        """Return the number of calls that answer the next recording.

        With `but_last`, the last answer is removed: the run failed after it, and would fail again with the same one.
        """
        if but_last and self._calls and not self._ends_with_error:
            shutil.rmtree(self._folder / _name(len(self._calls)), ignore_errors=True)
            self._calls.pop()
            self._texts.pop()
        if not self._calls:
            self._leave_nothing()
        return len(self._calls)

    def _leave_nothing(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        whole = self._folder.parent.parent
        with suppress(OSError):
            self._folder.parent.rmdir()
            if [each.name for each in whole.iterdir()] == [_GITIGNORE]:
                shutil.rmtree(whole)
                whole.parent.rmdir()

    def _write(self, at: int) -> None:
        """Write the call at this index without the secrets that are known now."""
        found = files.write(self._scrubber.recording(self._calls[at]))
        self._texts[at] = b"".join(found.values())
        path = self._folder / _name(at + 1)
        new = path.with_name(f".{path.name}.{os.getpid()}")
        with suppress(OSError):
            new.mkdir(parents=True)
            for name, data in found.items():
                (new / name).write_bytes(data)
            ignore = self._folder.parent.parent / _GITIGNORE
            if not ignore.exists():
                ignore.write_text("*\n", encoding="utf-8")  # these files are nobody's to commit
            if path.exists():
                shutil.rmtree(path)
            new.rename(path)


def _name(number: int) -> str:
    return f"{number:06}"
