"""Virtual time: an asyncio loop whose clock jumps when nothing is ready to run.

A sleep of 100,000 virtual seconds takes microseconds, time-outs fire exactly, and concurrent waits take as long
as the longest of them. Work that really waits (a subprocess, a live provider, a worker thread) must hold the
clock: enter `VirtualTimeLoop.hold()` around it. This is trio's `MockClock` with an autojump threshold of zero.

The loop holds its clock itself for the threads and subprocesses that are started through it, and
`harness.time.readings` for those of other libraries, and lets all code of a run read this clock.

`harness.time.paced` has the loop for runs that are live or being recorded.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any

from harness.ctrl_c import is_from_signal
from harness.time.one_process import end_if_forked_since, forks, in_one_process
from harness.time.pools import is_finished
from harness.time.real import real
from harness.time.rebinding import USER, current_visit, origin
from harness.time.selector import JumpingSelector
from harness.time.turns import Turns, taking_turns
from harness.units import PRECISION

_waits_itself: ContextVar[bool] = ContextVar("_waits_itself", default=False)
"""True in code of the harness that holds the clock itself, or lets it run."""

_RESOLUTION = 10.0**-PRECISION
"""The resolution of virtual time in seconds (a nanosecond)."""

_FINE_UNTIL = 2.0**23
"""The virtual time in seconds (three months) until which floats are more precise than that."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time. `time()` starts at 0.0 and is in virtual seconds.

    Use it with `asyncio.Runner(loop_factory=VirtualTimeLoop)`. The run raises `Deadlock` if nothing can ever happen
    again. Worker threads started through `run_in_executor` hold the clock.
    """

    _make_selector: Callable[[], JumpingSelector] = JumpingSelector
    jumps = True
    """True if the clock may run ahead of the real one."""

    def __init__(self) -> None:
        self._jumping = self._make_selector()
        super().__init__(self._jumping)
        self.sleepers = self._jumping.sleepers
        self.sleepers.wake_loop = self._wake
        self._holds_futures = True
        self._outermost: asyncio.Future[Any] | None = None

    def time(self) -> float:
        """Return the virtual time, in seconds since the loop was made."""
        return self._jumping.now

    @property
    def now(self) -> float:
        """The virtual time, also where `time` has the real one."""
        return self._jumping.now

    def _wake(self) -> None:
        if not self.is_closed():
            self.call_soon_threadsafe(lambda: None)

    def _write_to_self(self) -> None:
        """Wake the loop, unless it waits for the current thread: then it looks for work after that, anyway."""
        turns = self._jumping.turns
        if turns is None or not turns.loop_waits_for_current:
            super()._write_to_self()  # type: ignore[misc]

    def sleep(self, seconds: float, woken: threading.Event | None = None) -> None:
        """Sleep as `time.sleep` does: in the thread of the loop, which it blocks, or in another one.

        In another one, `woken` ends it early.
        """
        if threading.get_ident() != self.sleepers.loop:
            turns, woken = self._jumping.turns, woken or threading.Event()
            with turns.outside(woken.is_set) if turns is not None else nullcontext():
                self.sleepers.sleep(
                    seconds, woken, lambda: self.now, self._move, self._may_move, in_turn=turns is not None
                )
            self.sleepers.gone_on()
            return
        if not self.jumps:
            real.sleep(seconds)
        self._move(round(self.now + seconds, PRECISION))
        self.sleepers.wake(self.now)

    @contextmanager
    def threads_in_turn(self) -> Iterator[None]:
        """Let the threads that are started inside run one at a time (`harness.time.turns`)."""
        if not self.jumps or self._jumping.turns is not None:
            yield
            return
        turns = self._jumping.turns = Turns(self.sleepers, self._wake)
        try:
            with taking_turns(turns):
                yield
        finally:
            self._jumping.turns = None

    def _may_move(self) -> bool:
        """True if a sleeping thread may move the clock, since nobody else does."""
        return self.jumps and not (self._jumping.turns is not None and self._jumping.turns.loop_watches)

    def _move(self, target: float) -> None:
        self._jumping.now = max(self._jumping.now, target)

    @property
    def _clock_resolution(self) -> float:
        """The tolerance within which asyncio considers a timer due: not less than the precision of floats."""
        now = self._jumping.now
        return _RESOLUTION if now < _FINE_UNTIL else math.ulp(now)

    @_clock_resolution.setter
    def _clock_resolution(self, resolution: float) -> None:
        """Ignore the resolution of the real clock, which asyncio sets."""

    def has_others(self) -> bool:
        """True if another callback may run at this instant, so that a task that gives up its turn may lose it."""
        if self._ready or self._jumping.holders or self.sleepers.active:  # type: ignore[attr-defined]
            return True
        timers = self._scheduled  # type: ignore[attr-defined]
        return bool(timers) and timers[0]._when < self._jumping.now + self._clock_resolution

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
    def let_go(self) -> Iterator[None]:
        """Let the clock go on for work inside that a holder waits for."""
        self._jumping.holders -= 1
        try:
            yield
        finally:
            self._jumping.holders += 1

    def hold_until_done(self, future: asyncio.Future[Any]) -> None:
        """Stop the clock until a future of another thread is done."""
        if not self._holds_futures:
            return
        self._jumping.holders += 1
        future.add_done_callback(lambda _: self._release())

    def _release(self) -> None:
        self._jumping.holders -= 1

    @contextmanager
    def in_real_time(self) -> Iterator[None]:
        """Let the clock run in real time, for outside work that sets timers of its own."""
        self._jumping.real_time += 1
        try:
            yield
        finally:
            self._jumping.real_time -= 1

    def close(self) -> None:
        """Close the loop. Nothing refers back to it any more, so that it is freed without the garbage collector."""
        super().close()
        self.sleepers.wake_loop = lambda: None

    def shutdown_asyncgens(self) -> Any:
        """Return the work of closing generators that were left open; None if there are none."""
        return super().shutdown_asyncgens() if self._asyncgens else None  # type: ignore[attr-defined]

    def shutdown_default_executor(self, timeout: float | None = None) -> Any:
        """Return the work of waiting for worker threads; None if there are none. They take no virtual time."""
        executor = self._default_executor  # type: ignore[attr-defined]
        if executor is None:
            return None
        if is_finished(executor):  # asyncio starts a thread that waits, and each takes as long as a node
            executor.shutdown()
            self._executor_shutdown_called = True
            return None
        return super().shutdown_default_executor()

    def run_until_complete(self, future: Any) -> Any:
        """Run as asyncio does; after a KeyboardInterrupt, closing the loop does not wait for worker threads.

        At the end of a run, None is nothing to do, which is the rule: running it takes as long as making the loop.
        """
        if future is None:
            return None
        self._outermost = future = asyncio.ensure_future(future, loop=self)
        try:
            return super().run_until_complete(future)
        except KeyboardInterrupt:
            # Closing the loop waits for the threads of its default executor; a new one has none.
            self.set_default_executor(ThreadPoolExecutor())
            raise
        finally:
            self._outermost = None  # it refers back to the loop

    def _run_once(self) -> None:
        """Do one iteration. `sys.exit()` in a task of user code fails that task, as any other exception does.

        asyncio also raises it here, which would leave the loop before the code that awaits the task has it.
        """
        before = forks()
        try:
            super()._run_once()  # type: ignore[misc]
        except (SystemExit, KeyboardInterrupt) as error:
            from_signal = isinstance(error, KeyboardInterrupt) and is_from_signal(error)
            if from_signal or self._outermost is None or self._outermost.done():
                raise
        finally:
            end_if_forked_since(before)

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run a function in a thread. The clock stands still until the thread has ended and its result is set."""
        work = _Work(self, func)
        self._holds_futures = False  # this one is held until its thread has ended, too
        try:
            future = super().run_in_executor(executor, work, *args)
        finally:
            self._holds_futures = True
        self._jumping.holders += 1  # not before, as the executor may raise
        future.add_done_callback(work.done)
        return future

    async def subprocess_exec(self, protocol_factory: Callable[[], Any], *args: Any, **options: Any) -> Any:
        """Start a process. The clock stands still until it has ended."""
        with self._held_by_process(protocol_factory) as factory:
            return await super().subprocess_exec(factory, *args, **options)

    async def subprocess_shell(self, protocol_factory: Callable[[], Any], *args: Any, **options: Any) -> Any:
        """Start a shell. The clock stands still until it has ended."""
        with self._held_by_process(protocol_factory) as factory:
            return await super().subprocess_shell(factory, *args, **options)

    def _holds_processes(self) -> bool:
        """False for a process that the harness starts, such as an MCP server, and waits for itself."""
        return not _waits_itself.get()

    @contextmanager
    def _held_by_process(self, protocol_factory: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
        """Hold the clock until the process has ended or could not be started."""
        if not self._holds_processes():
            yield protocol_factory
            return
        ended = self.create_future()

        def end(*_: Any) -> None:
            if not ended.done():
                ended.set_result(None)

        def factory() -> Any:
            protocol = protocol_factory()
            process_exited = protocol.process_exited

            def exited() -> None:
                end()
                process_exited()

            protocol.process_exited = exited
            return protocol

        self.hold_until_done(ended)
        try:
            yield factory
        except BaseException:
            end()
            raise


class _Work:
    """A function that an executor calls for a loop. The clock stands still until it has ended and its result is set.

    An executor of processes pickles it, and gets the function alone.
    """

    def __init__(self, loop: VirtualTimeLoop, func: Callable[..., Any]) -> None:
        self._loop, self._func = loop, func
        self._visit = current_visit.get()
        self._begun = False
        self._awaited = {"thread", "result"}

    def __call__(self, *args: Any) -> Any:
        self._begun = True
        current_visit.set(self._visit)
        try:
            with self._loop.sleepers.holding():
                return in_one_process(self._func, *args)
        finally:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._arrived, "thread")

    def __reduce__(self) -> tuple[Any, ...]:
        return partial, (self._func,)

    def done(self, _: object) -> None:
        """Take note that the result is set.

        It may be set before the thread ends. A call that is cancelled before it begins, or that runs in another
        process, has no thread.
        """
        self._arrived("result", *([] if self._begun else ["thread"]))

    def _arrived(self, *parts: str) -> None:
        self._awaited.difference_update(parts)
        if not self._awaited:
            self._loop._release()


def unheld_work() -> str | None:
    """Return a sentence about a thread of the user's code that is at work although the clock moves, or None."""
    loop = asyncio.get_running_loop()
    frame = loop.sleepers.at_work() if isinstance(loop, VirtualTimeLoop) and loop.jumps else None
    while frame is not None and origin(frame.f_code.co_filename) is not USER:
        frame = frame.f_back
    if frame is None:
        return None
    place = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
    return f"a thread was at work at {place}: virtual time only waits for what is awaited (asyncio.to_thread)"


async def give_turn() -> None:
    """Let other tasks run once, if there are any: `asyncio.sleep(0)` without a turn of the loop for nothing."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualTimeLoop) or loop.has_others():
        await asyncio.sleep(0)


async def idle() -> None:
    """Wait until nothing else is ready to run. On a loop without a virtual clock, let other tasks run once."""
    loop = asyncio.get_running_loop()
    await (loop.idle() if isinstance(loop, VirtualTimeLoop) else asyncio.sleep(0))


async def end_of_instant() -> None:
    """Wait until nothing else can happen at this virtual time: until the loop is idle and nobody holds the clock."""
    loop = asyncio.get_running_loop()
    await (loop.idle(even_if_held=False) if isinstance(loop, VirtualTimeLoop) else asyncio.sleep(0))


@contextmanager
def _waiting_itself() -> Iterator[None]:
    token = _waits_itself.set(True)
    try:
        yield
    finally:
        _waits_itself.reset(token)


@contextmanager
def let_go() -> Iterator[None]:
    """Let the running loop's clock go on, which a `real_wait` holds for what is done inside."""
    loop = asyncio.get_running_loop()
    with loop.let_go() if isinstance(loop, VirtualTimeLoop) else nullcontext():
        yield


@contextmanager
def in_real_time() -> Iterator[None]:
    """Let the running loop's clock run in real time, if it is virtual."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualTimeLoop):
        with loop.in_real_time(), _waiting_itself():
            yield
    else:
        yield


@contextmanager
def real_wait(*, no_timeout: bool = False) -> Iterator[None]:
    """Hold the running loop's clock, if it is virtual; see `VirtualTimeLoop.hold`."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualTimeLoop):
        with loop.hold(no_timeout=no_timeout), _waiting_itself():
            yield
    else:
        yield
