"""Work that pools of threads are given: when it begins, and whether a pool has any left.

A run waits for work that is certain to get a thread, so that its place does not depend on which thread is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary


class Place(Protocol):
    """A place in the order of turns (`harness.time.turns`)."""

    def expect(self, is_cancelled: Callable[[], bool]) -> None:
        """Let nobody have a turn before what has this place has queued."""

    def run(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Call a function when it is its turn."""


_unfinished: Final[WeakKeyDictionary[Any, set[object]]] = WeakKeyDictionary()
"""The work that pools of threads were given and have not finished; not of pools whose threads were there before."""


class Submitted:
    """Work that a pool of threads is given, and its place in the order of turns, if it has one."""

    def __init__(self, pool: Any, place: Place | None) -> None:
        self._place = place
        self._others = _unfinished.get(pool)
        if self._others is None and not pool._threads:
            self._others = _unfinished[pool] = set()
        self._begins_at_once = self._others is not None and _begins_at_once(pool, len(self._others))

    def queue(self, future: Future[Any]) -> None:
        """Note that a thread gets it next."""
        if self._others is not None:
            self._others.add(self)
        if self._begins_at_once and self._place is not None:
            self._place.expect(future.done)

    def run(self, work: Callable[[], object]) -> None:
        """Do the work when it is its turn."""
        if self._place is not None:
            self._place.run(self._finish, work)
        else:
            self._finish(work)

    def _finish(self, work: Callable[[], object]) -> None:
        try:
            work()
        finally:
            if self._others is not None:
                self._others.discard(self)


def is_finished(pool: Any) -> bool:
    """True if a pool of threads is known to have nothing to do."""
    return _unfinished.get(pool) == set()


def _begins_at_once(pool: Any, others: int) -> bool:
    """True if work is certain to get a thread now, beside others: an idle one, or a new one."""
    if getattr(pool, "_initializer", None) is not None:  # it may take long
        return False
    threads = len(pool._threads)
    is_made = threads < pool._max_workers and not pool._idle_semaphore._value
    return others < threads or (others == threads and is_made)
