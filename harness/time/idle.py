"""The queue of tasks that wait until the event loop is idle.

Schedulers nest: one that runs inside a visit of another must finish an instant before the outer one considers it
over. So the innermost waiter is woken first, and waiters of one level in the order of their arrival.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

_level: ContextVar[int] = ContextVar("_level", default=0)


@contextmanager
def nested_level() -> Iterator[None]:
    """Let awaitables and tasks that are started inside wait one level further in."""
    token = _level.set(_level.get() + 1)
    try:
        yield
    finally:
        _level.reset(token)


class _Waiter(NamedTuple):
    outwardness: int
    number: int
    future: asyncio.Future[None]
    even_if_held: bool


class IdleWaiters:
    """A queue of futures. Each time the loop is idle, one of them is set."""

    def __init__(self) -> None:
        self._heap: list[_Waiter] = []
        self._numbers = itertools.count()

    def add(self, future: asyncio.Future[None], *, even_if_held: bool) -> None:
        """Queue a future at the current level. Without `even_if_held`, it waits until nobody holds the clock."""
        heapq.heappush(self._heap, _Waiter(-_level.get(), next(self._numbers), future, even_if_held))

    def is_next(self, *, held: bool) -> bool:
        """True if there is a future to set now."""
        while self._heap and self._heap[0].future.done():
            heapq.heappop(self._heap)
        return bool(self._heap) and (self._heap[0].even_if_held or not held)

    def wake(self) -> None:
        """Set the next future."""
        heapq.heappop(self._heap).future.set_result(None)
