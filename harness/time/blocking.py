"""Coroutines that run without an event loop: in a thread, or in code that blocks the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

from harness.errors import RunError

T = TypeVar("T")

_sleep: ContextVar[Callable[[float], None] | None] = ContextVar("_sleep", default=None)
"""Sleeps in virtual time in code that runs without an event loop."""


async def wait(seconds: float) -> None:
    """Wait for virtual seconds, also in a coroutine of `without_waiting`."""
    sleep = _sleep.get()
    await asyncio.sleep(seconds) if sleep is None else sleep(seconds)


def blocks() -> bool:
    """True in a coroutine of `without_waiting`, which has no event loop."""
    return _sleep.get() is not None


def without_waiting(work: Coroutine[Any, Any, T], sleep: Callable[[float], None]) -> T:
    """Return the result of a coroutine that waits for nothing but `wait`, which calls `sleep`. Works in any thread.

    Raises:
        RunError: it waits for something else.
    """
    token = _sleep.set(sleep)
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        _sleep.reset(token)
    work.close()
    raise RunError("this cannot be awaited where code blocks")
