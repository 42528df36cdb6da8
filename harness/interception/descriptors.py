"""The descriptors that the harness itself needs: code of a run that closes all there are, as daemons do, leaves them.

Closing one of them does nothing, as if it were not open. Forked processes close what they want.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Final

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
