"""The chat completions of Mistral and Groq: OpenAI's, but a stream has whole tool calls, and the usage at its end.

Sources: https://docs.mistral.ai/api/, https://console.groq.com/docs/api-reference
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.world.wire import openai_chat
from harness.world.wire.format import Json, Reply, event

read, response_json, answer = openai_chat.read, openai_chat.response_json, openai_chat.answer
error_json, joined = openai_chat.error_json, openai_chat.joined
framing, statuses = openai_chat.framing, openai_chat.statuses


def events(reply: Reply, body: Json) -> Iterator[bytes]:
    """Yield the chunks: role, pieces of the text, and the last one with tool calls, finish reason and usage."""
    whole = response_json(reply, body)
    (ended,) = whole["choices"]
    head = {"object": "chat.completion.chunk", **{key: whole[key] for key in ("id", "created", "model")}}

    def chunk(delta: Json, finish_reason: str | None = None, **more: Any) -> bytes:
        return event(
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}], **more}
        )

    yield chunk({"role": "assistant", "content": ""})
    for piece in reply.pieces:
        yield chunk({"content": piece})
    calls = [{"index": at, **call} for at, call in enumerate(ended["message"].get("tool_calls", ()))]
    last: Json = {"content": "", **({"tool_calls": calls} if calls else {})}
    # Groq has the usage in a field of its own.
    yield chunk(last, ended["finish_reason"], usage=whole["usage"], x_groq={"usage": whole["usage"]})
    yield b"data: [DONE]\n\n"
