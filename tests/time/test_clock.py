"""Virtual time: sleeping takes no real time, and real work holds the clock."""

import asyncio
import gc
import socket
import threading
import weakref
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.time.clock import VirtualTimeLoop, give_turn, in_real_time, real_wait
from harness.time.selector import Deadlock
from harness.units import LONGEST_RUN_S


def run(main: Any) -> Any:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main())


def now() -> Any:
    return asyncio.get_running_loop().time()


def test_a_closed_loop_is_freed_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        loop = VirtualTimeLoop()
        loop.run_until_complete(asyncio.sleep(1))
        freed = weakref.ref(loop)
        loop.close()
        del loop
        assert freed() is None
    finally:
        gc.enable()


def test_a_day_of_sleep_passes_at_once() -> None:
    async def main() -> Any:
        await asyncio.sleep(86400 * 30)
        return now()

    assert run(main) == 86400 * 30


@pytest.mark.parametrize("seconds", [3e7, 123_456_789.123, LONGEST_RUN_S])
def test_years_of_sleep_pass_at_once_though_floats_are_coarser_than_a_nanosecond(seconds: float) -> None:
    async def main() -> Any:
        await asyncio.sleep(seconds)
        return now()

    assert run(main) == seconds


def test_parallel_sleeps_take_as_long_as_the_longest() -> None:
    async def main() -> Any:
        await asyncio.gather(*(asyncio.sleep(seconds) for seconds in (1, 5, 3)))
        return now()

    assert run(main) == 5


def test_a_timeout_fires_exactly_when_it_should() -> None:
    async def main() -> Any:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.5):
                await asyncio.sleep(100)
        return now()

    assert run(main) == 2.5


def test_tenths_of_seconds_add_up_without_rounding_errors() -> None:
    async def main() -> Any:
        for _ in range(10):
            await asyncio.sleep(0.1)
        return now()

    assert run(main) == 1.0


def test_a_turn_is_given_to_whatever_may_run_now() -> None:
    """It is `asyncio.sleep(0)` for all others: tasks, callbacks, and timers that are due."""

    async def main() -> list[str]:
        order: list[str] = []

        async def other() -> None:
            order.append("task")

        loop = asyncio.get_running_loop()
        loop.call_at(loop.time(), order.append, "timer")
        await give_turn()
        task = asyncio.ensure_future(other())
        await give_turn()
        assert task.done()
        return [*order, "main"]

    assert run(main) == ["timer", "task", "main"]


def test_a_turn_that_nobody_takes_is_no_turn_of_the_loop() -> None:
    async def main() -> Any:
        loop: Any = asyncio.get_running_loop()
        turns: list[str] = []

        def run_once() -> None:
            turns.append("turn")
            VirtualTimeLoop._run_once(loop)

        loop._run_once = run_once
        loop.call_later(1, lambda: None)
        for _ in range(3):
            await give_turn()
        return len(turns)

    assert run(main) == 0


@given(st.lists(st.floats(min_value=0, max_value=1e6), max_size=8))
def test_time_never_goes_back_and_ends_at_the_longest_sleep(delays: Any) -> None:
    seen = []

    async def sleeper(delay: Any) -> None:
        await asyncio.sleep(delay)
        seen.append(now())

    async def main() -> None:
        await asyncio.gather(*(sleeper(delay) for delay in delays))

    run(main)
    assert seen == sorted(seen)
    assert (seen or [0.0])[-1] == pytest.approx(max(delays, default=0.0), abs=1e-8)


def test_the_clock_stands_still_while_a_worker_thread_works() -> None:
    async def main() -> Any:
        release = threading.Event()
        ticker = asyncio.create_task(asyncio.sleep(1000))
        waiting = asyncio.get_running_loop().run_in_executor(None, release.wait)
        for _ in range(10):
            await asyncio.sleep(0)
        held = now()
        release.set()
        await waiting
        await ticker
        return held, now()

    assert run(main) == (0.0, 1000.0)


class LateResults(Executor):
    """An executor whose results arrive only when they are released, or after a tenth of a second."""

    def __init__(self) -> None:
        self.hurry = threading.Event()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        future: Future[Any] = Future()

        def work() -> None:
            value = fn(*args, **kwargs)
            self.hurry.wait(0.1)
            future.set_result(value)

        threading.Thread(target=work).start()
        return future


def test_the_clock_stands_still_until_the_result_of_a_thread_arrives() -> None:
    async def main() -> Any:
        threads = LateResults()
        ticker = asyncio.get_running_loop().call_later(1000, threads.hurry.set)
        value = await asyncio.get_running_loop().run_in_executor(threads, lambda: "done")
        ticker.cancel()
        return value, now()

    assert run(main) == ("done", 0.0)


def test_a_call_cancelled_before_its_thread_starts_does_not_hold_the_clock() -> None:
    async def main() -> Any:
        loop, release = asyncio.get_running_loop(), threading.Event()
        with ThreadPoolExecutor(max_workers=1) as threads:
            first = loop.run_in_executor(threads, release.wait)
            second = loop.run_in_executor(threads, release.wait)
            second.cancel()
            for _ in range(10):  # until the executor knows
                await asyncio.sleep(0)
            release.set()
            await first
        await asyncio.sleep(1000)
        return now()

    assert run(main) == 1000.0


def test_an_executor_that_refuses_a_call_does_not_hold_the_clock() -> None:
    async def main() -> Any:
        threads = ThreadPoolExecutor(1)
        threads.shutdown()
        with pytest.raises(RuntimeError, match="shutdown"):
            asyncio.get_running_loop().run_in_executor(threads, print)
        await asyncio.sleep(100)
        return now()

    assert run(main) == 100.0


def test_a_cancelled_call_holds_the_clock_until_its_thread_ends() -> None:
    async def main() -> Any:
        loop, begun, release = asyncio.get_running_loop(), threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            release.wait()

        call = loop.run_in_executor(None, work)
        ticker = asyncio.create_task(asyncio.sleep(1000))
        begun.wait()
        call.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        held = now()
        release.set()
        await ticker
        return held, now()

    assert run(main) == (0.0, 1000.0)


def test_a_subprocess_under_real_wait_takes_no_virtual_time() -> None:
    async def main() -> Any:
        with real_wait():
            process = await asyncio.create_subprocess_exec("true")
            await process.wait()
        return now()

    assert run(main) == 0.0


def test_in_real_time_the_clock_follows_the_real_one() -> None:
    async def main() -> Any:
        with in_real_time():
            await asyncio.sleep(0.01)
        return now()

    assert 0.01 <= run(main) < 60


def test_closing_the_executor_takes_no_virtual_time() -> None:
    """Since Python 3.12 a limit is given, which would pass at once."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        working = threading.Event()
        loop.run_in_executor(None, working.wait, 0.05)
        await asyncio.sleep(0)
        closing: Any = loop.shutdown_default_executor
        await closing(300)
        return float(now())

    assert run(main) == 0


def test_waiting_for_ever_is_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.time.selector.DEADLOCK_AFTER_S", 0.01)

    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock, match="never happen"):
        run(main)


def test_the_helpers_do_nothing_on_an_ordinary_loop() -> None:
    async def main() -> Any:
        with real_wait(), in_real_time():
            return "fine"

    assert asyncio.run(main()) == "fine"


def test_events_are_polled_while_callbacks_are_always_ready() -> None:
    async def main() -> int:
        here, there = socket.socketpair()
        with here, there:
            arrived = asyncio.Event()
            asyncio.get_running_loop().add_reader(here, arrived.set)
            there.send(b"x")
            turns = 0
            while not arrived.is_set() and turns < 100:
                await asyncio.sleep(0)
                turns += 1
            asyncio.get_running_loop().remove_reader(here)
            return turns

    assert run(main) < 100
