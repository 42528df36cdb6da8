"""The wire format of Anthropic's Messages API.

Source: https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness.graph.effects import LLMCall, LLMReply
from harness.world.wire.format import (
    SERVER_SENT,
    Json,
    Refusal,
    RefusalKind,
    Reply,
    ToolRequest,
    ai_message,
    content_of,
    event,
    list_of,
    message,
    object_of,
    params_of,
    slices,
    text_in,
    text_of,
    tokens,
    tool_call,
    tool_spec,
)

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

_NOT_PARAMS: Final = ("model", "messages", "system", "tools", "stream", "output_format", "output_config")
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
    "forbidden": "permission_error",
    "too_large": "request_too_large",
}

framing: Final = SERVER_SENT
statuses: Final[Mapping[RefusalKind, int]] = {}


def read(body: Json) -> LLMCall:
    """Read a request: see `WireFormat.read`."""
    model = text_of(body, "model")
    if not isinstance(body.get("max_tokens"), int):
        raise Refusal("invalid_request", "'max_tokens' must be a whole number", param="max_tokens")
    messages = list(_system(body.get("system")))
    for at, written in enumerate(list_of(body.get("messages"), "messages", needed=True)):
        messages += _messages(written, f"messages.{at}")
    return LLMCall(
        name=model,
        provider="anthropic",
        params=params_of(body, *_NOT_PARAMS),
        messages=messages,
        tools=[tool_spec(written, "input_schema") for written in list_of(body.get("tools"), "tools")],
        response_format=_response_format(body),
    )


def _response_format(body: Json) -> Any:
    return body.get("output_format") or object_of(body.get("output_config")).get("format")


def _system(written: Any) -> Iterator[BaseMessage]:
    if written:
        yield message("system", "system", content=content_of(written, "system"))


def _messages(written: Json, param: str) -> Iterator[BaseMessage]:
    """Yield the messages of one item: results of tools in a user's message become separate messages."""
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
    others = [block for block in blocks if block.get("type") != "tool_result"]
    for block in blocks:
        if block.get("type") == "tool_result":
            yield _tool_result(block, param)
    if others or not blocks:
        yield message("user", param, content=content_of(others or given, f"{param}.content"))


def _tool_result(block: Json, param: str) -> BaseMessage:
    content = content_of(block.get("content"), f"{param}.content")
    call_id = str(block.get("tool_use_id") or "")
    status = "error" if block.get("is_error") is True else "success"
    return message("tool", param, content=content, tool_call_id=call_id, status=status)


def response_json(reply: Reply, body: Json) -> Json:
    """Return the message: see `WireFormat.response_json`."""
    content: list[Json] = [{"type": "text", "text": reply.text}] if reply.text else []
    for call in reply.calls:
        content.append({**_tool_use(call), "input": json.loads(call.arguments)})
    return _message(reply, content, _stop_reason(reply), reply.output_tokens)


def events(reply: Reply, body: Json) -> Iterator[bytes]:
    """Yield the events of the message, block by block: see `WireFormat.events`."""
    return (event(each, each["type"]) for each in _events(reply))


def _events(reply: Reply) -> Iterator[Json]:
    yield {"type": "message_start", "message": _message(reply, [], None, 0)}
    for index, (block, deltas) in enumerate(_blocks(reply)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": reply.output_tokens}}
    yield {"type": "message_stop"}


def _blocks(reply: Reply) -> Iterator[tuple[Json, list[Json]]]:
    """Yield each block in its initial state, with its deltas."""
    if reply.pieces:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": text} for text in reply.pieces]
    for call in reply.calls:
        parts = ["", *slices(call.arguments)]
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        yield {**_tool_use(call), "input": {}}, deltas


def _tool_use(call: ToolRequest) -> Json:
    return {"type": "tool_use", "id": call.id, "name": call.name}


def _message(reply: Reply, content: list[Json], stop_reason: str | None, output_tokens: int) -> Json:
    usage = {
        "input_tokens": reply.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
    }
    return {
        "id": f"msg_{reply.number}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": usage,
    }


def _stop_reason(reply: Reply) -> str:
    return reply.ending(_STOP, calls="tool_use", text="end_turn")


def error_json(refusal: Refusal) -> Json:
    """Return the body of an error: see `WireFormat.error_json`."""
    kind = _ERRORS.get(refusal.kind, "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": str(refusal)}}


def answer(body: Json) -> LLMReply:
    """Return what a message says: see `WireFormat.answer`."""
    blocks = body["content"]
    calls = [
        tool_call(block.get("id"), block["name"], block["input"])
        for block in blocks
        if block["type"] == "tool_use"
    ]
    sent = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    usage = tokens(body.get("usage"), sent, "output_tokens")
    return LLMReply(text_in(blocks), calls, usage, body.get("stop_reason"))


def joined(events: Sequence[Json]) -> Json:
    """Return the events as a message: see `WireFormat.joined`."""
    message: Json = {}
    blocks: dict[int, Json] = {}
    for each in events:
        if each["type"] == "message_start":
            message = dict(each["message"])
        elif each["type"] == "content_block_start":
            blocks[each["index"]] = {**each["content_block"], "input": ""}
        elif each["type"] == "content_block_delta":
            block, delta = blocks[each["index"]], each["delta"]
            block["text"] = block.get("text", "") + delta.get("text", "")
            block["input"] += delta.get("partial_json", "")
        elif each["type"] == "message_delta":
            message |= each["delta"]
            message["usage"] = {**(message.get("usage") or {}), **(each.get("usage") or {})}
    return {**message, "content": [*blocks.values()]}
