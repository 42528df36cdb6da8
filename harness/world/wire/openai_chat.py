"""The wire format of OpenAI's Chat Completions API.

Source: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from harness.graph.effects import LLMCall, ToolSpec
from harness.world.wire.format import (
    Json,
    Refusal,
    RefusalKind,
    Reply,
    ai_message,
    content_of,
    event,
    list_of,
    message,
    openai_message,
    params_of,
    slices,
    text_of,
    to_wire,
    tool_spec,
)

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from openai.types import CompletionUsage
    from openai.types.chat import chat_completion_chunk

PACKAGE: Final = "openai"
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
    function = written.get("function")
    function = function if isinstance(function, dict) else {}
    return str(written.get("id") or ""), str(function.get("name") or ""), function.get("arguments") or "{}"


def _tool(written: Json) -> ToolSpec:
    function = written.get(str(written.get("type")))
    return tool_spec(function if isinstance(function, dict) else written, "parameters")


def response_json(reply: Reply, body: Json) -> Json:
    """Return the completion: see `WireFormat.response_json`."""
    from openai.types import chat
    from openai.types.chat.chat_completion import Choice

    # As data: the class of a call has another name since openai 1.99.
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]
    content = reply.text or None if calls else reply.text
    more: Json = {"tool_calls": calls} if calls else {}
    message = chat.ChatCompletionMessage(role="assistant", content=content, refusal=None, **more)
    choice = Choice.construct(index=0, message=message, logprobs=None, finish_reason=_finish(reply))
    head: Json = {"object": "chat.completion", **_head(reply)}
    return to_wire(chat.ChatCompletion(choices=[choice], usage=_usage(reply), **head))


def events(reply: Reply, body: Json) -> Iterator[str]:
    """Yield the chunks: role, pieces of the text, tool calls, finish reason, and usage if it was requested."""
    from openai.types.chat import ChatCompletionChunk
    from openai.types.chat.chat_completion_chunk import Choice, ChoiceDelta

    options = body.get("stream_options")
    counted = isinstance(options, dict) and options.get("include_usage") is True
    head = {"object": "chat.completion.chunk", **_head(reply), **({"usage": None} if counted else {})}
    for delta in _deltas(reply):
        choice = Choice(index=0, delta=delta, logprobs=None, finish_reason=None)
        yield event(to_wire(ChatCompletionChunk(choices=[choice], **head)))
    end = Choice.construct(index=0, delta=ChoiceDelta(), logprobs=None, finish_reason=_finish(reply))
    yield event(to_wire(ChatCompletionChunk(choices=[end], **head)))
    if counted:
        yield event(to_wire(ChatCompletionChunk(choices=[], **{**head, "usage": _usage(reply)})))
    yield "data: [DONE]\n\n"


def _deltas(reply: Reply) -> Iterator[chat_completion_chunk.ChoiceDelta]:
    from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall
    from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCallFunction as Function

    content = None if reply.calls and not reply.text else ""
    yield ChoiceDelta(role="assistant", content=content, refusal=None)
    for piece in reply.pieces:
        yield ChoiceDelta(content=piece)
    for index, call in enumerate(reply.calls):
        function = Function(name=call.name, arguments="")
        begun = ChoiceDeltaToolCall(index=index, id=call.id, type="function", function=function)
        yield ChoiceDelta(tool_calls=[begun])
        for piece in slices(call.arguments):
            function = Function(arguments=piece)
            yield ChoiceDelta(tool_calls=[ChoiceDeltaToolCall(index=index, function=function)])


def _head(reply: Reply) -> Json:
    # No clock: the same requests get the same answers.
    return {"id": f"chatcmpl-{reply.number}", "created": 0, "model": reply.model, "system_fingerprint": None}


def _finish(reply: Reply) -> str:
    if reply.finish_reason is None:
        return "tool_calls" if reply.calls else "stop"
    return _FINISH.get(reply.finish_reason, reply.finish_reason)


def _usage(reply: Reply) -> CompletionUsage:
    from openai.types import CompletionUsage

    return CompletionUsage(
        prompt_tokens=reply.input_tokens,
        completion_tokens=reply.output_tokens,
        total_tokens=reply.input_tokens + reply.output_tokens,
    )


def error_json(refusal: Refusal) -> Json:
    """Return the body of an error: see `WireFormat.error_json`."""
    kind, code = _ERRORS.get(refusal.kind, ("invalid_request_error", None))
    return {"error": {"message": str(refusal), "type": kind, "param": refusal.param, "code": code}}
