"""Run awaitables concurrently, all or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, TypeVar

from harness.time.clock import idle

T = TypeVar("T")


async def gather(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Run them concurrently; the results are in their order.

    When one fails, the others are stopped and waited for, and its error is raised.
    """
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        await _stop(tasks)
        raise


async def staggered_gather(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Like `gather`, but each starts only when the one before has ended, or waits for the clock.

    So those that take no time run one after the other, and those that take time cost the longest of them.
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
