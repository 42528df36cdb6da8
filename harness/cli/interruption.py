"""Ctrl-C, and being told to end, while scenarios run.

A run is left between two scenarios, where nothing is half done. One that does not get there by itself, since a
real tool in it waits, is left after a moment, or when it is asked a second time.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

PATIENCE_S: Final = 3.0
"""Real seconds a scenario has to end by itself."""

_ASKING: Final = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Whether the run has been asked to end."""

    def __init__(self) -> None:
        self._asked = False

    def heed(self) -> None:
        """Call where the run may be left.

        Raises:
            KeyboardInterrupt: it has been asked to end.
        """
        if self._asked:
            raise KeyboardInterrupt

    def ask(self, _signal: int, _frame: FrameType | None) -> None:
        """Handle a signal: note it once, then insist."""
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)


@contextmanager
def between_scenarios() -> Iterator[Interruption]:
    """Have signals to end noted, and heeded where the run says so.

    In a thread that is not the main one, which gets no signals, nothing is changed.
    """
    interruption = Interruption()
    watched = [*_ASKING, *([signal.SIGALRM] if hasattr(signal, "setitimer") else [])]
    before: dict[signal.Signals, Any] = {}
    try:
        for one in watched:
            before[one] = signal.signal(one, interruption.ask)
    except ValueError:
        pass
    try:
        yield interruption
    finally:
        if hasattr(signal, "setitimer") and before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for one, handler in before.items():
            signal.signal(one, handler)
