"""Timeout, retry and fallback, in this order around what a node does. spec: "Resilience"."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from harness.dialects.kit.attempts import backoff, with_retries, with_timeout
from harness.dialects.yagra.document import ERROR, NodeSpec, RetrySpec
from harness.engine.context import NodeContext
from harness.graph.model import Update
from harness.graph.to_json import error_text

_ONCE = RetrySpec(max_attempts=1)


async def resilient(node: NodeSpec, attempt: Callable[[], Awaitable[Update]], ctx: NodeContext) -> Update:
    """The update of an attempt, made as often as `retry` says, each within `timeout_seconds` (virtual).

    When all fail and the node has a fallback, the update goes on there: it is the state the node was given,
    with the text of the last error under `__error__`.

    Raises:
        TimeoutError: the last attempt took longer than `timeout_seconds`.
        Exception: what the last attempt raised; pauses and what the world could not answer, at once.
    """

    async def timed() -> Update:
        return await with_timeout(attempt, ctx, node.timeout_seconds, f"node '{node.id}'")

    retry = node.retry or _ONCE
    delay_s = backoff(retry.base_delay_seconds, exponential=retry.backoff == "exponential")
    try:
        return await with_retries(
            timed, ctx, attempts=retry.max_attempts, delay_s=delay_s, restarts_visit=True
        )
    except Exception as error:
        if node.fallback is None or ctx.is_fatal(error):
            raise
        return Update({**ctx.state, ERROR: error_text(error)}, goto=node.fallback)
