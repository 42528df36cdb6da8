"""The descriptors that the harness itself needs, and its standard streams, which code of a run cannot take away.

Code that closes all descriptors, as daemons do, leaves those that are kept: closing one does nothing, as if it were
not open. Forked processes close what they want. Standard output and error may be closed or redirected inside a run.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Final

from harness.time.rebinding import rebind

_kept: Final[dict[int, int]] = {}
"""By number, the process that needs a descriptor."""


def keep_open(descriptor: int) -> None:
    """Keep a descriptor open until `let_go`. Whoever opened it closes it after that."""
    replace_closing()
    _kept[descriptor] = os.getpid()


def let_go(descriptor: int) -> None:
    """Let code close a descriptor again."""
    _kept.pop(descriptor, None)


def _is_kept(descriptor: int) -> bool:
    return descriptor in _kept and _kept[descriptor] == os.getpid()


@cache
def replace_closing() -> None:
    """Replace the functions that close descriptors by number, once in a process."""
    rebind(os, [("close", _close), ("closerange", _close_range)])


def _close(original: Callable[[int], None]) -> Callable[[int], None]:
    def close(fd: int) -> None:
        if fd in _kept and _is_kept(fd):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        original(fd)

    return close


def _close_range(original: Callable[[int, int], None]) -> Callable[[int, int], None]:
    def closerange(fd_low: int, fd_high: int, /) -> None:
        low = fd_low
        for kept in sorted(each for each in _kept if fd_low <= each < fd_high and _is_kept(each)):
            original(low, kept)
            low = kept + 1
        original(low, fd_high)

    return closerange


_DESCRIPTORS: Final = (1, 2)


class _UncloseableStream:
    """A stream that can be used but not closed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Any:
        return iter(self._stream)

    def __enter__(self) -> _UncloseableStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def close(self) -> None:
        """Flush the stream and leave it open."""
        self.flush()


@contextmanager
def preserve_streams() -> Iterator[None]:
    """Restore standard output and error on exit, even if their descriptors were closed or redirected."""
    streams = sys.stdout, sys.stderr
    descriptors = {number: copy for number in _DESCRIPTORS if (copy := _copy(number)) is not None}
    for copy in descriptors.values():
        keep_open(copy)
    sys.stdout, sys.stderr = (stream and _UncloseableStream(stream) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        for number, copy in descriptors.items():
            if not _same(number, copy):
                os.dup2(copy, number)
            let_go(copy)
            os.close(copy)


def _copy(descriptor: int) -> int | None:
    with suppress(OSError):
        return os.dup(descriptor)
    return None


def _same(one: int, other: int) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(one), os.fstat(other))
    return False
