"""The paced clock: virtual time that never runs ahead of real time, and moves by measured durations."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harness.time.clock import VirtualTimeLoop, in_real_time
from harness.time.paced import PacedTimeLoop, RealWork, real_timers
from harness.time.real import real as real_time
from harness.time.selector import Deadlock

SOON = 60.0
"""Real seconds within which anything immediate ends, even on a busy machine."""


def run(main: Callable[[], Awaitable[Any]], loop: Callable[[], Any] = PacedTimeLoop) -> Any:
    async def awaited() -> Any:
        return await main()

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(awaited())


def now() -> float:
    return asyncio.get_running_loop().time()


@contextmanager
def taking(least: float) -> Iterator[None]:
    """Check that the block takes this number of real seconds."""
    began = real_time.monotonic()
    yield
    assert least <= real_time.monotonic() - began < SOON


def compute(seconds: float) -> None:
    """Keep the processor busy for a number of real seconds."""
    end = real_time.monotonic() + seconds
    while real_time.monotonic() < end:
        pass


async def real(seconds: float) -> float:
    """Do real work of this duration, and return the measured one."""
    work = RealWork()
    with real_timers():
        await asyncio.sleep(seconds)
    return await work.end()


# ------------------------------------------------------------ sleeping and computing


def test_a_sleep_takes_its_time_and_ends_exactly() -> None:
    async def main() -> float:
        await asyncio.sleep(0.05)
        await asyncio.sleep(0.03)
        return now()

    with taking(0.08):
        assert run(main) == 0.08


def test_concurrent_sleeps_take_as_long_as_the_longest() -> None:
    async def main() -> float:
        await asyncio.gather(*(asyncio.sleep(0.2) for _ in range(20)))
        return now()

    with taking(0.2):
        assert run(main) == 0.2


def test_computing_takes_no_virtual_time() -> None:
    async def main() -> list[float]:
        compute(0.05)
        times = [now()]
        await asyncio.sleep(0.05)
        compute(0.05)
        return [*times, now()]

    with taking(0.15):
        assert run(main) == [0.0, 0.05]


def test_computing_does_not_shorten_the_sleep_after_it() -> None:
    async def main() -> None:
        compute(0.1)
        with taking(0.05):
            await asyncio.sleep(0.05)

    run(main)


def test_in_real_time_changes_nothing() -> None:
    async def main() -> float:
        with in_real_time():
            await asyncio.sleep(0.02)
        return now()

    assert run(main) == 0.02


def test_waiting_for_ever_is_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.time.selector.DEADLOCK_AFTER_S", 0.01)

    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock, match="never happen"):
        run(main)


# ------------------------------------------------------------ real work


def test_real_work_takes_as_long_as_was_measured() -> None:
    async def main() -> tuple[float, float]:
        return await real(0.05), now()

    seconds, at = run(main)
    assert 0.05 <= seconds < SOON
    assert at == seconds == round(seconds, 6)


def test_real_work_overlaps() -> None:
    async def main() -> tuple[float, float]:
        return sum(await asyncio.gather(*(real(0.1) for _ in range(5)))), now()

    one_by_one, together = run(main)
    assert 0.1 <= together <= one_by_one - 0.4


def test_virtual_time_is_never_ahead_of_the_real_one() -> None:
    async def main() -> None:
        began = real_time.monotonic()
        for _ in range(3):
            await asyncio.gather(real(0.02), asyncio.sleep(0.03), real(0.01))
            compute(0.01)
            assert now() <= real_time.monotonic() - began

    run(main)


def test_a_time_out_ends_work_that_takes_too_long() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await real(600)
        return now()

    with taking(0.1):
        assert run(main) == 0.1


def test_a_time_out_does_not_end_work_that_is_in_time() -> None:
    async def main() -> float:
        async with asyncio.timeout(30):
            return await real(0.02)

    assert run(main) >= 0.02


def test_abandoned_work_adds_no_time() -> None:
    async def main() -> float:
        work = RealWork()
        work.abandon()
        work.abandon()
        compute(0.1)
        with taking(0.05):
            await asyncio.sleep(0.05)
        return now()

    assert run(main) == 0.05


def test_work_ends_in_the_order_of_virtual_time_and_never_at_the_same_time() -> None:
    ended: list[tuple[int, float]] = []

    async def answer(number: int, seconds: float) -> None:
        await real(seconds)
        ended.append((number, now()))

    async def main() -> None:
        await asyncio.gather(*(answer(number, seconds) for number, seconds in enumerate([0.15, 0.05, 0.1])))
        await asyncio.gather(*(answer(number, 0.0) for number in range(3, 30)))

    run(main)
    assert [number for number, _ in ended[:3]] == [1, 2, 0]
    times = [at for _, at in ended]
    assert times == sorted(set(times))


@pytest.mark.parametrize("wait", [0.0, 0.01, 0.012345678])
def test_a_replay_that_sleeps_the_measured_times_has_the_same_times(wait: float) -> None:
    """A run that waits, works, and works concurrently: as recorded, and as replayed."""
    measured: dict[str, float] = {}

    async def told(work: Callable[[str, float], Awaitable[None]]) -> list[tuple[str, float]]:
        seen: list[tuple[str, float]] = []

        async def step(name: str, seconds: float) -> None:
            await work(name, seconds)
            seen.append((name, now()))

        async def branch(name: str, seconds: float) -> None:
            await asyncio.sleep(wait)
            await step(f"{name} first", seconds)
            await asyncio.sleep(wait)
            await step(f"{name} then", seconds)

        await asyncio.gather(branch("a", 0.01), branch("b", 0.01), branch("c", 0.03))
        return seen

    async def really(name: str, seconds: float) -> None:
        measured[name] = await real(seconds)

    async def again(name: str, seconds: float) -> None:
        await asyncio.sleep(measured[name])

    recorded = run(lambda: told(really))
    assert run(lambda: told(again), VirtualTimeLoop) == recorded


@pytest.mark.parametrize("loop", [VirtualTimeLoop, asyncio.SelectorEventLoop])
def test_on_another_loop_work_is_only_measured(loop: Callable[[], Any]) -> None:
    async def main() -> float:
        work = RealWork()
        compute(0.02)
        return await work.end()

    assert 0.02 <= run(main, loop) < SOON


# ------------------------------------------------------------ timers by the real clock


def test_real_timers_count_from_now_and_not_from_the_last_event() -> None:
    async def main() -> None:
        work = RealWork()
        compute(0.3)
        assert now() == 0.0
        with real_timers():
            assert now() >= 0.3
            # Counted from the last event, it would be over at once.
            with taking(0.1):
                await asyncio.sleep(0.1)
        await work.end()

    run(main)


def test_real_timers_apply_to_tasks_started_inside() -> None:
    async def inside() -> float:
        return now()

    async def main() -> tuple[float, float]:
        work = RealWork()
        compute(0.05)
        with real_timers():
            task = asyncio.create_task(inside())
        at = await task
        outside = now()
        await work.end()
        return at, outside

    at, outside = run(main)
    assert at >= 0.05
    assert outside == 0.0


def test_real_timers_have_no_effect_on_another_loop() -> None:
    async def main() -> float:
        with real_timers():
            await asyncio.sleep(1000)
        return now()

    with taking(0.0):
        assert run(main, VirtualTimeLoop) == 1000.0
