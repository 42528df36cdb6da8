"""Retry policies of models, requests, MCP servers and remote agents (26.1.2).

Delays are those without jitter, so that runs repeat exactly.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, model_validator

from harness.dialects.kit.attempts import with_retries, with_timeout
from harness.engine.context import NodeContext
from harness.graph.effects import Effect, HTTPReply
from harness.source.models import Mistake, mistaken

_THROTTLED: Final[dict[str, list[str]]] = {"409": [], "429": []}
_NEVER: Final = (400, 401, 403, 422, 501)
_STATUS: Final = {"rate_limit": 429, "timeout": 408, "connection": 503, "server_error": 500}
"""The HTTP status that an error of this kind stands for. The others are not worth another attempt."""


class RetryPolicy(BaseModel, extra="forbid", strict=True, title="a retry policy"):
    """A retry policy. Times are in seconds; `max_attempts` does not count the first attempt.

    `recoverable_statuses` are the HTTP statuses that are retried, each with the texts of which the response must have
    one; an empty list is any text.
    """

    max_attempts: Annotated[int, Field(ge=0)] = 2
    request_timeout: Annotated[float, Field(gt=0)] | None = None
    initial_retry_delay: Annotated[float, Field(ge=0)] = 1.0
    max_retry_delay: Annotated[float, Field(ge=0)] = 8.0
    backoff_factor: Annotated[float, Field(gt=0)] = 2.0
    jitter: Literal["equal", "full", "full_and_equal_for_throttle", "decorrelated"] | None = (
        "full_and_equal_for_throttle"
    )
    service_error_retry_on_any_5xx: bool = True
    recoverable_statuses: dict[str, list[str]] = Field(default_factory=_THROTTLED.copy)

    @model_validator(mode="after")
    def _delays_are_ordered(self) -> RetryPolicy:
        if self.max_retry_delay < self.initial_retry_delay:
            text = "max_retry_delay is less than initial_retry_delay"
            raise mistaken(Mistake(text, code="bad-value"))
        return self

    def delay_s(self, failures: int) -> float:
        """Return the delay in seconds after a number of failures, from 1."""
        try:
            return min(self.initial_retry_delay * self.backoff_factor ** (failures - 1), self.max_retry_delay)
        except OverflowError:
            return self.max_retry_delay

    def recovers(self, status: int, text: str) -> bool:
        """True if a response of this status may be followed by another attempt."""
        if status in _NEVER:
            return False
        wanted = self.recoverable_statuses.get(str(status))
        if wanted is not None:
            return not wanted or any(part.lower() in text.lower() for part in wanted)
        return self.service_error_retry_on_any_5xx and 500 <= status < 600


class _Refused(Exception):
    """A response with a status that may be followed by another attempt."""

    def __init__(self, reply: HTTPReply) -> None:
        super().__init__(f"the response has the status {reply.status}")
        self.reply = reply


async def perform_with_retries(effect: Effect, policy: RetryPolicy | None, ctx: NodeContext) -> Any:
    """Perform an effect as its retry policy says, and return the last answer.

    Raises:
        Exception: the error of the last attempt.
    """
    if policy is None:
        return await ctx.perform(effect)

    async def attempt() -> Any:
        reply = await with_timeout(lambda: ctx.perform(effect), ctx, policy.request_timeout, effect.name)
        if isinstance(reply, HTTPReply) and policy.recovers(reply.status, reply.text):
            raise _Refused(reply)
        return reply

    def is_recoverable(error: Exception) -> bool:
        if isinstance(error, _Refused | TimeoutError | ConnectionError):
            return True
        status = _STATUS.get(getattr(error, "kind", ""))
        return status is not None and policy.recovers(status, str(error))

    try:
        return await with_retries(
            attempt, ctx, attempts=policy.max_attempts + 1, delay_s=policy.delay_s, only=is_recoverable
        )
    except _Refused as refused:
        return refused.reply
