"""Functions that run awaitables concurrently, and cancel all of them if one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, TypeVar

from harness.time.clock import idle

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
