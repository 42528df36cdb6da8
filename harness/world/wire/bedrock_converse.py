"""The wire format of Amazon Bedrock's Converse and ConverseStream.

Model and streaming are in the URL: see `harness.world.wire.http.request_json`. A streamed answer is binary messages
with lengths, headers and checksums; each is here an object with one field: the type of the event, with its payload.
Sources: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html,
https://smithy.io/2.0/aws/amazon-eventstream.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from struct import pack, unpack
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from harness.graph.effects import LLMCall, LLMReply, ToolSpec
from harness.graph.to_json import from_json
from harness.world.wire.format import (
    Framing,
    Json,
    Refusal,
    RefusalKind,
    Reply,
    ai_message,
    compact,
    content_of,
    list_of,
    message,
    object_of,
    params_of,
    schema_format,
    slices,
    text_of,
    tokens,
    tool_call,
    tool_spec,
    typed,
)

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

# ---------------------------------------------------------------- the framing of streamed answers

_PRELUDE: Final = 12
_CHECKSUM: Final = 4
_TEXT: Final = 7
"""The type of a header whose value is a text."""


def event(kind: str, payload: Json) -> bytes:
    """Return a message with an event."""
    named = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        pack(">B", len(name)) + name.encode() + pack(">BH", _TEXT, len(value)) + value.encode()
        for name, value in named.items()
    )
    body = compact(payload).encode()
    lengths = pack(">II", _PRELUDE + len(headers) + len(body) + _CHECKSUM, len(headers))
    written = lengths + pack(">I", crc32(lengths)) + headers + body
    return written + pack(">I", crc32(written))


def _events_in(stream: bytes) -> list[Json]:
    """Return the messages of a stream; an empty list for any other body."""
    found: list[Json] = []
    while len(stream) > _PRELUDE:
        total, size, checksum = unpack(">III", stream[:_PRELUDE])
        if checksum != crc32(stream[:8]):
            break
        headers, body = stream[_PRELUDE : _PRELUDE + size], stream[_PRELUDE + size : total - _CHECKSUM]
        named = _text_headers(headers)
        kind = named.get(":event-type") or named.get(":exception-type")
        if kind is not None:
            found.append({kind: json.loads(body)})
        stream = stream[total:]
    return found


def _text_headers(written: bytes) -> dict[str, str]:
    """Return the headers whose value is a text, up to the first other one."""
    named: dict[str, str] = {}
    while written:
        start = 1 + written[0]
        name, kind = written[1:start].decode(), written[start]
        if kind != _TEXT:
            break
        (size,) = unpack(">H", written[start + 1 : start + 3])
        named[name] = written[start + 3 : start + 3 + size].decode()
        written = written[start + 3 + size :]
    return named


def _damaged(part: bytes) -> bytes:
    """Return a message whose checksum is wrong."""
    return part[:-1] + bytes([part[-1] ^ 1])


framing: Final = Framing("application/vnd.amazon.eventstream", _events_in, _damaged)

# ---------------------------------------------------------------- requests and answers

statuses: Final[Mapping[RefusalKind, int]] = {"content_filter": 200, "auth": 403}

_NOT_PARAMS: Final = (
    *("model", "messages", "system", "stream"),
    *("toolConfig", "inferenceConfig", "outputConfig"),
)
_STOP: Final = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "content_filtered",
    "refusal": "content_filtered",
}
_ERRORS: Final[Mapping[RefusalKind, str]] = {
    "rate_limit": "ThrottlingException",
    "server_error": "InternalServerException",
    "exception": "InternalServerException",
    "auth": "UnrecognizedClientException",
    "not_found": "ResourceNotFoundException",
    "forbidden": "AccessDeniedException",
}


def read(body: Json) -> LLMCall:
    """Read a request: see `WireFormat.read`."""
    tools, config = object_of(body.get("toolConfig")), object_of(body.get("inferenceConfig"))
    model = text_of(body, "model")
    messages: list[BaseMessage] = []
    if system := list_of(body.get("system"), "system"):
        messages.append(message("system", "system", content=content_of(typed(system), "system")))
    for at, written in enumerate(list_of(body.get("messages"), "messages", needed=True)):
        messages += _messages(written, f"messages.{at}")
    choice = _tool_choice(object_of(tools.get("toolChoice")))
    return LLMCall(
        name=model,
        provider="bedrock",
        params={**params_of(body, *_NOT_PARAMS), **config, **({"tool_choice": choice} if choice else {})},
        messages=messages,
        tools=list(_tools(tools)),
        response_format=_response_format(body),
    )


def _messages(written: Json, param: str) -> Iterator[BaseMessage]:
    """Yield the messages of one item: results of tools in a user's message become separate messages."""
    blocks = list_of(written.get("content"), f"{param}.content")
    others = content_of(typed([b for b in blocks if not {"toolUse", "toolResult"} & b.keys()]), param)
    if written.get("role") == "assistant":
        used = [object_of(block["toolUse"]) for block in blocks if "toolUse" in block]
        calls = [(str(use.get("toolUseId")), str(use.get("name")), use.get("input")) for use in used]
        yield ai_message(others, calls, param)
        return
    results = [object_of(block["toolResult"]) for block in blocks if "toolResult" in block]
    for result in results:
        content = content_of(typed(list_of(result.get("content"), param)), param)
        status = "error" if result.get("status") == "error" else "success"
        yield message(
            "tool", param, content=content, tool_call_id=str(result.get("toolUseId")), status=status
        )
    if others or not results:
        yield message("user", param, content=others)


def _tools(config: Json) -> Iterator[ToolSpec]:
    for written in list_of(config.get("tools"), "toolConfig.tools"):
        if spec := object_of(written.get("toolSpec")):  # the others mark what is to be cached
            yield tool_spec({**spec, "schema": object_of(spec.get("inputSchema")).get("json")}, "schema")


def _tool_choice(choice: Json) -> Any:
    """Return which tool the model must call, as other providers' requests say it; None if it may choose."""
    if "tool" in choice:
        return {"type": "tool", "name": object_of(choice["tool"]).get("name")}
    return "any" if "any" in choice else None


def _response_format(body: Json) -> Any:
    wanted = object_of(object_of(body.get("outputConfig")).get("textFormat"))
    named = object_of(object_of(wanted.get("structure")).get("jsonSchema"))
    return schema_format(from_json(str(named.get("schema"))), str(named.get("name") or "")) if named else None


def response_json(reply: Reply, body: Json) -> Json:
    """Return the response: see `WireFormat.response_json`."""
    content: list[Json] = [{"text": reply.text}] if reply.text or not reply.calls else []
    for call in reply.calls:
        use = {"toolUseId": call.id, "name": call.name, "input": json.loads(call.arguments)}
        content.append({"toolUse": use})
    output = {"message": {"role": "assistant", "content": content}}
    return {"output": output, "stopReason": _stop(reply), **_figures(reply)}


def events(reply: Reply, body: Json) -> Iterator[bytes]:
    """Yield the events of the message, block by block: see `WireFormat.events`."""
    yield event("messageStart", {"role": "assistant"})
    for piece in reply.pieces:
        yield event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}})
    if reply.pieces:
        yield event("contentBlockStop", {"contentBlockIndex": 0})
    for at, call in enumerate(reply.calls, 1 if reply.pieces else 0):
        use = {"toolUse": {"toolUseId": call.id, "name": call.name}}
        yield event("contentBlockStart", {"contentBlockIndex": at, "start": use})
        for piece in slices(call.arguments):
            delta = {"toolUse": {"input": piece}}
            yield event("contentBlockDelta", {"contentBlockIndex": at, "delta": delta})
        yield event("contentBlockStop", {"contentBlockIndex": at})
    yield event("messageStop", {"stopReason": _stop(reply)})
    yield event("metadata", _figures(reply))


def _stop(reply: Reply) -> str:
    return reply.ending(_STOP, calls="tool_use", text="end_turn")


def _figures(reply: Reply) -> Json:
    sent, received = reply.input_tokens, reply.output_tokens
    usage = {"inputTokens": sent, "outputTokens": received, "totalTokens": sent + received}
    return {"usage": usage, "metrics": {"latencyMs": 0}}


def error_json(refusal: Refusal) -> Json:
    """Return the body of an error: see `WireFormat.error_json`."""
    return {"message": str(refusal), "__type": _ERRORS.get(refusal.kind, "ValidationException")}


def answer(body: Json) -> LLMReply:
    """Return what a response says: see `WireFormat.answer`."""
    blocks = body["output"]["message"]["content"]
    used = [block["toolUse"] for block in blocks if "toolUse" in block]
    calls = [tool_call(use.get("toolUseId"), use["name"], use.get("input")) for use in used]
    sent = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
    usage = tokens(body.get("usage"), sent, "outputTokens")
    return LLMReply(
        "".join(block.get("text") or "" for block in blocks), calls, usage, body.get("stopReason")
    )


def joined(events: Sequence[Json]) -> Json:
    """Return the events as a response: see `WireFormat.joined`."""
    blocks: dict[int, Json] = {}
    whole: Json = {}
    for each in events:
        ((kind, said),) = each.items()
        if kind in ("contentBlockStart", "contentBlockDelta"):
            block = blocks.setdefault(said["contentBlockIndex"], {"text": ""})
            part = said.get("start") or said.get("delta") or {}
            block["text"] += part.get("text", "")
            if "toolUse" in part:
                use = block.setdefault("toolUse", {"input": ""})
                use |= {**part["toolUse"], "input": use["input"] + part["toolUse"].get("input", "")}
        elif kind in ("messageStop", "metadata"):
            whole |= said
    return {**whole, "output": {"message": {"content": [*blocks.values()]}}}
