"""Ctrl-C and SIGTERM while scenarios run.

A run is left between two scenarios, where nothing is half done. One that does not get there by itself, since a
real tool in it waits, is left after a moment, or when it is asked a second time.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from harness.time.alarms import Alarm

PATIENCE_S: Final = 3.0
"""Real seconds a scenario has to end by itself."""

_REQUESTS: Final = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """True if somebody has asked the run to end."""

    def __init__(self) -> None:
        self._requested = False
        self._patience = Alarm(PATIENCE_S, lambda _frame: self.raise_if_requested())

    def raise_if_requested(self) -> None:
        """Call this where the run can stop.

        Raises:
            KeyboardInterrupt: the run is asked to end.
        """
        if self._requested:
            raise KeyboardInterrupt

    def on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        """Handle a signal: note the first, and raise KeyboardInterrupt after a moment; raise it at the second."""
        if self._requested:
            raise KeyboardInterrupt
        self._requested = True
        self._patience.start()

    def end(self) -> None:
        """There is nothing left to interrupt."""
        self._patience.stop()


@contextmanager
def between_scenarios() -> Iterator[Interruption]:
    """Notes signals to end instead of raising KeyboardInterrupt at once.

    A thread that is not the main one gets no signals: there it does nothing.
    """
    interruption = Interruption()
    before: dict[signal.Signals, Any] = {}
    try:
        for one in _REQUESTS:
            before[one] = signal.signal(one, interruption.on_signal)
    except ValueError:
        pass
    try:
        yield interruption
    finally:
        interruption.end()
        for one, handler in before.items():
            signal.signal(one, handler)
