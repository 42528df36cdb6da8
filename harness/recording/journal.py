"""Several files of a folder changed together: all of them or none, even when the process is killed in between.

The new files are written beside the old ones as `NAME.new`. Then a journal that says which of them belong in place,
and which old ones go, appears at once; from then on the change will happen, if need be when the folder is next used.
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


def is_open(folder: Path) -> bool:
    """Whether a change was begun here and not finished."""
    return os.path.lexists(folder / JOURNAL)


def change(folder: Path, put: Mapping[str, bytes], remove: Collection[str]) -> None:
    """Put these files, by their paths from the folder, in place and remove those, all at once.

    Raises:
        OSError: it cannot be done; nothing is changed then, unless it had been decided already (see `settle`).
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
        sweep(folder, put)
        raise
    _sync_folder(folder)
    _put(folder, sorted(put), sorted(remove))


def settle(folder: Path, shown: str, known: Callable[[str], bool]) -> None:
    """Finish the change that was begun. `known` says which names a journal may have, `shown` what messages call it.

    Raises:
        CassetteBroken: the journal is not one.
        OSError: it cannot be done.
    """
    with (folder / JOURNAL).open("rb") as file:
        data = file.read(_MAX_BYTES)
    try:
        plan = json.loads(data)
        put, remove = plan["put"], plan["remove"]
        if all(isinstance(name, str) and known(name) for name in (*put, *remove)):
            _put(folder, put, remove)
            return
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise CassetteBroken("this is no journal of an interrupted recording; delete it", Span(shown, 1, 1))


def sweep(folder: Path, names: Iterable[str]) -> None:
    """Remove what an interrupted change of these files left beside them."""
    for name in (*names, JOURNAL):
        with suppress(FileNotFoundError, NotADirectoryError):
            (folder / f"{name}{_NEW}").unlink()


def _put(folder: Path, put: Iterable[str], remove: Iterable[str]) -> None:
    changed = {folder}
    for name in put:
        path = folder / name
        try:
            os.replace(path.with_name(path.name + _NEW), path)
        except FileNotFoundError:
            continue  # put in place before the interruption
        changed.add(path.parent)
    for name in remove:
        (folder / name).unlink(missing_ok=True)
        changed.add((folder / name).parent)
    for part in sorted(changed, reverse=True):  # the folder itself last
        if part != folder:
            with suppress(OSError):  # something is still in it
                part.rmdir()
        _sync_folder(part)
    (folder / JOURNAL).unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    # Never through a link that somebody put there.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    with open(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # folders cannot be opened on Windows, and one may be gone
        return
    with suppress(OSError):  # not every file system can
        os.fsync(handle)
    os.close(handle)
