"""Locks on a cassette between processes. The lock files are in the system's temporary folder, not in the project."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path


@contextmanager
def locked(path: Path, purpose: str, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold a lock within the context. Does nothing on systems without `fcntl`.

    Args:
        path: what is locked; it need not exist.
        purpose: locks on one path with different purposes are independent.
        shared: allow other holders of a shared lock.
        wait: wait for another holder.

    Raises:
        BlockingIOError: another process holds it, and `wait` is false.
        OSError: the lock file cannot be opened.
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
            if _is_same_file(handle, file):
                break
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the previous holder has removed the file
    try:
        yield
    finally:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The exclusive lock shows that nobody else holds it; whoever opened the file sees that it is removed.
            if _is_same_file(handle, file):
                file.unlink()
        except OSError:
            pass
        os.close(handle)


def _is_same_file(handle: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), file.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False
