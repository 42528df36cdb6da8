"""Live models and MCP servers: what they answer, and what they were asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.world.loopback import CannedReply, ReceivedRequest

Live = Callable[..., list[ReceivedRequest]]
Call = tuple[str, Mapping[str, Any]]


def says(text: str | None = "done", *calls: Call) -> CannedReply:
    """An answer of OpenAI's chat completions."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"call-{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
            for n, (name, args) in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return CannedReply(json={**head, "choices": [choice]})


def streams(text: str) -> CannedReply:
    """The same, in parts."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
    return CannedReply(events=[{**head, "choices": choices}, "[DONE]"])


def claude_says(text: str) -> CannedReply:
    """An answer of Anthropic's messages."""
    return CannedReply(
        json={
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )


def body(asked: ReceivedRequest) -> dict[str, Any]:
    """Return the body of the request, without `stream: false`."""
    found: dict[str, Any] = asked.json
    return {key: value for key, value in found.items() if (key, value) != ("stream", False)}


def function(name: str, description: str, **parameters: Any) -> dict[str, Any]:
    """A tool as OpenAI is told of it."""
    told = {"name": name, "description": description, "parameters": {"type": "object", **parameters}}
    return {"type": "function", "function": told}


def said_by_tools(asked: ReceivedRequest) -> list[Any]:
    return [message["content"] for message in asked.json["messages"] if message["role"] == "tool"]


LIBRARY = {
    "library": {
        "tools": [
            {
                "name": "find",
                "description": "Finds books",
                "input_schema": {
                    "title": "findArguments",
                    "properties": {
                        "author": {"title": "Author", "type": "string"},
                        "query": {"anyOf": [{"$ref": "#/$defs/Query"}, {"type": "null"}], "default": None},
                    },
                    "required": ["author"],
                    "$defs": {"Query": {"type": "object", "properties": {"limit": {"type": "integer"}}}},
                },
                "stubs": [
                    {"args": {"author": "Le Guin"}, "return": "The Dispossessed"},
                    {"error": {"kind": "exception", "message": "the catalogue is closed"}},
                ],
            },
            {
                "name": "cover",
                "stubs": [
                    {
                        "content": [
                            {"type": "image", "data": "aWNv", "mimeType": "image/png"},
                            {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
                        ]
                    }
                ],
            },
        ]
    }
}
