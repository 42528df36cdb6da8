"""Concurrent awaitables: all results in order, or the first error with nothing left running."""

import asyncio
from typing import Any

import pytest

from harness.time.gather import gather
from tests.engine.graphs import simulate


def test_results_come_in_the_order_of_the_awaitables() -> None:
    async def main(simulation: Any) -> Any:
        found = await gather(asyncio.sleep(delay, delay) for delay in (3, 1, 2))
        return found, simulation.now

    assert simulate(main) == ([3, 1, 2], 3.0)


def test_if_one_fails_the_others_are_cancelled_and_awaited() -> None:
    stopped = []

    async def slow(name: Any) -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
            stopped.append(name)
            raise

    async def fails() -> None:
        await asyncio.sleep(2)
        raise LookupError("gone")

    async def main(simulation: Any) -> Any:
        with pytest.raises(LookupError, match="gone"):
            await gather([slow("a"), fails(), slow("b")])
        return stopped, simulation.now

    assert simulate(main) == (["a", "b"], 3.0)
