"""Virtual time: an asyncio loop whose clock jumps when nothing is ready to run.

A sleep of 100,000 virtual seconds takes microseconds, time-outs fire exactly, and concurrent waits take as long
as the longest of them. Work that really waits (a subprocess, a live provider, a worker thread) must hold the
clock: enter `VirtualTimeLoop.hold()` around it. This is trio's `MockClock` with an autojump threshold of zero.

Only code that asks the loop for the time sees virtual time; `time.monotonic()` stays real.

`harness.time.paced` has the loop for runs that are live or being recorded.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from harness.errors import RunError
from harness.time.idle import IdleWaiters
from harness.units import PRECISION

T = TypeVar("T")

DEADLOCK_AFTER_S = 5.0
"""Real seconds without any event that count as a deadlock, if there is no timer, no ready callback and no holder of
the clock. Only a foreign thread could still wake the loop."""

OUTSIDE_LIMIT_S = 60.0
"""Real seconds without any event that real work (a subprocess, a thread, a live server) may take."""

POLL_INTERVAL_S = 0.2
"""Real seconds after which the loop wakes up during work without a time-out. A Ctrl-C that another thread received
would not wake it."""

_RESOLUTION = 10.0**-PRECISION
"""The resolution of virtual time in seconds (a nanosecond)."""

POLL_EVERY_TURNS = 16
"""Turns of the loop after which it polls for events, while callbacks are ready and nobody holds the clock."""


class Deadlock(RunError):
    """A run in which every task waits and no timer is set, so that nothing can ever happen again."""

    code = "deadlock"


class JumpingSelector(selectors.BaseSelector):
    """A selector that moves the clock by its timeout instead of waiting for it.

    Attributes:
        now: the virtual time in seconds.
        holders: the number of those who hold the clock.
        no_timeout: the number of holders without a time limit.
        real_time: the number of those who want the clock to run in real time.
        idle: the tasks that wait until nothing is ready to run.
    """

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now = 0.0
        self.holders = 0
        self.no_timeout = 0
        self.real_time = 0
        self._turns = 0  # turns of the loop since it last polled for events
        self.idle = IdleWaiters()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout != 0 and self.wakes_idle():
            return self._real.select(0) or self._wake_idle()
        if self.real_time:
            return self._select_in_real_time(timeout)
        if self.holders:
            # The clock stands still: timers must not fire, callbacks that are ready (timeout 0) may run.
            return self._select_outside(timeout)
        if timeout == 0:
            # A simulation rarely has events from outside, and polling for them is a system call.
            self._turns = (self._turns + 1) % POLL_EVERY_TURNS
            return [] if self._turns else self._real.select(0)
        events = self._real.select(0)
        if events:
            return events
        if timeout is None:
            events = self._real.select(DEADLOCK_AFTER_S)
            if not events:
                raise Deadlock("the run is stuck: every task waits for something that will never happen")
            return events
        self.now = round(self.now + timeout, PRECISION)
        return []

    def wakes_idle(self) -> bool:
        """True if a task that waits for the loop to be idle is to be woken now."""
        return self.idle.is_next(held=self.holders > 0)

    def _wake_idle(self) -> list[tuple[selectors.SelectorKey, int]]:
        self.idle.wake()
        return []

    def _select_outside(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        limit = POLL_INTERVAL_S if self.no_timeout else OUTSIDE_LIMIT_S
        events = self._real.select(0 if timeout == 0 else limit)
        if not events and timeout != 0 and not self.no_timeout:
            raise Deadlock(
                f"something outside the simulation has been silent for {OUTSIDE_LIMIT_S:g} real seconds"
            )
        return events

    def _select_in_real_time(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        began = time.monotonic()
        events = self._real.select(OUTSIDE_LIMIT_S if timeout is None else min(timeout, OUTSIDE_LIMIT_S))
        self.now = round(self.now + time.monotonic() - began, PRECISION)
        return events

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


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time. `time()` starts at 0.0 and is in virtual seconds.

    Use it with `asyncio.Runner(loop_factory=VirtualTimeLoop)`. The run raises `Deadlock` if nothing can ever happen
    again. Worker threads started through `run_in_executor` hold the clock.
    """

    _make_selector: Callable[[], JumpingSelector] = JumpingSelector

    def __init__(self) -> None:
        self._jumping = self._make_selector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual time, in seconds since the loop was made."""
        return self._jumping.now

    @property
    def _clock_resolution(self) -> float:
        """The tolerance within which asyncio considers a timer due: not less than the precision of floats."""
        return max(_RESOLUTION, math.ulp(self._jumping.now))

    @_clock_resolution.setter
    def _clock_resolution(self, resolution: float) -> None:
        """Ignore the resolution of the real clock, which asyncio sets."""

    async def idle(self, *, even_if_held: bool = True) -> None:
        """Wait until nothing else is ready to run, so that the clock would move next.

        Without `even_if_held`, wait also until nobody holds the clock (see `end_of_instant`).
        """
        future = self.create_future()
        self._jumping.idle.add(future, even_if_held=even_if_held)
        await future

    @contextmanager
    def hold(self, *, no_timeout: bool = False) -> Iterator[None]:
        """Stop the clock while something outside the simulation takes real time.

        The run raises `Deadlock` after `OUTSIDE_LIMIT_S` real seconds without any event, unless `no_timeout`.
        """
        self._jumping.holders += 1
        self._jumping.no_timeout += no_timeout
        try:
            yield
        finally:
            self._jumping.holders -= 1
            self._jumping.no_timeout -= no_timeout

    @contextmanager
    def in_real_time(self) -> Iterator[None]:
        """Let the clock run in real time, for outside work that sets timers of its own."""
        self._jumping.real_time += 1
        try:
            yield
        finally:
            self._jumping.real_time -= 1

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        """Run as asyncio does; after a KeyboardInterrupt, closing the loop does not wait for worker threads."""
        try:
            return super().run_until_complete(future)
        except KeyboardInterrupt:
            # Closing the loop waits for the threads of its default executor; a new one has none.
            self.set_default_executor(ThreadPoolExecutor())
            raise

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run a function in a thread. The clock stands still until the thread has ended and its result is set."""
        awaited = {"thread", "result"}
        begun = False

        def arrived(*parts: str) -> None:
            awaited.difference_update(parts)
            if not awaited:
                self._jumping.holders -= 1

        def work(*arguments: Any) -> Any:
            nonlocal begun
            begun = True
            try:
                return func(*arguments)
            finally:
                if not self.is_closed():
                    self.call_soon_threadsafe(arrived, "thread")

        future = super().run_in_executor(executor, work, *args)
        self._jumping.holders += 1  # not before, as the executor may raise
        # The end of the thread and the arrival of its result come in any order. A call that is cancelled before it
        # begins has no thread.
        future.add_done_callback(lambda _: arrived("result", *([] if begun else ["thread"])))
        return future


async def idle() -> None:
    """Wait until nothing else is ready to run. On a loop without a virtual clock, let other tasks run once."""
    loop = asyncio.get_running_loop()
    await (loop.idle() if isinstance(loop, VirtualTimeLoop) else asyncio.sleep(0))


async def end_of_instant() -> None:
    """Wait until nothing else can happen at this virtual time: until the loop is idle and nobody holds the clock."""
    loop = asyncio.get_running_loop()
    await (loop.idle(even_if_held=False) if isinstance(loop, VirtualTimeLoop) else asyncio.sleep(0))


@contextmanager
def in_real_time() -> Iterator[None]:
    """Let the running loop's clock run in real time, if it is virtual."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualTimeLoop):
        with loop.in_real_time():
            yield
    else:
        yield


@contextmanager
def real_wait(*, no_timeout: bool = False) -> Iterator[None]:
    """Hold the running loop's clock, if it is virtual; see `VirtualTimeLoop.hold`."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualTimeLoop):
        with loop.hold(no_timeout=no_timeout):
            yield
    else:
        yield
