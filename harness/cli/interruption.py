"""Ctrl-C and SIGTERM while scenarios run.

A run stops between two scenarios, where nothing is half written. If a scenario does not end within a few seconds
(a real tool in it blocks), or on a second signal, the run stops inside it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

from harness.time.alarms import Alarm
from harness.time.real import real

PATIENCE_S: Final = 3.0
"""Real seconds a scenario gets to end by itself."""

_REQUESTS: Final = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """A flag that is set when the run has been asked to end."""

    def __init__(self) -> None:
        self._requested = False
        self._patience = Alarm(PATIENCE_S, lambda _frame: self.raise_if_requested())

    def raise_if_requested(self) -> None:
        """Stop the run here if it has been asked to end.

        Raises:
            KeyboardInterrupt: the run has been asked to end.
        """
        if self._requested:
            from harness.scenario.real_limit import progress

            progress.stopped = True
            raise KeyboardInterrupt

    def on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        """Handle a signal. The first sets the flag and starts the time-out; the second raises KeyboardInterrupt."""
        self.raise_if_requested()
        self._requested = True
        self._patience.start()

    def end(self) -> None:
        """Stop the time-out: there is nothing left to interrupt."""
        self._patience.stop()


@contextmanager
def between_scenarios() -> Iterator[Interruption]:
    """Set a flag on SIGINT and SIGTERM instead of raising KeyboardInterrupt at once.

    In threads other than the main one, which get no signals, this does nothing.
    """
    interruption = Interruption()
    with _handled(interruption.on_signal):
        try:
            yield interruption
        finally:
            interruption.end()


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before: dict[signal.Signals, Any] = {}
    with suppress(ValueError):
        for one in _REQUESTS:
            before[one] = signal.signal(one, handler)
    try:
        yield
    finally:
        for one, former in before.items():
            signal.signal(one, former)


_SAME_S: Final = 1.0
"""Real seconds in which requests to end count as one: `timeout` sends SIGTERM to a process, and to its group."""


@contextmanager
def raised_once() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGINT and SIGTERM, once for requests that follow each other at once.

    In threads other than the main one, which get no signals, this does nothing.
    """
    last = -_SAME_S

    def on_signal(_signal: int, _frame: FrameType | None) -> None:
        nonlocal last
        before, last = last, real.monotonic()
        if last - before >= _SAME_S:
            from harness.scenario.real_limit import progress

            progress.stopped = True
            progress.raise_if_stopped()

    with _handled(on_signal):
        yield
