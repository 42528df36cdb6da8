"""Deadlines: work that ends at the instant of its deadline is in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harness.time.clock import VirtualTimeLoop
from harness.time.gather import Deadline
from harness.time.selector import nested_level


def run(work: Callable[[], Awaitable[Any]]) -> tuple[Any, float]:
    """Return the result or the error of the work, and its duration."""

    async def timed() -> tuple[Any, float]:
        try:
            result: Any = await work()
        except TimeoutError as error:
            result = type(error)
        return result, asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(timed())


async def within(seconds: float, *sleeps: float) -> str:
    async with Deadline(seconds):
        for each in sleeps:
            await asyncio.sleep(each)
    return "done"


@pytest.mark.parametrize("sleeps", [(3,), (1, 2), (3, 0, 0), (0.1, 0.2, 2.7)])
def test_work_may_take_exactly_as_long_as_its_limit(sleeps: tuple[float, ...]) -> None:
    assert run(lambda: within(3, *sleeps)) == ("done", 3)


def test_work_that_takes_longer_is_cut_at_its_deadline() -> None:
    assert run(lambda: within(3, 3, 0.001)) == (TimeoutError, 3)


def test_of_two_deadlines_at_one_instant_the_inner_one_fires() -> None:
    async def work() -> str:
        async with Deadline(5):
            await asyncio.sleep(2)
            with nested_level():
                try:
                    await within(3, 9)
                except TimeoutError:
                    return "inner"
        return "done"

    assert run(work) == ("inner", 5)


def test_a_deadline_can_be_stopped_and_restarted() -> None:
    async def work() -> str:
        async with Deadline(3) as deadline:
            deadline.stop()
            await asyncio.sleep(10)
            deadline.restart()
            await asyncio.sleep(9)
        return "done"

    assert run(work) == (TimeoutError, 13)


def test_a_deadline_that_is_over_does_nothing() -> None:
    async def work() -> str:
        deadline = Deadline(3)
        async with deadline:
            await asyncio.sleep(1)
        await asyncio.sleep(9)
        return "late" if deadline.expired() else "done"

    assert run(work) == ("done", 10)


def test_a_cancellation_from_outside_is_not_a_timeout() -> None:
    async def work() -> str:
        task = asyncio.ensure_future(within(9, 5))
        await asyncio.sleep(1)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "cancelled"
        return "done"

    assert run(work) == ("cancelled", 1)
