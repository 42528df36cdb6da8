"""Virtual time: an asyncio loop whose clock jumps when nothing is ready to run.

A sleep of 100,000 virtual seconds costs microseconds, timeouts fire exactly, and parallel waits cost the
longest of them. Work that really waits (a subprocess, a live provider, a worker thread) holds the clock
still: enter `VirtualTimeLoop.hold()` around it. The idea is trio's `MockClock` with an autojump of zero.

Only code that asks the loop for the time sees virtual time; `time.monotonic()` stays real.

`harness.time.paced` has the loop for runs against a real world, or while it is recorded.
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

# With no timer, no ready callback and nobody holding the clock, only a foreign thread could wake the loop.
# This many real seconds of silence are taken for a deadlock.
DEADLOCK_AFTER_S = 5.0

# Real seconds of silence allowed to real work (a subprocess, a thread, a live server).
OUTSIDE_LIMIT_S = 60.0

# While somebody may take as long as they like, the loop wakes up every so many real seconds: Ctrl-C that another
# thread received would not wake it.
LOOK_UP_EVERY_S = 0.2

# Virtual time is kept to the nanosecond.
_RESOLUTION = 10.0**-PRECISION

# While callbacks are ready and nobody holds the clock, the loop looks for events every so many turns.
LOOK_UP_EVERY_TURNS = 16


class Deadlock(RunError):
    """Every task waits and no timer is set: nothing can ever happen again."""

    code = "deadlock"


class JumpingSelector(selectors.BaseSelector):
    """A selector that, instead of waiting for its timeout, moves the clock by it."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now = 0.0
        self.holders = 0
        self.no_timeout = 0  # of the holders, those without a limit
        self.real_time = 0
        self._turns = 0  # of the loop since it looked for events
        self.idle = IdleWaiters()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout != 0 and self.wakes_idle():
            return self._real.select(0) or self._wake_idle()
        if self.real_time:
            return self._select_in_real_time(timeout)
        if self.holders:
            # The clock stands still, so timers must not fire; callbacks that are ready (timeout 0) may.
            return self._select_outside(timeout)
        if timeout == 0:
            # Nothing of the simulation comes from outside, and looking there is a system call.
            self._turns = (self._turns + 1) % LOOK_UP_EVERY_TURNS
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
        """True if somebody waits for nothing to be ready."""
        return self.idle.is_next(held=self.holders > 0)

    def _wake_idle(self) -> list[tuple[selectors.SelectorKey, int]]:
        self.idle.wake()
        return []

    def _select_outside(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        limit = LOOK_UP_EVERY_S if self.no_timeout else OUTSIDE_LIMIT_S
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
    """An event loop in virtual time; `time()` starts at 0.0 and is in virtual seconds.

    Use it with `asyncio.Runner(loop_factory=VirtualTimeLoop)`. Raises `Deadlock` out of the run when
    nothing can ever happen again. Worker threads started through `run_in_executor` hold the clock.
    """

    _make_selector: Callable[[], JumpingSelector] = JumpingSelector

    def __init__(self) -> None:
        self._jumping = self._make_selector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """The virtual time, in seconds since the loop was made."""
        return self._jumping.now

    @property
    def _clock_resolution(self) -> float:
        """How much earlier than due asyncio runs a timer: where floats are coarser than this, none would be due."""
        return max(_RESOLUTION, math.ulp(self._jumping.now))

    @_clock_resolution.setter
    def _clock_resolution(self, resolution: float) -> None:
        """Asyncio sets that of the real clock."""

    async def idle(self, *, even_if_held: bool = True) -> None:
        """Wait until nothing else is ready to run, so that the clock would move next; see `end_of_instant`."""
        future = self.create_future()
        self._jumping.idle.add(future, even_if_held=even_if_held)
        await future

    @contextmanager
    def hold(self, *, no_timeout: bool = False) -> Iterator[None]:
        """Keep the clock still while something outside the simulation takes real time.

        Raises `Deadlock` out of the run when it is silent for `OUTSIDE_LIMIT_S` real seconds, unless `no_timeout`.
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
        """Let the clock run as real clocks do, for work that sets timers of its own."""
        self._jumping.real_time += 1
        try:
            yield
        finally:
            self._jumping.real_time -= 1

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        """As asyncio's, but after a KeyboardInterrupt closing the loop does not wait for worker threads."""
        try:
            return super().run_until_complete(future)
        except KeyboardInterrupt:
            self.set_default_executor(
                ThreadPoolExecutor()
            )  # closing the loop waits for those of its executor
            raise

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run a function in a thread; the clock stands still until the thread is done and its result is here."""
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
        self._jumping.holders += 1  # after it, as an executor may refuse
        # The thread signals its end before its result is set.
        future.add_done_callback(lambda _: arrived("result", *([] if begun else ["thread"])))
        return future


async def idle() -> None:
    """Wait until nothing else is ready to run; on a loop without a virtual clock, let the others run once."""
    loop = asyncio.get_running_loop()
    await (loop.idle() if isinstance(loop, VirtualTimeLoop) else asyncio.sleep(0))


async def end_of_instant() -> None:
    """Wait until nothing else can happen at this virtual time: as `idle`, and for work that holds the clock."""
    loop = asyncio.get_running_loop()
    await (loop.idle(even_if_held=False) if isinstance(loop, VirtualTimeLoop) else asyncio.sleep(0))


@contextmanager
def in_real_time() -> Iterator[None]:
    """Let the running loop's clock run as real clocks do; nothing changes where it does already."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualTimeLoop):
        with loop.in_real_time():
            yield
    else:
        yield


@contextmanager
def real_wait(*, no_timeout: bool = False) -> Iterator[None]:
    """Hold the running loop's clock, if it is virtual; see `VirtualTimeLoop.hold`. Else do nothing."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualTimeLoop):
        with loop.hold(no_timeout=no_timeout):
            yield
    else:
        yield
