"""Virtual time: an asyncio loop whose clock jumps when nothing is ready to run.

A sleep of 100,000 virtual seconds costs microseconds, timeouts fire exactly, and parallel waits cost the
longest of them. Work that really waits (a subprocess, a live provider, a worker thread) holds the clock
still: enter `VirtualTimeLoop.hold()` around it. The idea is trio's `MockClock` with an autojump of zero.

Only code that asks the loop for the time sees virtual time; `time.monotonic()` stays real.

Where the world is real, or is being recorded, the loop is a `PacedTimeLoop`: its clock is virtual too, and moves
only by timers and by what real work was measured to take, but never runs ahead of the real one. So a run has the same
times when it is recorded and when it is replayed.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from harness.errors import RunError
from harness.units import PRECISION

# With no timer, no ready callback and nobody holding the clock, only a foreign thread could wake the loop.
# This many real seconds of silence are taken for a deadlock.
DEADLOCK_AFTER_S = 5.0

# Real seconds of silence allowed to what really takes its time (a subprocess, a thread, a live server).
OUTSIDE_LIMIT_S = 60.0

# While somebody may take as long as they like, the loop looks up now and then: Ctrl-C that another thread received
# would not wake it.
LOOK_UP_EVERY_S = 0.2

# Durations of real work are measured to the microsecond.
MEASURED = 6


class Deadlock(RunError):
    """Every task waits and no timer is set: nothing can ever happen again."""

    code = "deadlock"


class _JumpingSelector(selectors.BaseSelector):
    """A selector that, instead of waiting for its timeout, moves the clock by it."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now = 0.0
        self.holders = 0
        self.no_timeout = 0  # of the holders, those that may take as long as they like
        self.real_time = 0
        self.waiting_for_idle: deque[asyncio.Future[None]] = deque()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout != 0 and self.waiting_for_idle:
            return self._real.select(0) or self._tell_of_idle()
        if self.real_time:
            return self._select_in_real_time(timeout)
        if self.holders:
            # The clock stands still, so timers must not fire; callbacks that are ready (timeout 0) may.
            return self._select_outside(timeout)
        events = self._real.select(0)
        if events or timeout == 0:
            return events
        if timeout is None:
            events = self._real.select(DEADLOCK_AFTER_S)
            if not events:
                raise Deadlock("the run is stuck: every task waits for something that will never happen")
            return events
        self.now = round(self.now + timeout, PRECISION)
        return []

    def _tell_of_idle(self) -> list[tuple[selectors.SelectorKey, int]]:
        while self.waiting_for_idle:
            future = self.waiting_for_idle.popleft()
            if not future.done():
                future.set_result(None)
                break
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


class _PacedSelector(_JumpingSelector):
    """A selector that moves the clock by its timeout when so much real time has passed.

    `pending` is how much real work is under way. Only then does real time that has passed already count: it is
    spent later, as the duration of that work.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pending = 0
        self._origin = time.monotonic()

    def elapsed(self) -> float:
        """The real time on the scale of the virtual one. Virtual time never runs ahead of it."""
        return time.monotonic() - self._origin

    def catch_up(self, passed: float = 0.0) -> None:
        """Forget the real time that passed while nothing real was under way, but for the last `passed` seconds."""
        if not self.pending:
            self._origin = time.monotonic() - self.now - passed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0 or self.waiting_for_idle or self.holders or self.real_time:
            return super().select(timeout)
        self.catch_up()
        if timeout is None:
            return self._real.select(None) if self.pending else super().select(None)
        target = round(self.now + timeout, PRECISION)
        events = self._real.select(max(0.0, target - self.elapsed()))
        if not events and self.elapsed() >= target:
            self.now = target
        return events


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time; `time()` starts at 0.0 and is in virtual seconds.

    Use it with `asyncio.Runner(loop_factory=VirtualTimeLoop)`. Raises `Deadlock` out of the run when
    nothing can ever happen again. Worker threads started through `run_in_executor` hold the clock.
    """

    _make_selector: Callable[[], _JumpingSelector] = _JumpingSelector

    def __init__(self) -> None:
        self._jumping = self._make_selector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """The virtual time, in seconds since the loop was made."""
        return self._jumping.now

    async def idle(self) -> None:
        """Wait until nothing else is ready to run, so that the clock would move next."""
        future = self.create_future()
        self._jumping.waiting_for_idle.append(future)
        await future

    @contextmanager
    def hold(self, *, no_timeout: bool = False) -> Iterator[None]:
        """Keep the clock still while something outside the simulation really takes its time.

        Raises `Deadlock` out of the run when it is silent for too long, unless it is waited for with patience.
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

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run a function in a thread; the clock stands still until the thread is done and its result is here."""
        self._jumping.holders += 1
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
        # The thread tells that it is done before its result is on its way.
        future.add_done_callback(lambda _: arrived("result", *([] if begun else ["thread"])))
        return future


_by_the_real_clock: ContextVar[bool] = ContextVar("_by_the_real_clock", default=False)


class PacedTimeLoop(VirtualTimeLoop):
    """A loop in virtual time that never runs ahead of the real one: a sleep of 30 virtual seconds takes 30 real ones.

    Real time passes for the work that is told with `RealWork`, and for sleeps; what computing takes does not count.
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
        """Real work begins, or goes on that began `passed` real seconds ago; gives the virtual time."""
        self._jumping.catch_up(passed)
        self._jumping.pending += 1
        return self._jumping.now

    def end(self) -> None:
        """Real work has ended, or was given up."""
        self._jumping.pending -= 1

    def end_of_work(self, began: float, seconds: float) -> tuple[float, float]:
        """When work is over in virtual time, and after how many seconds.

        It is over after all that has happened, and at the same time as nothing else: else two answers could come in
        another order when they are replayed.
        """
        seconds = round(max(seconds, self._jumping.now - began), MEASURED)
        end = round(began + seconds, PRECISION)
        while end <= self._jumping.now or end in self._ends:
            seconds = round(seconds + 10**-MEASURED, MEASURED)
            end = round(began + seconds, PRECISION)
        self._ends.add(end)
        return end, seconds


class RealWork:
    """Something real that is under way from here on, until `end` or `abandon`, whichever comes first.

    On a loop that is not paced nothing but the duration is taken. `passed` is for how many real seconds it was under
    way before the loop heard of it; timers that are set now need not wait for these again.
    """

    def __init__(self, passed: float = 0.0) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop if isinstance(loop, PacedTimeLoop) else None
        self._virtual = self._loop.begin(passed) if self._loop else 0.0
        self._began = time.monotonic() - passed
        self._under_way = True

    async def end(self) -> float:
        """Move virtual time on to when the work is over; gives how long it took, in seconds."""
        seconds = round(time.monotonic() - self._began, MEASURED)
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
        """The work came to nothing, or nobody waits for it any more."""
        if self._loop is not None and self._under_way:
            self._loop.end()
        self._under_way = False


@contextmanager
def real_timers() -> Iterator[None]:
    """Let timers that are set inside, and in tasks that are started inside, go by the real clock.

    For sockets and what is built on them, whose time-outs count from the last answer and not from the last virtual
    event.
    """
    token = _by_the_real_clock.set(True)
    try:
        yield
    finally:
        _by_the_real_clock.reset(token)


async def idle() -> None:
    """Wait until nothing else is ready to run; on a loop without a virtual clock, let the others run once."""
    loop = asyncio.get_running_loop()
    await (loop.idle() if isinstance(loop, VirtualTimeLoop) else asyncio.sleep(0))


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
    """Hold the running loop's clock, if it has a virtual one, `no_timeout` as long as it takes; else do nothing."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualTimeLoop):
        with loop.hold(no_timeout=no_timeout):
            yield
    else:
        yield
