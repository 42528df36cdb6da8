"""The clocks of Python, as the code of a run reads them: they show virtual time, from a given instant on.

    with clock_readings(start) as readings:     datetime.now() is the start, and local time is UTC
        readings.follow(loop)                   from here on, the time of the loop is added

time-machine moves `datetime`, `time.time` and its relatives in C. The clocks of `time` without a calendar and
`time.sleep` are replaced here. Python's own modules and the harness keep the real ones: a lock or a queue with a
time-out waits in real time. So do threads that were there before the run.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from types import FrameType, ModuleType
from typing import Any, Final

from harness.time.anyio_workers import wrap_anyio
from harness.time.clock import VirtualTimeLoop
from harness.time.following import FollowingLoop
from harness.time.rebinding import HARNESS, PYTHON, origin, rebind, when_imported
from harness.time.turns import replace_queues

_NANO: Final = 10**9
_BASE_S: Final = 1000.0
"""The reading at the start of clocks whose zero has no meaning."""
_CALLING: Final = (
    str(threading.__file__),
    *(os.path.dirname(str(package.__file__)) for package in (asyncio, concurrent.futures)),
)
"""Modules that call the functions they are given, and never sleep for themselves."""
_UTC: Final = ("UTC", "UTC")
_CLOCKS: Final = ("monotonic", "perf_counter", "process_time", "thread_time")


class Readings:
    """The clocks of one run.

    Args:
        start: the instant at which virtual time begins, with a time zone.
    """

    def __init__(self, start: datetime) -> None:
        self.start = start
        seconds = int(start.replace(microsecond=0).timestamp())
        self._start_ns = seconds * _NANO + start.microsecond * 1000
        self._thread = threading.get_ident()
        self._loop: VirtualTimeLoop | None = None
        self._slept = 0.0  # before the loop
        self._read = 0.0, self._start_ns

    def follow(self, loop: asyncio.AbstractEventLoop) -> None:
        """Add the time of a loop in virtual time."""
        assert isinstance(loop, VirtualTimeLoop)
        self._loop = loop

    def elapsed(self) -> float:
        """Return the virtual seconds since the start."""
        return self._slept + (self._loop.now if self._loop is not None else 0.0)

    def time_ns(self) -> int:
        """Return the virtual nanoseconds since 1970."""
        elapsed = self.elapsed()
        if elapsed != self._read[0]:  # many readings share one time
            self._read = elapsed, self._start_ns + round(elapsed * _NANO)
        return self._read[1]

    def sleep(self, seconds: float, woken: threading.Event | None = None) -> None:
        """Let the current thread sleep in virtual time, or until it is woken."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.sleep(seconds, woken)
        else:
            self._slept += seconds

    @property
    def jumps(self) -> bool:
        """True if virtual time may run ahead of the real one."""
        return self._loop is None or self._loop.jumps

    def owns_thread(self) -> bool:
        """True if the current thread belongs to the run."""
        ident = threading.get_ident()
        return ident == self._thread or (self._loop is not None and self._loop.sleepers.concerns(ident))

    def concern(self, caller: FrameType, *, calls: bool = False) -> bool:
        """True if the code of a frame, in the current thread, reads virtual time.

        With `calls`, also if it only calls what it was given, such as `Thread(target=time.sleep)`.
        """
        while (
            caller.f_back is not None and caller.f_code.co_filename == "<string>"
        ):  # `exec` in the user's code
            caller = caller.f_back
        filename, own = caller.f_code.co_filename, self.owns_thread()
        where = origin(filename)
        if calls and (where is HARNESS or filename.startswith(_CALLING)):
            return own
        return own and where not in (PYTHON, HARNESS)


_current: Readings | None = None


def _sleep(original: Callable[[float], None]) -> Callable[[float], None]:
    def sleep(seconds: float, /) -> None:
        readings = _current
        if readings is None or not readings.concern(sys._getframe(1), calls=True) or not seconds > 0:
            original(seconds)
        else:
            readings.sleep(float(seconds))

    return sleep


def _clock(original: Callable[[], Any]) -> Callable[[], Any]:
    in_nanoseconds = original.__name__.endswith("_ns")

    def read() -> Any:
        readings = _current
        if readings is None or not readings.concern(sys._getframe(1)):
            return original()
        seconds = _BASE_S + readings.elapsed()
        return round(seconds * _NANO) if in_nanoseconds else seconds

    return read


@cache
def replace_clocks() -> None:
    """Replace the clocks of `time`, once in a process, before its state is saved for the first time."""
    names = [f"{name}{unit}" for name in _CLOCKS for unit in ("", "_ns")]
    rebind(time, [("sleep", _sleep), *((name, _clock) for name in names)])


@cache
def _time_machine() -> ModuleType:
    """Import time-machine. It imports pytest for a fixture, which takes five times as long as the rest."""
    without_pytest = "pytest" not in sys.modules
    if without_pytest:
        sys.modules["pytest"] = None  # type: ignore[assignment]
    try:
        import time_machine
    finally:
        if without_pytest:
            del sys.modules["pytest"]
    return time_machine


@contextmanager
def clock_readings(start: datetime) -> Iterator[Readings]:
    """Let the code of a run read virtual time."""
    global _current
    replace_clocks()
    before, _current = _current, Readings(start)
    machine = _time_machine()
    # With a destination that has a time zone, time-machine makes the process read its zone again, which is slow.
    is_utc = time.tzname == _UTC
    travel = machine.travel(start.timestamp() if is_utc else start, tick=False)
    zone = os.environ.get("TZ")
    traveller = travel.start()
    traveller.time_ns = _current.time_ns
    os.environ["TZ"] = "UTC"
    try:
        yield _current
    finally:
        _current = before
        while traveller in machine.traveller_stack:  # above it are those that a tool did not stop
            os.environ["TZ"] = "UTC"  # a tool may have removed it, and time-machine fails then
            travel.stop()
        os.environ.pop("TZ", None)
        if zone is not None:
            os.environ["TZ"] = zone
        if is_utc and time.tzname != _UTC:  # a tool set another one
            time.tzset()


@cache
def hold_for_libraries() -> None:
    """Replace the functions through which libraries start real work, once in a process."""
    for module in (asyncio.futures, asyncio):
        rebind(module, [("wrap_future", _wrap_future)])
    for module in (asyncio.tasks, asyncio):
        rebind(module, [("run_coroutine_threadsafe", _run_coroutine_threadsafe)])
    for module in (asyncio.events, asyncio):
        rebind(module, [("new_event_loop", _new_event_loop)])
    replace_queues()
    when_imported("anyio._backends._asyncio", wrap_anyio)


def _new_event_loop(original: Callable[[], asyncio.AbstractEventLoop]) -> Callable[..., Any]:
    def new_event_loop() -> asyncio.AbstractEventLoop:
        readings = _current
        if readings is None or not readings.jumps or not readings.owns_thread():
            return original()
        return FollowingLoop(lambda: _current)

    return new_event_loop


def _wrap_future(original: Callable[..., asyncio.Future[Any]]) -> Callable[..., asyncio.Future[Any]]:
    def wrap_future(future: Any, *, loop: asyncio.AbstractEventLoop | None = None) -> asyncio.Future[Any]:
        wrapped = original(future, loop=loop)
        on = wrapped.get_loop()
        foreign = isinstance(future, concurrent.futures.Future) and not hasattr(future, "waits_for_loop")
        if foreign and isinstance(on, VirtualTimeLoop):
            on.hold_until_done(wrapped)
        return wrapped

    return wrap_future


def _run_coroutine_threadsafe(original: Callable[..., Any]) -> Callable[..., Any]:
    def run_coroutine_threadsafe(coroutine: Any, loop: asyncio.AbstractEventLoop) -> Any:
        future = original(coroutine, loop)
        let_loop_go_on(future, loop)
        return future

    return run_coroutine_threadsafe


def let_loop_go_on(future: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Let the clock of a loop go on while a thread waits for a future of `concurrent.futures` that the loop sets."""
    if isinstance(loop, VirtualTimeLoop):
        future.waits_for_loop = True
        for name in ("result", "exception"):
            setattr(future, name, _yielding(loop, future, getattr(future, name)))


def _yielding(loop: VirtualTimeLoop, future: Any, wait: Callable[..., Any]) -> Callable[..., Any]:
    def yielding(timeout: float | None = None) -> Any:
        if future.done():
            return wait(0)
        take_back = loop.sleepers.yield_until(future.add_done_callback)
        try:
            return wait(timeout)
        finally:
            take_back(future)

    return yielding
