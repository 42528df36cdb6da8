"""Ends processes that code forks and that come back from it: what follows is for the process that called it alone.

A second one would write the results, the report and the output again. A fork that does its work and exits never
comes back.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_exit: Final = os._exit
_TOLD: Final = (
    b"harness: a process that was forked in a run came back from the code that forked it, and was ended\n"
)


_forks = 0
"""The forks of Python code that lead to this process. To ask the system for its number takes ten times as long."""


def _count() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count)


def forks() -> int:
    """Return the number of forks that lead to this process."""
    return _forks


def end_if_forked_since(before: int) -> None:
    """End this process, with a message, if Python code has forked it since there were so many `forks`."""
    if _forks != before:
        _end()


def _end() -> None:
    with suppress(OSError):
        os.write(2, _TOLD)
    _exit(0)


def in_one_process(function: Callable[P, R], /, *args: P.args, **named: P.kwargs) -> R:
    """Call a function. A process that it forked and that returns from it, or raises, ends here, with a message.

    This holds for a fork of code in C, too.
    """
    process = os.getpid()
    try:
        return function(*args, **named)
    finally:
        if os.getpid() != process:
            _end()
