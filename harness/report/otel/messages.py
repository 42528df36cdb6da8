"""Messages of a trace in the format of the GenAI semantic conventions: `{role, parts: [{type, …}]}`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from harness.graph.narration import role_of

_FINISH: Final = {"tool_calls": "tool_call"}


def input_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert the messages sent to a model."""
    return [{"role": role_of(each), "parts": [*_parts(each)]} for each in messages]


def output_message(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert the reply of a model."""
    parts = [*_texts(reply.get("text")), *_tool_calls(reply)]
    return [{"role": "assistant", "parts": parts, "finish_reason": finish_reason(reply)}]


def plain_message(role: str, value: Any) -> list[dict[str, Any]]:
    """Convert a value that is no message: the input or output of a run."""
    from harness.report.encoding import encode

    part = {"type": "text", "content": value if isinstance(value, str) else encode(value)}
    message: dict[str, Any] = {"role": role, "parts": [part]}
    return [message | ({"finish_reason": "stop"} if role == "assistant" else {})]


def finish_reason(reply: Mapping[str, Any]) -> str:
    """Return the reason why a model stopped: the reported one, or one derived from the reply."""
    said = str(reply.get("finish_reason") or ("tool_calls" if reply.get("tool_calls") else "stop"))
    return _FINISH.get(said, said)


def _parts(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if message.get("type") == "tool":
        part = {"type": "tool_call_response", "id": message.get("tool_call_id")}
        yield part | {"response": message.get("content")}
        return
    yield from _texts(message.get("content"))
    yield from _tool_calls(message)


def _texts(content: Any) -> Iterator[dict[str, Any]]:
    """Yield the parts of message content: a text, or a list of texts and blocks."""
    for block in content if isinstance(content, list) else [content]:
        text = block.get("text") if isinstance(block, dict) else block
        if isinstance(text, str) and text:
            yield {"type": "text", "content": text}
        elif isinstance(block, dict) and text is None:
            yield {"type": str(block.get("type", "data")), "content": block}


def _tool_calls(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for call in message.get("tool_calls") or ():
        yield {
            "type": "tool_call",
            "id": call.get("id"),
            "name": call.get("name"),
            "arguments": call.get("args"),
        }
