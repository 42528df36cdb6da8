"""A model's reply as the message LangChain would make of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from harness.graph.effects import LLMReply


def to_ai_message(reply: LLMReply, new_id: Callable[[str], str]) -> AIMessage:
    """The message of a model's reply. Tool calls without an id get one."""
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
    given, told = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
    return UsageMetadata(input_tokens=given, output_tokens=told, total_tokens=given + told)
