"""Alarms in real time: functions that are called in the main thread at a set time, interrupting its code.

A run in virtual time still takes real time, and code that takes too much of it (a tool that blocks, a regular
expression that never ends) does not check a clock; only a signal interrupts it. A process has one timer that sends
such a signal. All alarms share it, and so does code that had set it before (pytest-timeout).
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed has none
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, NoReturn

from harness.time.real import real

Handler = Any
get_handler: Final[Callable[[int], Handler]] = _signal.getsignal
set_handler: Final[Callable[[int, Handler], Handler]] = _signal.signal


Ring = Callable[[FrameType | None], None]

_AT_ONCE_S: Final = 1e-6
"""The shortest time for a timer: one that is set to zero never fires."""
_REPEAT_S: Final = 0.5
"""Real seconds after which the signal is repeated, as one that arrives just before a system call does not wake it."""


class Alarm:
    """Calls `ring` once, a number of real seconds after `start`, unless it is stopped before.

    `ring` receives the frame that is interrupted. An exception that it raises is raised in that code. In another
    thread, and on systems without such a timer, `start` does nothing.
    """

    def __init__(self, seconds: float, ring: Ring) -> None:
        self.ring = ring
        self.due = math.inf
        self._seconds = seconds

    def start(self) -> None:
        """Set the alarm."""
        if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
            self.due = real.monotonic() + self._seconds
            _timer.add(self)

    def postpone(self, seconds: float) -> None:
        """Set the alarm again, to ring after a number of real seconds. To be called by `ring`."""
        self.due = real.monotonic() + seconds
        _timer.set()

    def stop(self) -> None:
        """Cancel the alarm. It may be stopped twice, since it may ring while it is being stopped."""
        self.due = math.inf
        _timer.remove(self)


class _Timer:
    """The timer of the process. It is taken over while there are alarms, then given back."""

    def __init__(self) -> None:
        self._alarms: list[Alarm] = []
        self._handler_before: Any = None
        self._interval_before = 0.0
        self._alarm_before: Alarm | None = None

    def add(self, alarm: Alarm) -> None:
        if not self._alarms:
            self._take_over()
        self._alarms.append(alarm)
        self.set()

    def remove(self, alarm: Alarm) -> None:
        if alarm in self._alarms:
            self._alarms.remove(alarm)
            self.set()
            if not self._alarms:
                self._give_back()

    def _take_over(self) -> None:
        remaining, self._interval_before = signal.setitimer(signal.ITIMER_REAL, 0)
        handler = self._handler_before = set_handler(signal.SIGALRM, self._on_signal)
        self._alarm_before = None
        if remaining and callable(handler):
            self._alarm_before = Alarm(remaining, lambda frame: handler(signal.SIGALRM, frame))
            self._alarm_before.due = real.monotonic() + remaining

    def _give_back(self) -> None:
        set_handler(signal.SIGALRM, self._handler_before)
        before = self._alarm_before
        if before is not None and before.due < math.inf:
            left = max(before.due - real.monotonic(), _AT_ONCE_S)
            signal.setitimer(signal.ITIMER_REAL, left, self._interval_before)

    def _next(self) -> Alarm:
        alarms = [*self._alarms, *([self._alarm_before] if self._alarm_before else [])]
        return min(alarms, key=lambda alarm: alarm.due)

    def set(self) -> None:
        due = self._next().due if self._alarms else math.inf
        if due == math.inf:
            signal.setitimer(signal.ITIMER_REAL, 0)
        else:
            signal.setitimer(signal.ITIMER_REAL, max(due - real.monotonic(), _AT_ONCE_S), _REPEAT_S)

    def _on_signal(self, _signal: int, frame: FrameType | None) -> None:
        alarm = self._next() if self._alarms else None
        if alarm is None or alarm.due > real.monotonic():
            self.set()
            return
        alarm.due = math.inf
        self.set()
        alarm.ring(frame)


_timer: Final = _Timer()


@contextmanager
def marked_interrupts() -> Iterator[None]:
    """Make Ctrl-C raise its KeyboardInterrupt in this module, unless the program has a handler of its own.

    A KeyboardInterrupt that user code raises is a failure of that code (`harness.engine.callables`). The module of
    the innermost frame is the only difference between the two.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or get_handler(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    set_handler(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        set_handler(signal.SIGINT, signal.default_int_handler)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
