"""Tasks that wait for an idle loop, and the order in which they are woken."""

import asyncio
import threading
from typing import Any

import pytest

from harness.time.clock import VirtualTimeLoop, end_of_instant, idle
from harness.time.selector import nested_level


def run(main: Any) -> Any:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main())


def test_the_innermost_waiter_is_woken_first_even_repeatedly() -> None:
    async def main() -> list[str]:
        order: list[str] = []

        async def waits(name: str, times: int) -> None:
            for _ in range(times):
                await idle()
                order.append(name)

        outer = asyncio.ensure_future(waits("outer", 2))
        with nested_level():
            inner = asyncio.ensure_future(waits("inner", 3))
            with nested_level():
                innermost = asyncio.ensure_future(waits("innermost", 1))
        await asyncio.gather(outer, inner, innermost)
        return order

    assert run(main) == ["innermost", "inner", "inner", "inner", "outer", "outer"]


def test_waiters_of_one_level_are_woken_in_turn() -> None:
    async def main() -> list[str]:
        order: list[str] = []

        async def waits(name: str) -> None:
            for _ in range(2):
                await idle()
                order.append(name)

        await asyncio.gather(waits("a"), waits("b"))
        return order

    assert run(main) == ["a", "b", "a", "b"]


def test_a_cancelled_waiter_is_skipped() -> None:
    async def main() -> float:
        waiting = asyncio.ensure_future(idle())
        asyncio.get_running_loop().call_soon(waiting.cancel)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.sleep(5)
        return asyncio.get_running_loop().time()

    assert run(main) == 5.0


def test_idle_returns_while_the_clock_is_held() -> None:
    async def main() -> bool:
        released = threading.Event()
        held = asyncio.get_running_loop().run_in_executor(None, released.wait)
        await idle()
        still_held = not held.done()
        released.set()
        await held
        return still_held

    assert run(main) is True


def test_end_of_instant_waits_while_the_clock_is_held() -> None:
    async def main() -> bool:
        loop = asyncio.get_running_loop()
        released, looked = threading.Event(), threading.Event()
        held = loop.run_in_executor(None, released.wait)
        waiting = asyncio.ensure_future(end_of_instant())
        await loop.run_in_executor(None, looked.wait, 0.05)  # time for the loop to find nothing ready
        ended = waiting.done()
        released.set()
        await held
        await waiting
        return ended

    assert run(main) is False
