"""Event loops that the code of a run makes beside the run's own, such as those of `asyncio.run` in a thread.

Such a loop shows the run's clock. While it has nothing to do, it sleeps in virtual time until its next timer, or
waits for another thread, as `time.sleep` and `Event.wait` do there; `call_soon_threadsafe` ends both.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Callable
from typing import Final, Protocol

from harness.time.selector import RealSockets

_POLL_S: Final = 0.02
"""Real seconds between two looks at the sockets of a loop that has any."""


class Clock(Protocol):
    """A clock that a thread can sleep by."""

    def elapsed(self) -> float:
        """Return the virtual seconds since the start."""
        ...

    def sleep(self, seconds: float, woken: threading.Event) -> None:
        """Let the current thread sleep for virtual seconds, or until it is woken."""
        ...


class _FollowingSelector(RealSockets):
    """A selector that waits in virtual time, until it is woken."""

    def __init__(self, clock: Callable[[], Clock | None]) -> None:
        super().__init__()
        self._clock = clock
        self.woken = threading.Event()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = self._real.select(0)
        if events or (timeout is not None and timeout <= 0):
            self.woken.clear()
            return events
        clock = self._clock()
        if clock is None:  # the run has ended
            return self._real.select(timeout)
        if timeout is not None:
            clock.sleep(timeout, self.woken)
        else:
            has_sockets = len(self._real.get_map()) > 1  # beside the one that wakes it
            while not self.woken.wait(_POLL_S if has_sockets else None):
                if self._real.select(0):
                    break
        self.woken.clear()
        return self._real.select(0)


class FollowingLoop(asyncio.SelectorEventLoop):
    """An event loop that follows the clock of a run. `clock` returns None when no run is in progress."""

    def __init__(self, clock: Callable[[], Clock | None]) -> None:
        self._clock = clock
        self._last = 0.0
        self._following = _FollowingSelector(clock)
        super().__init__(self._following)

    def time(self) -> float:
        """Return the virtual seconds since the start of the run."""
        clock = self._clock()
        if clock is not None:
            self._last = clock.elapsed()
        return self._last

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for worker threads, which takes no virtual time."""
        await super().shutdown_default_executor()

    def _write_to_self(self) -> None:
        super()._write_to_self()  # type: ignore[misc]
        self._following.woken.set()
