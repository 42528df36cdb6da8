"""Timeout, retry and fallback around the work of a node, from the inside out. spec: "Resilience"."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from harness.dialects.kit.attempts import backoff, with_retries, with_timeout
from harness.dialects.yagra.document import ERROR, NodeSpec, RetrySpec
from harness.engine.context import NodeContext
from harness.graph.model import Update
from harness.graph.to_json import error_text

_ONCE = RetrySpec(max_attempts=1)


async def with_resilience(
    node: NodeSpec, attempt: Callable[[], Awaitable[Update]], ctx: NodeContext
) -> Update:
    """Run `attempt` under the node's `retry` and `timeout_seconds` (virtual), and return its update.

    If all attempts fail and the node has a fallback, the update goes to the fallback node. It is then the node's
    input state with the text of the last error under `__error__`.

    Raises:
        TimeoutError: the last attempt took longer than `timeout_seconds`.
        Exception: the error of the last attempt. Pauses and unanswered calls are raised at once.
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
