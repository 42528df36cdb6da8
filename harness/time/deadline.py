"""Time limits for a piece of work, which may take exactly as long as the limit."""

from __future__ import annotations

import asyncio
from types import TracebackType

from harness.time.clock import end_of_instant


class Deadline:
    """A context manager that cancels the work inside it after a number of seconds, and then raises TimeoutError.

    `asyncio.timeout` fires as soon as the clock reaches it. A `Deadline` first lets everything happen that can happen
    at that instant: work that ends then is in time, so the result does not depend on the order of two timers.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._timer: asyncio.TimerHandle | None = None
        self._last_call: asyncio.Task[None] | None = None
        self._expired = False

    def expired(self) -> bool:
        """True if the work was cancelled at the deadline."""
        return self._expired

    def stop(self) -> None:
        """Suspend the time limit until `restart`."""
        if self._timer is not None:
            self._timer.cancel()
        if self._last_call is not None:
            self._last_call.cancel()

    def restart(self) -> None:
        """Start the time limit again from now."""
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._reach)

    async def __aenter__(self) -> Deadline:
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task is not None else 0
        self.restart()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.stop()
        if not self._expired or self._task is None:
            return
        is_mine = self._task.uncancel() <= self._cancelling
        if is_mine and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise TimeoutError from error

    def _reach(self) -> None:
        self._last_call = asyncio.ensure_future(self._expire())

    async def _expire(self) -> None:
        await end_of_instant()
        self._expired = True
        if self._task is not None:
            self._task.cancel()
