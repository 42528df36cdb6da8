"""The wire format of OpenAI's Chat Completions API.

Source: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness.graph.effects import LLMCall, LLMReply, ToolSpec
from harness.world.wire.format import (
    SERVER_SENT,
    Json,
    Refusal,
    RefusalKind,
    Reply,
    ai_message,
    content_of,
    event,
    function_calls,
    list_of,
    message,
    object_of,
    openai_message,
    params_of,
    slices,
    text_in,
    text_of,
    tokens,
    tool_spec,
)

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

_NOT_PARAMS: Final = ("model", "messages", "tools", "response_format", "stream", "stream_options", "n")
_FINISH: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
_ERRORS: Final[Mapping[RefusalKind, tuple[str, str | None]]] = {
    "rate_limit": ("rate_limit_error", "rate_limit_exceeded"),
    "server_error": ("server_error", None),
    "exception": ("server_error", None),
    "auth": ("invalid_request_error", "invalid_api_key"),
    "context_length": ("invalid_request_error", "context_length_exceeded"),
    "content_filter": ("invalid_request_error", "content_filter"),
    "unscripted": ("invalid_request_error", "unscripted_call"),
    "not_found": ("invalid_request_error", "not_found"),
}

framing: Final = SERVER_SENT
statuses: Final[Mapping[RefusalKind, int]] = {}


def read(body: Json) -> LLMCall:
    """Read a request: see `WireFormat.read`."""
    if body.get("n", 1) not in (1, None):
        raise Refusal("invalid_request", "'n' must be 1: a stub is one answer", param="n")
    model = text_of(body, "model")
    messages = list_of(body.get("messages"), "messages", needed=True)
    return LLMCall(
        name=model,
        provider="openai",
        params=params_of(body, *_NOT_PARAMS),
        messages=[_message(written, f"messages[{at}]") for at, written in enumerate(messages)],
        tools=[_tool(written) for written in list_of(body.get("tools"), "tools")],
        response_format=body.get("response_format"),
    )


def _message(written: Json, param: str) -> BaseMessage:
    role, content = written.get("role"), content_of(written.get("content"), f"{param}.content")
    name = written.get("name")
    if role == "assistant":
        calls = list_of(written.get("tool_calls"), f"{param}.tool_calls")
        return ai_message(content, [_call(call) for call in calls], param)
    if role in ("tool", "function"):
        call_id = str(written.get("tool_call_id") or name or "")
        return message("tool", param, content=content, tool_call_id=call_id, name=name)
    return openai_message(role, content, param, "assistant, tool", name=name)


def _call(written: Json) -> tuple[str, str, Any]:
    function = object_of(written.get("function"))
    return str(written.get("id") or ""), str(function.get("name") or ""), function.get("arguments") or "{}"


def _tool(written: Json) -> ToolSpec:
    function = written.get(str(written.get("type")))
    return tool_spec(function if isinstance(function, dict) else written, "parameters")


def response_json(reply: Reply, body: Json) -> Json:
    """Return the completion: see `WireFormat.response_json`."""
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]
    content = reply.text or None if calls else reply.text
    more: Json = {"tool_calls": calls} if calls else {}
    message = {"role": "assistant", "content": content, "refusal": None, **more}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
    return {"object": "chat.completion", **_head(reply), "choices": [choice], "usage": _usage(reply)}


def events(reply: Reply, body: Json) -> Iterator[bytes]:
    """Yield the chunks: role, pieces of the text, tool calls, finish reason, and usage if it was requested."""
    counted = object_of(body.get("stream_options")).get("include_usage") is True
    head = {"object": "chat.completion.chunk", **_head(reply), **({"usage": None} if counted else {})}
    for delta in _deltas(reply):
        yield event({**head, "choices": [_choice(delta, None)]})
    yield event({**head, "choices": [_choice({}, _finish(reply))]})
    if counted:
        yield event({**head, "choices": [], "usage": _usage(reply)})
    yield b"data: [DONE]\n\n"


def _choice(delta: Json, finish_reason: str | None) -> Json:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _deltas(reply: Reply) -> Iterator[Json]:
    content = None if reply.calls and not reply.text else ""
    yield {"role": "assistant", "content": content, "refusal": None}
    for piece in reply.pieces:
        yield {"content": piece}
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}
        for piece in slices(call.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _head(reply: Reply) -> Json:
    # No clock: the same requests get the same answers.
    return {"id": f"chatcmpl-{reply.number}", "created": 0, "model": reply.model, "system_fingerprint": None}


def _finish(reply: Reply) -> str:
    return reply.ending(_FINISH, calls="tool_calls", text="stop")


def _usage(reply: Reply) -> Json:
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }


def error_json(refusal: Refusal) -> Json:
    """Return the body of an error: see `WireFormat.error_json`."""
    kind, code = _ERRORS.get(refusal.kind, ("invalid_request_error", None))
    return {"error": {"message": str(refusal), "type": kind, "param": refusal.param, "code": code}}


def answer(body: Json) -> LLMReply:
    """Return what a completion says: see `WireFormat.answer`."""
    choice = body["choices"][0]
    said = choice["message"]
    usage = tokens(body.get("usage"), "prompt_tokens", "completion_tokens")
    return LLMReply(text_in(said.get("content")), function_calls(said), usage, choice.get("finish_reason"))


def joined(events: Sequence[Json]) -> Json:
    """Return the chunks as a completion: see `WireFormat.joined`."""
    text, finish, usage = "", None, None
    calls: dict[int, Json] = {}
    for chunk in events:
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices", ())[:1]:
            delta, finish = choice.get("delta") or {}, choice.get("finish_reason") or finish
            text += text_in(delta.get("content"))
            for part in delta.get("tool_calls") or ():
                call = calls.setdefault(part["index"], {"id": part.get("id"), "name": "", "arguments": ""})
                for key, value in (part.get("function") or {}).items():
                    call[key] += value or ""
    made = [{"id": call.pop("id"), "function": call} for call in calls.values()]
    message = {"content": text, "tool_calls": made}
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}
