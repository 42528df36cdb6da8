"""Converts LangChain's messages to replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk
from pydantic import ValidationError

from harness.graph.effects import LLMReply
from harness.graph.messages import message_text
from harness.graph.to_json import from_json
from harness.world.failures import MalformedAnswerError


def reply(message: AIMessage) -> LLMReply:
    """Convert a message that was not streamed.

    Raises:
        MalformedAnswerError: the model calls a tool with arguments that are not a JSON object.
    """
    for invalid in message.invalid_tool_calls:
        raise _malformed(invalid["name"], invalid["args"])
    calls = [{"id": call["id"], "name": call["name"], "args": call["args"]} for call in message.tool_calls]
    return LLMReply(message_text(message), calls, _usage(message), _finish_reason(message))


def streamed_reply(parts: Sequence[AIMessageChunk]) -> LLMReply:
    """Convert a streamed message, given its parts. The reply's chunks are the texts of the parts.

    Raises:
        MalformedAnswerError: the model calls a tool with arguments that are not a JSON object.
    """
    whole = parts[0] + list(parts[1:])
    reasons = [reason for part in parts if (reason := _finish_reason(part))]
    # Not `whole.tool_calls`: LangChain completes arguments that were cut off.
    calls = [
        {"id": call["id"], "name": call["name"], "args": _arguments(call["name"], call["args"])}
        for call in whole.tool_call_chunks
    ]
    return LLMReply(
        message_text(whole),
        calls,
        _usage(whole),
        reasons[-1] if reasons else None,
        tuple(text for part in parts if (text := message_text(part))),
    )


def malformed_reply(invalid: ValidationError) -> MalformedAnswerError:
    """Return the error for a reply that LangChain cannot convert to a message."""
    fault = invalid.errors()[0]
    place = ".".join(map(str, fault["loc"]))
    return MalformedAnswerError(
        f"the model's reply cannot be read: {place}: {fault['msg']}, found {str(fault['input'])[:200]!r}"
    )


def _arguments(name: str | None, text: str | None) -> dict[str, Any]:
    found = from_json(text or "{}")
    if not isinstance(found, dict):
        raise _malformed(name, text)
    return found


def _malformed(name: str | None, arguments: str | None) -> MalformedAnswerError:
    return MalformedAnswerError(
        f"the model calls tool {name!r} with arguments that are not a JSON object: {(arguments or '')[:200]!r}"
    )


def _usage(message: AIMessage) -> dict[str, int]:
    usage = message.usage_metadata
    if not usage:
        return {}
    return {"input_tokens": usage["input_tokens"], "output_tokens": usage["output_tokens"]}


def _finish_reason(message: AIMessage) -> str | None:
    metadata = message.response_metadata
    return metadata.get("finish_reason") or metadata.get("stop_reason")
