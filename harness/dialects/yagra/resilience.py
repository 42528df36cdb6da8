"""Timeout, retry and fallback, in this order around what a node does. spec: "Resilience"."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from harness.dialects.yagra.document import ERROR, NodeSpec, RetrySpec
from harness.engine.context import NodeContext
from harness.graph.model import Update
from harness.graph.to_json import error_text

Attempt = Callable[[], Awaitable[Update]]

_ONCE = RetrySpec(max_attempts=1)


async def resilient(node: NodeSpec, attempt: Attempt, ctx: NodeContext) -> Update:
    """What an attempt leaves, made as often as `retry` says, each within `timeout_seconds` (virtual).

    When all fail and the node has a fallback, the update goes on there: it is the state the node was given,
    with the text of the last error under `__error__`.

    Raises:
        TimeoutError: the last attempt took longer than `timeout_seconds`.
        Exception: what the last attempt raised; pauses and what the world could not answer, at once.
    """
    try:
        return await _retried(node, attempt, ctx)
    except Exception as error:
        if node.fallback is None or ctx.is_fatal(error):
            raise
        return Update({**ctx.state, ERROR: error_text(error)}, goto=node.fallback)


async def _retried(node: NodeSpec, attempt: Attempt, ctx: NodeContext) -> Update:
    retry = node.retry or _ONCE
    for failed in range(ctx.failed_attempts + 1, retry.max_attempts):
        try:
            return await _in_time(node, attempt, ctx)
        except Exception as error:
            if ctx.is_fatal(error):
                raise
        ctx.attempt_failed()
        await ctx.sleep(_delay_s(retry, failed))
    return await _in_time(node, attempt, ctx)


def _delay_s(retry: RetrySpec, failed: int) -> float:
    """spec: "Retry behavior". Seconds to wait after so many failures."""
    return retry.base_delay_seconds * (2 ** (failed - 1) if retry.backoff == "exponential" else 1)


async def _in_time(node: NodeSpec, attempt: Attempt, ctx: NodeContext) -> Update:
    if node.timeout_seconds is None:
        return await attempt()
    update = Update()
    try:
        async with asyncio.timeout(node.timeout_seconds) as watch:
            update = await attempt()
    except Exception as error:
        if ctx.is_fatal(error) or not watch.expired():
            raise
    if watch.expired():  # whatever the attempt made of being cancelled
        raise TimeoutError(f"node '{node.id}' timed out after {node.timeout_seconds} s")
    return update
