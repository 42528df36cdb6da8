"""The paced clock, for runs that are live or being recorded: a virtual clock that never runs ahead of real time.

A `PacedTimeLoop` moves its clock only by timers and by the measured duration of real work, and waits until as much
real time has passed. So a run has the same times when it is recorded and when it is replayed.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Thread
from typing import TypeVar

from harness.time.clock import VirtualTimeLoop, real_wait
from harness.time.real import real
from harness.time.selector import POLL_INTERVAL_S, JumpingSelector
from harness.units import MEASURED_PRECISION, PRECISION


class _PacedSelector(JumpingSelector):
    """A selector that moves the clock by its timeout after as much real time has passed.

    `pending` is the number of pieces of real work under way. Only then does passing real time count: it is added to
    the clock later, as the duration of that work.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pending = 0
        self._origin = real.monotonic()

    def elapsed(self) -> float:
        """Return the real time, on the scale of the virtual time, which never runs ahead of it."""
        return real.monotonic() - self._origin

    def catch_up(self, passed: float = 0.0) -> None:
        """Discard the real time that passed while no real work was under way, except the last `passed` seconds."""
        if not self.pending:
            self._origin = real.monotonic() - self.now - passed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        others = self.wakes_idle() or self.held or self.real_time or self.sleepers.active
        if timeout == 0 or others or (timeout is None and not self.pending):
            return super().select(timeout)
        self.catch_up()
        return self._wait_until(math.inf) if timeout is None else super().select(timeout)

    def _reach(self, target: float) -> list[tuple[selectors.SelectorKey, int]]:
        self.catch_up()
        events = self._wait_until(target)
        if not events and self.elapsed() >= target:
            self.now = target
        return events

    def _wait_until(self, target: float) -> list[tuple[selectors.SelectorKey, int]]:
        while True:
            left = max(0.0, target - self.elapsed())
            events = self._real.select(min(left, POLL_INTERVAL_S))
            if events or left <= POLL_INTERVAL_S:
                return events


_uses_real_clock: ContextVar[bool] = ContextVar("_uses_real_clock", default=False)


class PacedTimeLoop(VirtualTimeLoop):
    """A loop in virtual time that never runs ahead of real time: a sleep of 30 virtual seconds takes 30 real ones.

    Virtual time passes during sleeps and `RealWork`, but not during computations.
    """

    _make_selector = _PacedSelector
    jumps = False
    _jumping: _PacedSelector

    def __init__(self) -> None:
        super().__init__()
        self._ends: set[float] = set()

    def time(self) -> float:
        """Return the virtual time in seconds; within `real_timers` the real time, on the same scale."""
        return self._jumping.elapsed() if _uses_real_clock.get() else self._jumping.now

    @contextmanager
    def in_real_time(self) -> Iterator[None]:
        """Do nothing: timers always take real time on this loop."""
        yield

    def _holds_processes(self) -> bool:
        return super()._holds_processes() and not _uses_real_clock.get()

    def begin(self, passed: float = 0.0) -> float:
        """Begin a piece of real work, or one that began `passed` real seconds ago. Return the virtual time."""
        self._jumping.catch_up(passed)
        self._jumping.pending += 1
        return self._jumping.now

    def end(self) -> None:
        """End a piece of real work that has ended or was abandoned."""
        self._jumping.pending -= 1

    def end_of_work(self, began: float, seconds: float) -> tuple[float, float]:
        """Return the virtual time at which real work ends, and its duration in seconds.

        The end is later than everything that has happened, and differs from all other ends of work: otherwise two
        answers could arrive in another order in a replay.

        Args:
            began: the virtual time at which the work began.
            seconds: the measured real duration.
        """
        seconds = round(max(seconds, self._jumping.now - began), MEASURED_PRECISION)
        end = round(began + seconds, PRECISION)
        while end <= self._jumping.now or end in self._ends:
            seconds = round(seconds + 10**-MEASURED_PRECISION, MEASURED_PRECISION)
            end = round(began + seconds, PRECISION)
        self._ends.add(end)
        return end, seconds


@contextmanager
def real_timers() -> Iterator[None]:
    """Make timers that are set inside, and in tasks that are started inside, use the real clock.

    This is for sockets and the libraries on top of them, whose time-outs count from the last answer and not from the
    last virtual event.
    """
    token = _uses_real_clock.set(True)
    try:
        yield
    finally:
        _uses_real_clock.reset(token)


class RealWork:
    """A piece of real work, under way from its construction until `end` or `abandon`, whichever comes first.

    On a loop that is not paced, only the duration is measured. `passed` is the number of real seconds since the work
    began, if the loop learns of it later; timers that are set now do not wait for this time again.
    """

    def __init__(self, passed: float = 0.0) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop if isinstance(loop, PacedTimeLoop) else None
        self._virtual = self._loop.begin(passed) if self._loop else 0.0
        self._began = real.monotonic() - passed
        self._under_way = True

    @property
    def elapsed_s(self) -> float:
        """The real seconds since the work began."""
        return round(real.monotonic() - self._began, MEASURED_PRECISION)

    async def end(self, seconds: float | None = None) -> float:
        """Advance virtual time to the end of the work, and return its duration in seconds.

        It is what `elapsed_s` was at its end; None if that is now.
        """
        seconds = self.elapsed_s if seconds is None else seconds
        if self._loop is None:
            return seconds
        end, seconds = self._loop.end_of_work(self._virtual, seconds)
        over = self._loop.create_future()
        timer = self._loop.call_at(end, over.set_result, None)
        try:
            await over
        finally:
            timer.cancel()
            self.abandon()
        return seconds

    def abandon(self) -> None:
        """Drop the work, because it failed or its result is no longer needed."""
        if self._loop is not None and self._under_way:
            self._loop.end()
        self._under_way = False


Result = TypeVar("Result")


async def in_thread(work: Callable[[], Result], name: str) -> Result:
    """Return the result of work that blocks, done in a daemon thread of this name. It takes no virtual time."""
    done: Future[Result] = Future()
    done.set_running_or_notify_cancel()  # the end of the run does not cancel the work

    def do() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    with real_wait(no_timeout=True):
        Thread(target=do, name=name, daemon=True).start()
        return await asyncio.wrap_future(done)
