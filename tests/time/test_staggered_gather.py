"""Staggered gather: awaitables that start one after the other, and overlap if they take time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harness.time.clock import VirtualTimeLoop, idle
from harness.time.gather import staggered_gather


def _run(main: Callable[[], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        return await main()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(run())


def test_awaitables_that_take_no_time_run_one_after_the_other() -> None:
    told: list[str] = []

    async def work(name: str) -> str:
        for step in range(3):
            told.append(f"{name}{step}")
            await asyncio.sleep(0)
        return name

    assert _run(lambda: staggered_gather(work(name) for name in "ab")) == ["a", "b"]
    assert told == ["a0", "a1", "a2", "b0", "b1", "b2"]


def test_awaitables_that_take_time_run_concurrently() -> None:
    async def work(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    async def main() -> tuple[list[float], float]:
        return await staggered_gather(map(work, (2.0, 5.0, 3.0))), asyncio.get_running_loop().time()

    assert _run(main) == ([2.0, 5.0, 3.0], 5.0)


def test_after_a_failure_nothing_more_starts_and_running_ones_are_cancelled() -> None:
    told: list[str] = []

    async def work(name: str) -> None:
        told.append(name)
        if name == "bad":
            raise ValueError(name)
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            told.append(f"{name} stopped")
            raise

    with pytest.raises(ValueError, match="bad"):
        _run(lambda: staggered_gather(work(name) for name in ("first", "bad", "last")))
    assert told == ["first", "bad", "first stopped"]


def test_staggered_gathers_nest() -> None:
    told: list[str] = []

    async def work(name: str) -> None:
        await asyncio.sleep(0)
        told.append(name)

    async def row(names: str) -> None:
        await staggered_gather(work(name) for name in names)

    _run(lambda: staggered_gather(row(names) for names in ("abc", "de")))
    assert told == list("abcde")


def test_the_next_starts_when_only_the_clock_could_continue() -> None:
    async def main() -> tuple[bool, float]:
        sleeping = asyncio.ensure_future(asyncio.sleep(4))
        await idle()
        seen = sleeping.done(), asyncio.get_running_loop().time()
        await sleeping
        return seen

    assert _run(main) == (False, 0.0)
