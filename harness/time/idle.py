"""Who waits until nothing is ready to run, and who of them hears of it first.

Schedulers nest: one that runs inside a visit of another has to come to the end of an instant before the outer one may
take it for over. So the innermost waiter is woken first, and those of one level in turn.
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
def inside() -> Iterator[None]:
    """What is awaited or started inside is a level further in."""
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
    """A queue of futures that are set one by one, each time nothing is ready."""

    def __init__(self) -> None:
        self._heap: list[_Waiter] = []
        self._numbers = itertools.count()

    def add(self, future: asyncio.Future[None], *, even_if_held: bool) -> None:
        """Wake the future at the level of who adds it; unless `even_if_held`, only when nobody holds the clock."""
        heapq.heappush(self._heap, _Waiter(-_level.get(), next(self._numbers), future, even_if_held))

    def is_next(self, *, held: bool) -> bool:
        """True if `wake` would wake a future."""
        while self._heap and self._heap[0].future.done():
            heapq.heappop(self._heap)
        return bool(self._heap) and (self._heap[0].even_if_held or not held)

    def wake(self) -> None:
        """Set the future that is next."""
        heapq.heappop(self._heap).future.set_result(None)
