"""LangChain messages with ids that are generated from the seed of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata

from harness.graph.effects import LLMReply

NewId = Callable[[str], str]
"""A function that generates an id with the given prefix (`RunContext.new_id`)."""

AnyMessage = TypeVar("AnyMessage", bound=BaseMessage)


def ensure_id(message: AnyMessage, new_id: NewId) -> AnyMessage:
    """Return the message if it has an id, else a copy with a new one."""
    return message if message.id else message.model_copy(update={"id": new_id("message")})


def to_ai_message(reply: LLMReply, new_id: NewId) -> AIMessage:
    """Convert a model's reply to a message. Tool calls without an id get one."""
    calls = [
        {
            "name": call["name"],
            "args": dict(call.get("args") or {}),
            "id": call.get("id") or new_id("call"),
            "type": "tool_call",
        }
        for call in reply.tool_calls
    ]
    metadata = {"finish_reason": reply.finish_reason} if reply.finish_reason else {}
    return AIMessage(
        content=reply.text, tool_calls=calls, response_metadata=metadata, usage_metadata=_usage(reply.usage)
    )


def _usage(usage: Mapping[str, int]) -> UsageMetadata | None:
    if not usage:
        return None
    sent, received = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
    return UsageMetadata(input_tokens=sent, output_tokens=received, total_tokens=sent + received)
