"""Retries, the delays between attempts, and time limits, in virtual time."""

import asyncio
from typing import Any

import pytest

from harness.dialects.kit.attempts import backoff, with_retries, with_timeout
from harness.engine.context import NodeContext
from harness.errors import UnscriptedCall
from harness.graph.effects import ToolCall
from tests.dialects.kit.one_node import VisitResult, visit


class Flaky:
    """Work that fails so many times, then returns the number of attempts."""

    def __init__(self, failures: int) -> None:
        self.failures, self.tried = failures, 0

    async def __call__(self) -> int:
        self.tried += 1
        if self.tried <= self.failures:
            raise OSError(f"failure {self.tried}")
        return self.tried


@pytest.mark.parametrize(
    ("delay_s", "waits"),
    [
        (backoff(2.0), [2, 2, 2, 2]),
        (backoff(2.0, most_s=1.5), [1.5, 1.5, 1.5, 1.5]),
        (backoff(0.5, exponential=True), [0.5, 1, 2, 4]),
        (backoff(0.5, exponential=True, most_s=3), [0.5, 1, 2, 3]),
        (backoff(0, exponential=True), [0, 0, 0, 0]),
    ],
)
def test_delays_are_fixed_or_double_up_to_a_limit(delay_s: Any, waits: list[float]) -> None:
    assert [delay_s(failures) for failures in range(1, 5)] == waits


def test_the_delay_after_very_many_failures_is_the_limit() -> None:
    assert backoff(1.0, exponential=True, most_s=30)(5000) == 30


def visit_with_retries(attempt: Any, attempts: int, first_s: float = 1.0) -> VisitResult:
    return visit(lambda ctx: with_retries(attempt, ctx, attempts=attempts, delay_s=backoff(first_s)))


def test_an_attempt_that_succeeds_is_the_last() -> None:
    result = visit_with_retries(Flaky(2), attempts=5)
    assert (result.value, result.seconds) == (3, 2)


def test_the_last_failure_is_raised_without_a_delay() -> None:
    result = visit_with_retries(Flaky(9), attempts=3)
    assert (str(result.error), result.seconds) == ("failure 3", 2)


def test_an_unscripted_call_is_not_retried() -> None:
    tried = []

    async def work(ctx: NodeContext) -> Any:
        async def attempt() -> Any:
            tried.append(ctx.run.now)
            return await ctx.perform(ToolCall(name="nobody"))

        return await with_retries(attempt, ctx, attempts=3, delay_s=backoff(1.0))

    assert isinstance(visit(work).error, UnscriptedCall)
    assert tried == [0]


def asks_until(ctx: NodeContext, wanted: str) -> Any:
    async def attempt() -> str:
        answer = str(await ctx.pause("?"))
        if answer != wanted:
            raise ValueError(answer)
        return answer

    return attempt


def test_each_attempt_of_a_restarted_visit_asks_its_questions_anew() -> None:
    def work(ctx: NodeContext) -> Any:
        return with_retries(
            asks_until(ctx, "yes"), ctx, attempts=3, delay_s=backoff(1.0), restarts_visit=True
        )

    result = visit(work, "no", "never", "yes")
    assert (result.value, result.seconds) == ("yes", 2)
    assert str(visit(work, "no", "never", "nowhere").error) == "nowhere"


async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


@pytest.mark.parametrize("limit_s", [None, 5, 3.5, 3])
def test_work_within_its_time_limit_is_not_touched(limit_s: float | None) -> None:
    result = visit(lambda ctx: with_timeout(lambda: slow(3), ctx, limit_s, "the work"))
    assert (result.value, result.seconds) == ("done", 3)


def test_work_is_cancelled_at_its_time_limit() -> None:
    result = visit(lambda ctx: with_timeout(lambda: slow(30), ctx, 2, "the work"))
    assert (repr(result.error), result.seconds) == ("TimeoutError('the work timed out after 2 s')", 2)


def test_work_that_swallows_its_cancellation_still_times_out() -> None:
    async def stubborn() -> str:
        try:
            return await slow(30)
        except asyncio.CancelledError:
            return "kept"

    assert isinstance(visit(lambda ctx: with_timeout(stubborn, ctx, 2, "the work")).error, TimeoutError)


def test_a_failure_within_the_time_limit_is_raised() -> None:
    assert str(visit(lambda ctx: with_timeout(Flaky(1), ctx, 2, "the work")).error) == "failure 1"
