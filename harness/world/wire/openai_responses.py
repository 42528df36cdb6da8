"""The wire format of OpenAI's Responses API.

Responses are not stored: `previous_response_id` is ignored, and stubs see only the messages of the request.
Source: https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness.graph.effects import LLMCall, LLMReply
from harness.world.wire import openai_chat
from harness.world.wire.format import (
    Json,
    Reply,
    ai_message,
    content_of,
    event,
    list_of,
    message,
    object_of,
    openai_message,
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

_NOT_PARAMS: Final = ("model", "input", "instructions", "tools", "text", "stream", "stream_options")
_INCOMPLETE: Final = {
    "length": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}

error_json, framing, statuses = openai_chat.error_json, openai_chat.framing, openai_chat.statuses


def read(body: Json) -> LLMCall:
    """Read a request: see `WireFormat.read`."""
    return LLMCall(
        name=text_of(body, "model"),
        provider="openai",
        params=params_of(body, *_NOT_PARAMS),
        messages=list(_messages(body)),
        tools=[tool_spec(written, "parameters") for written in list_of(body.get("tools"), "tools")],
        response_format=_response_format(body.get("text")),
    )


def _response_format(written: Any) -> Any:
    """Return the response format as Chat Completions have it, so that one condition of a stub matches both."""
    wanted = object_of(written).get("format")
    if not isinstance(wanted, dict) or wanted.get("type") != "json_schema":
        return wanted
    return {"type": "json_schema", "json_schema": {k: v for k, v in wanted.items() if k != "type"}}


def _messages(body: Json) -> Iterator[BaseMessage]:
    instructions, given = body.get("instructions"), body.get("input")
    if instructions:
        text = content_of(instructions, "instructions")
        yield message("system", "instructions", content=text)
    if isinstance(given, str):
        yield message("user", "input", content=given)
    else:
        yield from _items(list_of(given, "input", needed=True))


def _items(items: list[Json]) -> Iterator[BaseMessage]:
    """Yield the messages of a list of items. A model's text and the calls after it are one message."""
    written: str | list[Any] = ""
    calls: list[tuple[str, str, Any]] = []
    speaking = False
    for at, item in enumerate(items):
        param, kind = f"input[{at}]", item.get("type", "message")
        if kind == "function_call":
            calls.append((str(item.get("call_id") or ""), str(item.get("name") or ""), item.get("arguments")))
            speaking = True
            continue
        if kind not in ("message", "function_call_output"):  # reasoning, and tools that providers run
            continue
        if speaking:
            yield ai_message(written, calls, param)
            written, calls, speaking = "", [], False
        if kind == "function_call_output":
            output = content_of(item.get("output"), f"{param}.output")
            yield message("tool", param, content=output, tool_call_id=str(item.get("call_id") or ""))
        elif item.get("role") == "assistant":
            written, speaking = content_of(item.get("content"), f"{param}.content"), True
        else:
            content = content_of(item.get("content"), f"{param}.content")
            yield openai_message(item.get("role"), content, param, "assistant")
    if speaking:
        yield ai_message(written, calls, "input")


def response_json(reply: Reply, body: Json) -> Json:
    """Return the response: see `WireFormat.response_json`."""
    return _response(reply, _output(reply), ended=True)


def events(reply: Reply, body: Json) -> Iterator[bytes]:
    """Yield the events of the response, item by item: see `WireFormat.events`."""
    for number, each in enumerate(_events(reply)):
        yield event({**each, "sequence_number": number}, each["type"])


def _events(reply: Reply) -> Iterator[Json]:
    """Yield the events without their sequence numbers."""
    begun = _response(reply, [], ended=False)
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(_output(reply)):
        is_text = item["type"] == "message"
        empty: Json = {"content": []} if is_text else {"arguments": ""}
        added = {**item, **empty, "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": added}
        yield from _text_parts(reply, item, index) if is_text else _argument_parts(item, index)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    done = _response(reply, _output(reply), ended=True)
    yield {"type": f"response.{done['status']}", "response": done}


def _text_parts(reply: Reply, item: Json, index: int) -> Iterator[Json]:
    at: Json = {"item_id": item["id"], "output_index": index, "content_index": 0}
    (part,) = item["content"]
    yield {"type": "response.content_part.added", "part": {**part, "text": ""}, **at}
    for piece in reply.pieces:
        yield {"type": "response.output_text.delta", "delta": piece, "logprobs": [], **at}
    yield {"type": "response.output_text.done", "text": reply.text, "logprobs": [], **at}
    yield {"type": "response.content_part.done", "part": part, **at}


def _argument_parts(item: Json, index: int) -> Iterator[Json]:
    at: Json = {"item_id": item["id"], "output_index": index}
    for piece in slices(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", "delta": piece, **at}
    done: Json = {"name": item["name"], "arguments": item["arguments"]}
    yield {"type": "response.function_call_arguments.done", **done, **at}


def _output(reply: Reply) -> list[Json]:
    output: list[Json] = []
    if reply.text or not reply.calls:
        text = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        head: Json = {"id": f"msg_{reply.number}", "type": "message", "status": "completed"}
        output.append({**head, "role": "assistant", "content": [text]})
    output += [
        {
            "id": f"fc_{call.id}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }
        for call in reply.calls
    ]
    return output


def _response(reply: Reply, output: list[Json], *, ended: bool) -> Json:
    incomplete = _INCOMPLETE.get(reply.finish_reason or "") if ended else None
    return {
        "id": f"resp_{reply.number}",
        "object": "response",
        "created_at": 0,  # no clock: the same requests get the same answers
        "status": ("incomplete" if incomplete else "completed") if ended else "in_progress",
        "error": None,
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "instructions": None,
        "metadata": {},
        "model": reply.model,
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "temperature": None,
        "top_p": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(reply) if ended else None,
    }


def _usage(reply: Reply) -> Json:
    return {
        "input_tokens": reply.input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": reply.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }


def answer(body: Json) -> LLMReply:
    """Return what a response says: see `WireFormat.answer`."""
    items = body["output"]
    calls = [
        tool_call(item.get("call_id"), item["name"], item["arguments"])
        for item in items
        if item["type"] == "function_call"
    ]
    text = "".join(text_in(item["content"]) for item in items if item["type"] == "message")
    ended = (body.get("incomplete_details") or {}).get("reason") or body.get("status")
    return LLMReply(text, calls, tokens(body.get("usage"), "input_tokens", "output_tokens"), ended)


def joined(events: Sequence[Json]) -> Json:
    """Return the response in the last event that has it: see `WireFormat.joined`."""
    whole: Json = [event["response"] for event in events if "response" in event][-1]
    return whole
