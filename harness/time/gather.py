"""Functions that run awaitables concurrently, and cancel all of them if one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from types import TracebackType
from typing import Any, TypeVar

from harness.time.clock import end_of_instant, idle

T = TypeVar("T")


async def gather(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Run awaitables concurrently and return their results, in the order of the awaitables.

    If one fails, cancel the others, wait for their end, and raise its error.
    """
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        await _stop(tasks)
        raise


async def staggered_gather(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Run awaitables as `gather` does, but start each only when the one before has ended or waits for the clock.

    Those that take no virtual time run one after the other; those that take time run concurrently.
    """
    tasks: list[asyncio.Future[T]] = []
    try:
        for awaitable in awaitables:
            tasks.append(asyncio.ensure_future(awaitable))
            others = asyncio.ensure_future(idle())
            either: list[asyncio.Future[Any]] = [tasks[-1], others]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            others.cancel()
            if any(task.done() and (task.cancelled() or task.exception()) for task in tasks):
                break
        return list(await asyncio.gather(*tasks))
    except BaseException:
        await _stop(tasks)
        raise


async def _stop(tasks: Sequence[asyncio.Future[T]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


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
