"""Anthropic's Messages over the wire.

Source: https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness.graph.effects import LLMCall
from harness.world.wire.format import Json, Refusal, RefusalKind
from harness.world.wire.reading import ai_message, content_of, list_of, message, params_of, text_of, tool_spec
from harness.world.wire.reply import Reply, ToolRequest, event, slices, to_wire

if TYPE_CHECKING:
    from anthropic.types import (
        InputJSONDelta,
        Message,
        RawMessageStreamEvent,
        TextBlock,
        TextDelta,
        ToolUseBlock,
    )
    from langchain_core.messages import BaseMessage

PACKAGE: Final = "anthropic"
_APART: Final = ("model", "messages", "system", "tools", "stream", "output_format", "output_config")
_STOP: Final = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
_ERRORS: Final[Mapping[RefusalKind, str]] = {
    "rate_limit": "rate_limit_error",
    "server_error": "api_error",
    "exception": "api_error",
    "auth": "authentication_error",
    "not_found": "not_found_error",
    "too_large": "request_too_large",
}


def read(body: Json) -> LLMCall:
    """The request as an effect: see `harness.world.wire.format.WireFormat`."""
    model = text_of(body, "model")
    if not isinstance(body.get("max_tokens"), int):
        raise Refusal("invalid_request", "'max_tokens' must be a whole number", param="max_tokens")
    messages = list(_system(body.get("system")))
    for at, written in enumerate(list_of(body.get("messages"), "messages", needed=True)):
        messages += _messages(written, f"messages.{at}")
    return LLMCall(
        name=model,
        provider="anthropic",
        params=params_of(body, *_APART),
        messages=messages,
        tools=[tool_spec(written, "input_schema") for written in list_of(body.get("tools"), "tools")],
        response_format=_response_format(body),
    )


def _response_format(body: Json) -> Any:
    config = body.get("output_config")
    return body.get("output_format") or (config.get("format") if isinstance(config, dict) else None)


def _system(written: Any) -> Iterator[BaseMessage]:
    from langchain_core.messages import SystemMessage

    if written:
        content = content_of(written, "system")
        yield message("system", lambda: SystemMessage(content=content))


def _messages(written: Json, param: str) -> Iterator[BaseMessage]:
    """One message; a user's may hold the results of tools, which are messages of their own."""
    role, given = written.get("role"), written.get("content")
    blocks = [] if isinstance(given, str) else list_of(given, f"{param}.content", needed=True)
    if role == "assistant":
        spoken = [block for block in blocks if block.get("type") != "tool_use"]
        calls = [
            (str(block.get("id") or ""), str(block.get("name") or ""), block.get("input"))
            for block in blocks
            if block.get("type") == "tool_use"
        ]
        content = content_of(spoken if blocks else given, f"{param}.content")
        yield ai_message(content, calls, param)
    elif role == "user":
        yield from _user_messages(given, blocks, param)
    else:
        raise Refusal("invalid_request", f"{param}.role: {role!r} is neither 'user' nor 'assistant'")


def _user_messages(given: Any, blocks: list[Json], param: str) -> Iterator[BaseMessage]:
    from langchain_core.messages import HumanMessage

    others = [block for block in blocks if block.get("type") != "tool_result"]
    for block in blocks:
        if block.get("type") == "tool_result":
            yield _tool_result(block, param)
    if others or not blocks:
        content = content_of(others or given, f"{param}.content")
        yield message(param, lambda: HumanMessage(content=content))


def _tool_result(block: Json, param: str) -> BaseMessage:
    from langchain_core.messages import ToolMessage

    content = content_of(block.get("content"), f"{param}.content")
    call_id = str(block.get("tool_use_id") or "")
    if block.get("is_error") is True:
        return message(param, lambda: ToolMessage(content=content, tool_call_id=call_id, status="error"))
    return message(param, lambda: ToolMessage(content=content, tool_call_id=call_id))


def whole(reply: Reply, body: Json) -> Json:
    """The message."""
    content: list[TextBlock | ToolUseBlock] = [_text_block(reply.text)] if reply.text else []
    content += [_tool_block(call, json.loads(call.arguments)) for call in reply.calls]
    return to_wire(_message(reply, content, _stop_reason(reply), reply.output_tokens))


def events(reply: Reply, body: Json) -> Iterator[str]:
    """The message block by block, each in pieces."""
    return (event(to_wire(each), each.type) for each in _events(reply))


def _events(reply: Reply) -> Iterator[RawMessageStreamEvent]:
    from anthropic.types import (
        MessageDeltaUsage,
        RawContentBlockDeltaEvent,
        RawContentBlockStartEvent,
        RawContentBlockStopEvent,
        RawMessageDeltaEvent,
        RawMessageStartEvent,
        RawMessageStopEvent,
    )
    from anthropic.types.raw_message_delta_event import Delta

    yield RawMessageStartEvent(type="message_start", message=_message(reply, [], None, 0))
    for index, (block, deltas) in enumerate(_blocks(reply)):
        yield RawContentBlockStartEvent(type="content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield RawContentBlockDeltaEvent(type="content_block_delta", index=index, delta=delta)
        yield RawContentBlockStopEvent(type="content_block_stop", index=index)
    yield RawMessageDeltaEvent(
        type="message_delta",
        delta=Delta.construct(stop_reason=_stop_reason(reply), stop_sequence=None),
        usage=MessageDeltaUsage(output_tokens=reply.output_tokens),
    )
    yield RawMessageStopEvent(type="message_stop")


def _blocks(reply: Reply) -> Iterator[tuple[TextBlock | ToolUseBlock, list[TextDelta | InputJSONDelta]]]:
    """Each block as it begins, and what is added to it."""
    from anthropic.types import InputJSONDelta, TextDelta

    if reply.pieces:
        yield _text_block(""), [TextDelta(type="text_delta", text=text) for text in reply.pieces]
    for call in reply.calls:
        parts = ["", *slices(call.arguments)]
        yield (
            _tool_block(call, {}),
            [InputJSONDelta(type="input_json_delta", partial_json=part) for part in parts],
        )


def _text_block(text: str) -> TextBlock:
    from anthropic.types import TextBlock

    return TextBlock(type="text", text=text)


def _tool_block(call: ToolRequest, given: Json) -> ToolUseBlock:
    from anthropic.types import ToolUseBlock

    return ToolUseBlock(type="tool_use", id=call.id, name=call.name, input=given)


def _message(
    reply: Reply, content: Sequence[TextBlock | ToolUseBlock], stop_reason: str | None, output_tokens: int
) -> Message:
    from anthropic.types import Message, Usage

    usage = Usage(
        input_tokens=reply.input_tokens,
        cache_creation_input_tokens=0,
        cache_read_input_tokens=0,
        output_tokens=output_tokens,
    )
    return Message.construct(
        id=f"msg_{reply.number}",
        type="message",
        role="assistant",
        model=reply.model,
        content=list(content),
        stop_reason=stop_reason,
        stop_sequence=None,
        usage=usage,
    )


def _stop_reason(reply: Reply) -> str:
    if reply.finish_reason is None:
        return "tool_use" if reply.calls else "end_turn"
    return _STOP.get(reply.finish_reason, reply.finish_reason)


def error(refusal: Refusal) -> Json:
    """The body of an error."""
    kind = _ERRORS.get(refusal.kind, "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": str(refusal)}}
