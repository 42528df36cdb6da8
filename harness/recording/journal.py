"""Changes several files of a folder atomically, by a write-ahead journal, even if the process is killed.

The new files are written beside the old ones as `NAME.new`. Then a journal, which lists the files to replace and to
remove, is put in place by one rename: from then on the change is committed. If the process is killed before it has
been applied, `recover` applies it when the folder is next used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from harness.errors import CassetteBroken, Span

JOURNAL: Final = "cassette.journal"
_NEW: Final = ".new"
_MAX_BYTES: Final = 1_000_000


def is_pending(folder: Path) -> bool:
    """Return True if a committed change has not been applied."""
    return os.path.lexists(folder / JOURNAL)


def commit(folder: Path, put: Mapping[str, bytes], remove: Collection[str]) -> None:
    """Write the files in `put` and remove those in `remove`, atomically. All paths are relative to the folder.

    Raises:
        OSError: the change failed. Either nothing is changed, or the change is committed and `recover` applies it.
    """
    try:
        for name, data in put.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path.with_name(path.name + _NEW), data)
        for part in sorted({(folder / name).parent for name in put}):
            _sync_folder(part)
        plan = json.dumps({"put": sorted(put), "remove": sorted(remove)}, indent=1).encode()
        _write(folder / f"{JOURNAL}{_NEW}", plan)
        os.replace(folder / f"{JOURNAL}{_NEW}", folder / JOURNAL)
    except OSError:
        discard(folder, put)
        raise
    _sync_folder(folder)
    _apply(folder, sorted(put), sorted(remove))


def recover(folder: Path, shown: str, is_known: Callable[[str], bool]) -> None:
    """Apply a committed change that was interrupted.

    Args:
        folder: the folder with the journal.
        shown: the path of the journal in error messages.
        is_known: returns True for a path that a journal may change.

    Raises:
        CassetteBroken: the journal is not valid.
        OSError: the change cannot be applied.
    """
    with (folder / JOURNAL).open("rb") as file:
        data = file.read(_MAX_BYTES)
    try:
        plan = json.loads(data)
        put, remove = plan["put"], plan["remove"]
        if all(isinstance(name, str) and is_known(name) for name in (*put, *remove)):
            _apply(folder, put, remove)
            return
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise CassetteBroken("this is not a journal of an interrupted recording; delete it", Span(shown, 1, 1))


def discard(folder: Path, names: Iterable[str]) -> None:
    """Remove the `.new` files that an uncommitted change of these files has left."""
    for name in (*names, JOURNAL):
        with suppress(FileNotFoundError, NotADirectoryError):
            (folder / f"{name}{_NEW}").unlink()


def _apply(folder: Path, put: Iterable[str], remove: Iterable[str]) -> None:
    changed = {folder}
    for name in put:
        path = folder / name
        try:
            os.replace(path.with_name(path.name + _NEW), path)
        except FileNotFoundError:
            continue  # replaced before the interruption
        changed.add(path.parent)
    for name in remove:
        (folder / name).unlink(missing_ok=True)
        changed.add((folder / name).parent)
    for part in sorted(changed, reverse=True):  # the folder itself last
        if part != folder:
            with suppress(OSError):  # not empty
                part.rmdir()
        _sync_folder(part)
    (folder / JOURNAL).unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    # O_EXCL: never write through a link.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    with open(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows cannot open folders, and the folder may have been removed
        return
    with suppress(OSError):  # not every file system supports it
        os.fsync(handle)
    os.close(handle)
