"""The selectors of event loops whose clock is not the real one.

`JumpingSelector` moves the clock of a run by the time that asyncio wants to wait, when nothing is ready to run.
Before that, it wakes the tasks that wait until the loop is idle. Schedulers nest: one that runs inside a visit of
another must finish an instant before the outer one considers it over. So the innermost waiter is woken first, and
waiters of one level in the order of their arrival.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import selectors
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from harness.errors import RunError
from harness.time.real import real
from harness.time.sleepers import POLL_S, Sleepers
from harness.time.turns import Turns
from harness.units import PRECISION

DEADLOCK_AFTER_S = 5.0
"""Real seconds without any event that count as a deadlock, if there is no timer, no ready callback and no holder of
the clock. Only a foreign thread could still wake the loop."""

OUTSIDE_LIMIT_S = 60.0
"""Real seconds without any event that real work (a subprocess, a thread, a live server) may take."""

POLL_INTERVAL_S = 0.2
"""Real seconds after which the loop wakes up while something outside works. A Ctrl-C that another thread received, or
that came right before the loop began to wait, would not wake it."""

POLL_EVERY_TURNS = 16
"""Turns of the loop after which it polls for events, while callbacks are ready and nobody holds the clock."""


class Deadlock(RunError):
    """A run in which every task waits and no timer is set, so that nothing can ever happen again."""

    code = "deadlock"


class RealSockets(selectors.BaseSelector):
    """A selector whose files are those of a real one, `_real`. Subclasses decide how long `select` waits."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def close(self) -> None:
        self._real.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()


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


class JumpingSelector(RealSockets):
    """A selector that moves the clock by its timeout instead of waiting for it.

    Attributes:
        now: the virtual time in seconds.
        holders: the number of those who hold the clock.
        no_timeout: the number of holders without a time limit.
        real_time: the number of those who want the clock to run in real time.
        idle: the tasks that wait until nothing is ready to run.
        turns: of the threads of the run, if they take turns.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.holders = 0
        self.no_timeout = 0
        self.real_time = 0
        self._turns = 0  # turns of the loop since it last polled for events
        self.idle = IdleWaiters()
        self.sleepers = Sleepers()
        self.turns: Turns | None = None

    @property
    def held(self) -> bool:
        """True if something outside the simulation is at work."""
        return self.holders > self.sleepers.yielded or self.sleepers.restless

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        sleepers = self.sleepers
        if timeout == 0 and not (self.real_time or sleepers.active or self.holders > sleepers.yielded):
            # A simulation rarely has events from outside, and polling for them is a system call.
            self._turns = (self._turns + 1) % POLL_EVERY_TURNS
            return [] if self._turns else self._real.select(0)
        turns = self.turns
        if timeout == 0 or turns is None:
            return self._select(timeout)
        turns.loop_watches = True
        try:
            return self._real.select(0) if turns.run_next() else self._select(timeout)
        finally:
            turns.loop_watches = False

    def _select(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout != 0 and self.wakes_idle():
            return self._real.select(0) or self._wake_idle()
        if self.real_time:
            return self._select_in_real_time(timeout)
        if self.sleepers.active:
            return self._select_beside_threads(timeout)
        if self.holders > self.sleepers.yielded:  # no thread is restless here
            # The clock stands still: timers must not fire, callbacks that are ready (timeout 0) may run.
            return self._select_outside(timeout)
        events = self._real.select(0)
        if events:
            return events
        if timeout is None:
            events = self._real.select(DEADLOCK_AFTER_S)
            if not events:
                raise Deadlock("the run is stuck: every task waits for something that will never happen")
            return events
        return self._reach(round(self.now + timeout, PRECISION))

    def _reach(self, target: float) -> list[tuple[selectors.SelectorKey, int]]:
        """Move the clock, and return the events that come before, if any."""
        self.now = target
        return []

    def wakes_idle(self) -> bool:
        """True if a task that waits for the loop to be idle is to be woken now."""
        return self.idle.is_next(held=self.held)

    def _wake_idle(self) -> list[tuple[selectors.SelectorKey, int]]:
        self.idle.wake()
        return []

    def _select_outside(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0:
            return self._real.select(0)
        silent_s = 0.0
        while (
            not (events := self._real.select(min(POLL_INTERVAL_S, OUTSIDE_LIMIT_S))) and not self.no_timeout
        ):
            silent_s += POLL_INTERVAL_S
            if silent_s >= OUTSIDE_LIMIT_S:
                text = (
                    f"something outside the simulation has been silent for {OUTSIDE_LIMIT_S:g} real seconds"
                )
                raise Deadlock(text)
        return events

    def _select_beside_threads(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """Move the clock to the next timer or sleeping thread, if all other threads sleep or wait for each other."""
        if timeout == 0:
            return self._real.select(0)
        sleepers = self.sleepers
        settled, wake = sleepers.settled(), sleepers.next()
        free = self.holders <= sleepers.yielded or (wake is not None and sleepers.all_wait())
        events = self._real.select(0 if settled and free else POLL_S)
        ends = [] if timeout is None else [round(self.now + timeout, PRECISION)]
        ends += [] if wake is None else [wake]
        if not (settled and free) or events or not ends:
            return events
        events = self._reach(max(self.now, min(ends)))
        sleepers.wake(self.now)
        return events

    def _select_in_real_time(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        began = real.monotonic()
        events = self._real.select(POLL_INTERVAL_S if timeout is None else min(timeout, POLL_INTERVAL_S))
        self.now = round(self.now + real.monotonic() - began, PRECISION)
        return events
