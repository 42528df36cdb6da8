"""Locks between processes on one cassette. Their files are in the system's temporary folder, never in the project."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path


@contextmanager
def locked(path: Path, purpose: str, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold the lock of this path for this purpose, alone or `shared`. Does nothing where there are no such locks.

    Raises:
        BlockingIOError: another holds it, and `wait` is false.
        OSError: the file of the lock cannot be opened.
    """
    try:
        import fcntl
    except ImportError:  # not a POSIX system: nothing to lock with
        yield
        return
    name = sha256(f"{purpose}:{path.resolve()}".encode("utf-8", "surrogateescape")).hexdigest()[:24]
    file = Path(tempfile.gettempdir()) / f"harness-{os.getuid()}-{name}.lock"
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    while True:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, how)
            if _is(handle, file):
                break
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # whoever held it before has removed it
    try:
        yield
    finally:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is(
                handle, file
            ):  # nobody else holds it, and nobody can have it without seeing that it is gone
                file.unlink()
        except OSError:
            pass
        os.close(handle)


def _is(handle: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), file.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False
