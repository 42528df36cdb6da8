"""A model's reply, common to all wire formats: its text in pieces for streaming, its tool calls, its tokens."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from harness.graph.effects import LLMCall, LLMReply

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True)
class ToolRequest:
    """A tool call in a reply. `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """A model's reply.

    number  counts the replies of its provider, from 1
    pieces  the pieces in which the text is streamed
    """

    number: int
    model: str
    text: str
    pieces: tuple[str, ...]
    calls: tuple[ToolRequest, ...]
    finish_reason: str | None
    input_tokens: int
    output_tokens: int


class ReplyFactory:
    """Makes the replies of one server or run. They are numbered, so that the same requests get the same ids."""

    def __init__(self) -> None:
        self._numbers: Counter[str] = Counter()
        self._calls = count(1)

    def make(self, call: LLMCall, answer: LLMReply) -> Reply:
        """Return the reply to a call. Without usage in the stub, tokens are counted as words."""
        calls = tuple(
            ToolRequest(
                one.get("id") or f"call_{next(self._calls)}",
                one["name"],
                compact(dict(one.get("args") or {})),
            )
            for one in answer.tool_calls
        )
        answer_words = word_count(answer.text) + sum(
            word_count(f"{one.name} {one.arguments}") for one in calls
        )
        self._numbers[call.provider] += 1
        return Reply(
            number=self._numbers[call.provider],
            model=call.name,
            text=answer.text,
            pieces=tuple(answer.chunks) or tuple(pieces(answer.text)),
            calls=calls,
            finish_reason=answer.finish_reason,
            input_tokens=answer.usage.get("input_tokens", _request_words(call)),
            output_tokens=answer.usage.get("output_tokens", answer_words),
        )


def compact(value: Any) -> str:
    """Return compact JSON in ASCII, so that any text of a client or a stub can be sent."""
    return json.dumps(value, separators=(",", ":"), default=str)


def to_wire(model: BaseModel) -> dict[str, Any]:
    """Return an instance of a provider's type as JSON, with only the fields that were set."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)


def event(data: Mapping[str, Any], name: str = "") -> str:
    """Return a server-sent event."""
    return (f"event: {name}\n" if name else "") + f"data: {compact(data)}\n\n"


def _request_words(call: LLMCall) -> int:
    from harness.graph.messages import message_text

    return sum(word_count(message_text(message)) for message in call.messages)


def word_count(text: str) -> int:
    """Return the number of words, as an estimate of tokens."""
    return len(text.split())


def pieces(text: str, most: int = 4) -> Iterator[str]:
    """Yield the text in at most `most` pieces of whole words; nothing for an empty text."""
    parts = re.findall(r"\S+\s*|\s+", text)
    size = max(1, -(-len(parts) // most))
    for start in range(0, len(parts), size):
        yield "".join(parts[start : start + size])


def slices(text: str) -> Iterator[str]:
    """Yield the text in at most four pieces, split at any character."""
    size = max(1, -(-len(text) // 4))
    for start in range(0, len(text), size):
        yield text[start : start + size]
