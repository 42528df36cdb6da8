"""The paced clock, for runs against a real world: virtual, and never ahead of real time.

A `PacedTimeLoop` moves its clock only by timers and by what real work was measured to take, and waits until as much
real time has passed. So a run has the same times when it is recorded and when it is replayed.
"""

from __future__ import annotations

import math
import selectors
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from harness.time.clock import LOOK_UP_EVERY_S, JumpingSelector, VirtualTimeLoop
from harness.units import MEASURED, PRECISION


class _PacedSelector(JumpingSelector):
    """A selector that moves the clock by its timeout when so much real time has passed.

    `pending` counts the real work under way. Only then does real time that has passed count: it is spent later, as
    the duration of that work.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pending = 0
        self._origin = time.monotonic()

    def elapsed(self) -> float:
        """The real time on the scale of the virtual one. Virtual time never runs ahead of it."""
        return time.monotonic() - self._origin

    def catch_up(self, passed: float = 0.0) -> None:
        """Discard the real time that passed while no real work was under way, except the last `passed` seconds."""
        if not self.pending:
            self._origin = time.monotonic() - self.now - passed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0 or self.wakes_idle() or self.holders or self.real_time:
            return super().select(timeout)
        self.catch_up()
        if timeout is None:
            return self._wait_until(math.inf) if self.pending else super().select(None)
        target = round(self.now + timeout, PRECISION)
        events = self._wait_until(target)
        if not events and self.elapsed() >= target:
            self.now = target
        return events

    def _wait_until(self, target: float) -> list[tuple[selectors.SelectorKey, int]]:
        while True:
            left = max(0.0, target - self.elapsed())
            events = self._real.select(min(left, LOOK_UP_EVERY_S))
            if events or left <= LOOK_UP_EVERY_S:
                return events


_by_the_real_clock: ContextVar[bool] = ContextVar("_by_the_real_clock", default=False)


class PacedTimeLoop(VirtualTimeLoop):
    """A loop in virtual time that never runs ahead of the real one: a sleep of 30 virtual seconds takes 30 real ones.

    Real time passes for `RealWork` and for sleeps; the time of computations does not count.
    """

    _make_selector = _PacedSelector
    _jumping: _PacedSelector

    def __init__(self) -> None:
        super().__init__()
        self._ends: set[float] = set()

    def time(self) -> float:
        """The virtual time in seconds; the real one, on the same scale, within `real_timers`."""
        return self._jumping.elapsed() if _by_the_real_clock.get() else self._jumping.now

    @contextmanager
    def in_real_time(self) -> Iterator[None]:
        """Nothing changes: timers take their real time here."""
        yield

    def begin(self, passed: float = 0.0) -> float:
        """Note that real work begins, or began `passed` real seconds ago. Returns the virtual time."""
        self._jumping.catch_up(passed)
        self._jumping.pending += 1
        return self._jumping.now

    def end(self) -> None:
        """Note that real work has ended, or was abandoned."""
        self._jumping.pending -= 1

    def end_of_work(self, began: float, seconds: float) -> tuple[float, float]:
        """The virtual time at which work ends, and its duration in seconds.

        It ends after everything that has happened, and at the same time as nothing else: otherwise two answers could
        arrive in another order in a replay.
        """
        seconds = round(max(seconds, self._jumping.now - began), MEASURED)
        end = round(began + seconds, PRECISION)
        while end <= self._jumping.now or end in self._ends:
            seconds = round(seconds + 10**-MEASURED, MEASURED)
            end = round(began + seconds, PRECISION)
        self._ends.add(end)
        return end, seconds


@contextmanager
def real_timers() -> Iterator[None]:
    """Timers that are set inside, and in tasks that are started inside, use the real clock.

    For sockets and what is built on them, whose time-outs count from the last answer and not from the last virtual
    event.
    """
    token = _by_the_real_clock.set(True)
    try:
        yield
    finally:
        _by_the_real_clock.reset(token)
