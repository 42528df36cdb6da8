"""The wire format of Ollama's `/api/chat` and `/api/generate`: whole, or as a stream of lines, each an object.

Source: https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness.graph.effects import LLMCall, LLMReply, ToolSpec
from harness.world.wire.format import (
    Framing,
    Json,
    Refusal,
    RefusalKind,
    Reply,
    ai_message,
    compact,
    content_of,
    function_calls,
    list_of,
    message,
    object_of,
    openai_message,
    params_of,
    schema_format,
    text_in,
    text_of,
    tokens,
    tool_spec,
)

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


def _lines(body: bytes) -> list[Json]:
    lines = [line for line in body.splitlines() if line.strip()]
    return [json.loads(line) for line in lines] if len(lines) > 1 else []


framing: Final = Framing("application/x-ndjson", _lines, lambda line: line[: len(line) // 2] + b"\n")
statuses: Final[Mapping[RefusalKind, int]] = {}

_NOT_PARAMS: Final = (
    *("model", "messages", "tools", "format", "options", "stream"),
    *("prompt", "system", "suffix", "images", "template", "context", "raw"),
)
_FINISH: Final = {"max_tokens": "length", "end_turn": "stop", "tool_calls": "stop", "tool_use": "stop"}
# No clock: the same requests get the same answers.
_WHEN: Final = {"created_at": "1970-01-01T00:00:00Z"}
_DURATIONS: Final = dict.fromkeys(
    ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"), 0
)


def read(body: Json) -> LLMCall:
    """Read a request: see `WireFormat.read`."""
    wanted = body.get("format")
    return LLMCall(
        name=text_of(body, "model"),
        provider="ollama",
        params={**params_of(body, *_NOT_PARAMS), **params_of(object_of(body.get("options")))},
        messages=list(_messages(body)),
        tools=[_tool(written) for written in list_of(body.get("tools"), "tools")],
        response_format={"type": "json_object"}
        if wanted == "json"
        else schema_format(wanted)
        if wanted
        else None,
    )


def _messages(body: Json) -> Iterator[BaseMessage]:
    if "prompt" in body:
        if body.get("system"):
            yield message("system", "system", content=content_of(body["system"], "system"))
        yield message("user", "prompt", content=content_of(body["prompt"], "prompt"))
        return
    for at, written in enumerate(list_of(body.get("messages"), "messages", needed=True)):
        yield _message(written, f"messages[{at}]")


def _message(written: Json, param: str) -> BaseMessage:
    role, content = written.get("role"), content_of(written.get("content"), f"{param}.content")
    if role == "assistant":
        calls = [_call(call) for call in list_of(written.get("tool_calls"), f"{param}.tool_calls")]
        return ai_message(content, calls, param)
    if role == "tool":
        name = str(written.get("tool_name") or written.get("name") or "")
        call_id = str(written.get("tool_call_id") or name)
        return message("tool", param, content=content, tool_call_id=call_id, name=name or None)
    if images := written.get("images"):
        content = [{"type": "text", "text": content}, *({"type": "image", "data": each} for each in images)]
    return openai_message(role, content, param, "assistant, tool")


def _call(written: Json) -> tuple[str, str, Any]:
    """Return a call. Servers without ids of calls know them by the tool's name."""
    function = object_of(written.get("function"))
    name = str(function.get("name") or "")
    return str(written.get("id") or name), name, function.get("arguments") or {}


def _tool(written: Json) -> ToolSpec:
    function = written.get("function")
    return tool_spec(function if isinstance(function, dict) else written, "parameters")


def response_json(reply: Reply, body: Json) -> Json:
    """Return the answer: see `WireFormat.response_json`."""
    return {"model": reply.model, **_WHEN, **_said(body, reply.text, _calls(reply)), **_end(reply)}


def events(reply: Reply, body: Json) -> Iterator[bytes]:
    """Yield the lines: pieces of the text, tool calls, and an empty one with the usage."""
    parts = [_said(body, piece) for piece in reply.pieces]
    parts += [_said(body, "", [call]) for call in _calls(reply)]
    for part in parts:
        yield _line({"model": reply.model, **_WHEN, **part, "done": False})
    yield _line({"model": reply.model, **_WHEN, **_said(body, ""), **_end(reply)})


def _line(value: Json) -> bytes:
    return f"{compact(value)}\n".encode()


def _said(body: Json, text: str, calls: Sequence[Json] = ()) -> Json:
    if "prompt" in body:
        return {"response": text}
    return {"message": {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}}


def _calls(reply: Reply) -> list[Json]:
    return [
        {"id": call.id, "function": {"index": at, "name": call.name, "arguments": json.loads(call.arguments)}}
        for at, call in enumerate(reply.calls)
    ]


def _end(reply: Reply) -> Json:
    reason = reply.finish_reason or "stop"
    counts = {"prompt_eval_count": reply.input_tokens, "eval_count": reply.output_tokens}
    return {"done": True, "done_reason": _FINISH.get(reason, reason), **_DURATIONS, **counts}


def error_json(refusal: Refusal) -> Json:
    """Return the body of an error: see `WireFormat.error_json`."""
    return {"error": str(refusal)}


def answer(body: Json) -> LLMReply:
    """Return what an answer says: see `WireFormat.answer`."""
    said = body["message"] if "message" in body else {"content": body["response"]}
    counted = {"eval_count", "prompt_eval_count"} & body.keys()
    usage = tokens(body if counted else None, "prompt_eval_count", "eval_count")
    return LLMReply(text_in(said.get("content")), function_calls(said), usage, body.get("done_reason"))


def joined(events: Sequence[Json]) -> Json:
    """Return the lines as one answer: see `WireFormat.joined`."""
    said = [each.get("message") or {"content": each.get("response")} for each in events]
    text = "".join(text_in(each.get("content")) for each in said)
    calls = [call for each in said for call in each.get("tool_calls") or ()]
    return {**events[-1], "message": {"content": text, "tool_calls": calls}}
