"""The wire format of Gemini's `generateContent` and `streamGenerateContent`, at Google AI and Vertex AI.

Model and streaming are in the URL: see `harness.world.wire.http.request_json`.
Source: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from harness.graph.effects import LLMCall, LLMReply, ToolSpec
from harness.world.wire.format import (
    SERVER_SENT,
    STATUS,
    Json,
    Refusal,
    RefusalKind,
    Reply,
    ai_message,
    compact,
    content_of,
    event,
    list_of,
    message,
    params_of,
    schema_format,
    text_of,
    tokens,
    tool_call,
    tool_spec,
    typed,
)

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


def _parts_of_stream(body: bytes) -> list[Json]:
    """Return the parts of a stream of either form; an empty list for a whole answer."""
    return json.loads(body) if body.lstrip().startswith(b"[") else SERVER_SENT.parts(body)


framing: Final = replace(SERVER_SENT, parts=_parts_of_stream)
ARRAY: Final = replace(framing, content_type="application/json; charset=UTF-8")
"""The form of a stream without `alt=sse`: one array, whose items arrive one by one."""
statuses: Final[Mapping[RefusalKind, int]] = {"content_filter": 200}

_NOT_PARAMS: Final = (
    *("model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "stream"),
    *("responseMimeType", "responseSchema", "responseJsonSchema", "alt"),
)
_FINISH: Final = {
    "length": "MAX_TOKENS",
    "max_tokens": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "SAFETY",
}
_ERRORS: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
}
_RESULT_KEYS: Final = ("output", "result", "error")
"""The keys under which clients send what a tool returned, if it is no object."""


def read(body: Json) -> LLMCall:
    """Read a request: see `WireFormat.read`."""
    body = _fields(body)
    config = _fields(body.get("generationConfig"))
    if config.get("candidateCount", 1) not in (1, None):
        raise Refusal("invalid_request", "'candidateCount' must be 1: a stub is one answer")
    model = text_of(body, "model")
    messages = list(_system(body.get("systemInstruction")))
    for at, written in enumerate(list_of(body.get("contents"), "contents", needed=True)):
        messages += _messages(written, f"contents[{at}]")
    choice = _tool_choice(body.get("toolConfig"))
    return LLMCall(
        name=model,
        provider="gemini",
        params={**params_of({**body, **config}, *_NOT_PARAMS), **({"tool_choice": choice} if choice else {})},
        messages=messages,
        tools=[tool for written in list_of(body.get("tools"), "tools") for tool in _tools(written)],
        response_format=_response_format(config),
    )


def _fields(written: Any) -> Json:
    """Return an object with the names of its fields, which may be in snake case, in camel case; empty for None."""
    return {_camel(key): value for key, value in written.items()} if isinstance(written, dict) else {}


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _parts(content: Json, param: str) -> list[Json]:
    return [_fields(part) for part in list_of(content.get("parts"), f"{param}.parts")]


def _content(parts: Sequence[Json], param: str) -> str | list[Any]:
    """Return the content of a message, without what the model only thought."""
    return content_of(typed([part for part in parts if part.get("thought") is not True]), param)


def _system(written: Any) -> Iterator[BaseMessage]:
    if isinstance(written, dict):
        yield message(
            "system",
            "systemInstruction",
            content=_content(_parts(written, "systemInstruction"), "systemInstruction"),
        )


def _messages(written: Json, param: str) -> Iterator[BaseMessage]:
    """Yield the messages of one content: the results of tools in it become separate messages."""
    parts = _parts(written, param)
    if written.get("role") == "model":
        calls = [_fields(part["functionCall"]) for part in parts if "functionCall" in part]
        said = _content([part for part in parts if "functionCall" not in part], param)
        yield ai_message(
            said, [(_id(call), str(call.get("name")), call.get("args") or {}) for call in calls], param
        )
        return
    results = [_fields(part["functionResponse"]) for part in parts if "functionResponse" in part]
    for result in results:
        name = str(result.get("name"))
        yield message(
            "tool", param, content=_result(result.get("response")), tool_call_id=_id(result), name=name
        )
    others = [part for part in parts if "functionResponse" not in part]
    if others or not results:
        yield message("user", param, content=_content(others, param))


def _id(call: Json) -> str:
    """Return the id of a call; without one, as from older clients, a call and its result have the tool's name."""
    return str(call.get("id") or call.get("name") or "")


def _result(response: Any) -> str:
    """Return what a tool returned, as text."""
    if isinstance(response, dict) and len(response) == 1:
        response = next((response[key] for key in _RESULT_KEYS if key in response), response)
    return response if isinstance(response, str) else compact(response)


def _tools(written: Json) -> Iterator[ToolSpec]:
    """Yield the functions of one item, and the tools that the provider runs, such as `googleSearch`."""
    for kind, given in _fields(written).items():
        if kind != "functionDeclarations":
            yield ToolSpec(kind, "", {})
            continue
        for function in map(_fields, list_of(given, "tools.functionDeclarations")):
            schema = function.get("parametersJsonSchema") or _plain_schema(function.get("parameters") or {})
            yield tool_spec({**function, "parameters": schema}, "parameters")


def _plain_schema(written: Any) -> Any:
    """Return a schema of Google's API as JSON Schema, whose types are in lower case."""
    if isinstance(written, list):
        return [_plain_schema(item) for item in written]
    if not isinstance(written, dict):
        return written
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else _plain_schema(value)
        for key, value in written.items()
    }


def _tool_choice(config: Any) -> Any:
    """Return which tool the model must call, as other providers' requests say it; None if it may choose."""
    calling = _fields(_fields(config).get("functionCallingConfig"))
    if calling.get("mode") != "ANY":
        return None
    allowed = calling.get("allowedFunctionNames")
    return {"type": "tool", "name": allowed[0]} if isinstance(allowed, list) and len(allowed) == 1 else "any"


def _response_format(config: Json) -> Any:
    schema = config.get("responseJsonSchema") or _plain_schema(config.get("responseSchema"))
    if schema:
        return schema_format(schema)
    return {"type": "json_object"} if config.get("responseMimeType") == "application/json" else None


def response_json(reply: Reply, body: Json) -> Json:
    """Return the response: see `WireFormat.response_json`."""
    texts = [{"text": reply.text}] if reply.text or not reply.calls else []
    return _response(reply, [*texts, *_calls(reply)], _finish(reply))


def events(reply: Reply, body: Json) -> Iterator[bytes]:
    """Yield the responses that add up to the whole one: see `WireFormat.events`."""
    texts: list[Json] = [{"text": piece} for piece in reply.pieces]
    parts = [*texts, *_calls(reply)] or [{"text": ""}]
    for part in parts[:-1]:
        yield event(_response(reply, [part]))
    yield event(_response(reply, parts[-1:], _finish(reply)))


def as_array(events: Iterator[bytes]) -> Iterator[bytes]:
    """Yield events as the items of an array: see `ARRAY`."""
    for number, each in enumerate(events):
        yield (b",\r\n" if number else b"[") + each.removeprefix(b"data: ").strip()
    yield b"]"


def _calls(reply: Reply) -> list[Json]:
    return [
        {"functionCall": {"id": call.id, "name": call.name, "args": json.loads(call.arguments)}}
        for call in reply.calls
    ]


def _response(reply: Reply, parts: list[Json], finish: str = "") -> Json:
    candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": 0}
    usage = {"promptTokenCount": reply.input_tokens}
    if finish:
        candidate["finishReason"] = finish
        total = reply.input_tokens + reply.output_tokens
        usage |= {"candidatesTokenCount": reply.output_tokens, "totalTokenCount": total}
    head = {"modelVersion": reply.model, "responseId": f"response-{reply.number}"}
    return {"candidates": [candidate], "usageMetadata": usage, **head}


def _finish(reply: Reply) -> str:
    reason = reply.finish_reason or "stop"
    return _FINISH.get(reason, reason if reason.isupper() else "STOP")


def error_json(refusal: Refusal) -> Json:
    """Return the body of an error: see `WireFormat.error_json`."""
    code = STATUS[refusal.kind]
    status = _ERRORS.get(code, "INVALID_ARGUMENT")
    return {"error": {"code": code, "message": str(refusal), "status": status}}


def answer(body: Json) -> LLMReply:
    """Return what a response says: see `WireFormat.answer`. One to a prompt that was blocked says nothing."""
    usage = tokens(
        body.get("usageMetadata"), "promptTokenCount", ("candidatesTokenCount", "thoughtsTokenCount")
    )
    blocked = (body.get("promptFeedback") or {}).get("blockReason")
    if blocked and not body.get("candidates"):
        return LLMReply("", (), usage, blocked)
    candidate = body["candidates"][0]
    parts = (candidate.get("content") or {}).get("parts") or []
    text = "".join(part.get("text") or "" for part in parts if not part.get("thought"))
    called = [part["functionCall"] for part in parts if "functionCall" in part]
    calls = [tool_call(call.get("id"), call["name"], call.get("args") or {}) for call in called]
    return LLMReply(text, calls, usage, candidate.get("finishReason"))


def joined(events: Sequence[Json]) -> Json:
    """Return the responses of a stream as one: see `WireFormat.joined`."""
    parts: list[Json] = []
    whole: Json = {}
    for each in events:
        for candidate in each.get("candidates", ())[:1]:
            parts += (candidate.get("content") or {}).get("parts") or ()
            whole["candidates"] = [{**candidate, "content": {"parts": parts}}]
        whole |= {key: each[key] for key in ("usageMetadata", "promptFeedback") if key in each}
    return whole
