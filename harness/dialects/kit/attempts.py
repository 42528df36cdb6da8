"""Retries with back-off, and time limits, in virtual time."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

from harness.engine.context import NodeContext
from harness.time.clock import unheld_work
from harness.time.gather import Deadline
from harness.time.selector import nested_level

T = TypeVar("T")
Attempt = Callable[[], Awaitable[T]]

_MAX_DOUBLINGS = 1000  # a float overflows soon after


def backoff(first_s: float, *, exponential: bool = False, most_s: float = math.inf) -> Callable[[int], float]:
    """Return a function from the number of failures so far (from 1) to the delay before the next attempt.

    Args:
        first_s: the first delay in seconds.
        exponential: double the delay after each failure; otherwise it stays `first_s`.
        most_s: the longest delay in seconds.
    """

    def delay_s(failures: int) -> float:
        doublings = min(failures - 1, _MAX_DOUBLINGS) if exponential else 0
        return min(first_s * 2.0**doublings, most_s)

    return delay_s


async def with_retries(
    attempt: Attempt[T],
    ctx: NodeContext,
    *,
    attempts: int,
    delay_s: Callable[[int], float],
    only: Callable[[Exception], bool] | None = None,
    restarts_visit: bool = False,
) -> T:
    """Call `attempt` until it succeeds, and return its result. There is no delay after the last attempt.

    Args:
        attempt: does the work once.
        ctx: the context of the visit.
        attempts: the maximum number of attempts, the first included.
        delay_s: the delay after each failure, in virtual seconds; see `backoff`.
        only: a predicate of errors that are retried; by default all are.
        restarts_visit: True if each attempt is the whole visit. An attempt that pauses is then resumed as the same
            attempt, and a later attempt asks its questions anew.

    Raises:
        Exception: the error of the last attempt. Pauses and unanswered calls are raised at once.
    """
    first = ctx.failed_attempts + 1 if restarts_visit else 1
    for number in range(first, attempts):
        try:
            return await attempt()
        except Exception as error:
            if ctx.is_fatal(error) or (only is not None and not only(error)):
                raise
            ctx.because(error, "retry")
        if restarts_visit:
            ctx.attempt_failed()
        await ctx.sleep(delay_s(number))
    return await attempt()


async def with_timeout(
    attempt: Attempt[T],
    ctx: NodeContext,
    timeout_s: float | None,
    what: str,
    deadline: Deadline | None = None,
    *,
    late: Exception | None = None,
) -> T:
    """Call `attempt` and return its result, with a time limit.

    Args:
        attempt: does the work.
        ctx: the context of the visit.
        timeout_s: the limit in virtual seconds; None for no limit.
        what: the name of the work in the message of the TimeoutError.
        deadline: the deadline to use, if the attempt reschedules it.
        late: the error to raise instead of the TimeoutError.

    Raises:
        TimeoutError: the time is up, even if the attempt handles its cancellation and returns.
        Exception: the error of the attempt, in time. Pauses and unanswered calls are raised at any time.
    """
    if timeout_s is None:
        return await attempt()
    deadline = deadline or Deadline(timeout_s)
    late = late or TimeoutError(f"{what} timed out after {timeout_s} s")
    try:
        async with deadline:
            with nested_level():  # of two limits that end at the same instant, the inner one is first
                result = await attempt()
        if not deadline.expired():
            return result
    except Exception as error:
        if ctx.is_fatal(error) or not deadline.expired():
            raise
        late.__cause__ = error
    if work := unheld_work():
        ctx.run.simulation.remark(f"when {what} timed out, {work}")
    raise late
