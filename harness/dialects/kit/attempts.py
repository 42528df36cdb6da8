"""Attempts: what may fail is done again, after a wait in virtual time, a limited number of times."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

from harness.engine.context import NodeContext
from harness.time.deadline import Deadline
from harness.time.idle import inside

T = TypeVar("T")
Attempt = Callable[[], Awaitable[T]]

_MOST_DOUBLINGS = 1000  # a float holds no more


def backoff(first_s: float, *, exponential: bool = False, most_s: float = math.inf) -> Callable[[int], float]:
    """The wait, in seconds, after each failure, by the number of failures so far (from 1).

    Always `first_s`, or, if `exponential`, twice as long each time; never longer than `most_s`.
    """

    def delay_s(failures: int) -> float:
        doublings = min(failures - 1, _MOST_DOUBLINGS) if exponential else 0
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
    """What the first successful attempt returns. There is no wait after the last one.

    Args:
        attempt: does the work once.
        ctx: the visit.
        attempts: how many there may be, the first included.
        delay_s: see `backoff`; in virtual seconds.
        only: after which errors there is another attempt; after any, without it.
        restarts_visit: an attempt is all that the visit does. One that pauses is then resumed as the same attempt,
            and a new one asks again what an earlier one asked.

    Raises:
        Exception: what the last attempt raised; at once, pauses and what the world could not answer.
    """
    first = ctx.failed_attempts + 1 if restarts_visit else 1
    for number in range(first, attempts):
        try:
            return await attempt()
        except Exception as error:
            if ctx.is_fatal(error) or (only is not None and not only(error)):
                raise
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
    """What the attempt returns, if that takes it at most `timeout_s` virtual seconds (None: any number).

    `deadline` keeps that time, for an attempt that moves it.

    Raises:
        TimeoutError: it takes longer, whatever it makes of being cancelled. `what` names it in the message. With
            `late`, that is raised in its place.
        Exception: what the attempt raised in time; pauses and what the world could not answer, at any time.
    """
    if timeout_s is None:
        return await attempt()
    deadline = deadline or Deadline(timeout_s)
    late = late or TimeoutError(f"{what} timed out after {timeout_s} s")
    try:
        async with deadline:
            with inside():  # of two that end at one instant, the inner is the first
                result = await attempt()
    except Exception as error:
        if ctx.is_fatal(error) or not deadline.expired():
            raise
        raise late from error
    if deadline.expired():
        raise late
    return result
