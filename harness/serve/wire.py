"""What the wire formats of models have in common: a reply on its way out, refusals, and reading requests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from harness.graph.effects import LLMCall, LLMReply, ToolSpec
from harness.world.spec import ErrorKind

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

RefusalKind = ErrorKind | Literal["unscripted", "not_found", "too_large"]

STATUS: Final[Mapping[RefusalKind, int]] = {
    "rate_limit": 429,
    "server_error": 500,
    "auth": 401,
    "invalid_request": 400,
    "context_length": 400,
    "content_filter": 400,
    "exception": 500,
    "unscripted": 400,  # a status that clients do not retry
    "not_found": 404,
    "too_large": 413,
}

Json = dict[str, Any]


class Refusal(Exception):
    """A request that is answered with an error. `param` names the part of the request that is wrong."""

    def __init__(self, kind: RefusalKind, message: str, *, param: str | None = None) -> None:
        self.kind: RefusalKind = kind
        self.param = param
        super().__init__(message)

    @property
    def status(self) -> int:
        """The HTTP status it is sent with."""
        return STATUS[self.kind]


@dataclass(frozen=True)
class ToolRequest:
    """A tool call of a reply; `arguments` is JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """A model's answer as every wire format has it. `pieces` are what its text is streamed in."""

    number: int
    model: str
    text: str
    pieces: tuple[str, ...]
    calls: tuple[ToolRequest, ...]
    finish_reason: str | None
    input_tokens: int
    output_tokens: int


class Wire(Protocol):
    """A provider's wire format; each is a module."""

    def read(self, body: Json) -> LLMCall:
        """The request as an effect.

        Raises:
            Refusal: it is not as the provider wants it.
        """
        ...

    def whole(self, reply: Reply, body: Json) -> Json:
        """The answer in one piece."""
        ...

    def events(self, reply: Reply, body: Json) -> Iterator[str]:
        """The answer as server-sent events."""
        ...

    def error(self, refusal: Refusal) -> Json:
        """The body of an error."""
        ...


def compact(value: Any) -> str:
    """JSON in ASCII, so that any text a client or a stub gave can be sent."""
    return json.dumps(value, separators=(",", ":"), default=str)


def event(data: Mapping[str, Any], name: str = "") -> str:
    """One server-sent event."""
    return (f"event: {name}\n" if name else "") + f"data: {compact(data)}\n\n"


# ---------------------------------------------------------------- replies


def reply_to(call: LLMCall, said: LLMReply, number: int, new_call_id: Callable[[], str]) -> Reply:
    """The reply to a call. Usage that the stub does not give is a count of words."""
    calls = tuple(
        ToolRequest(one.get("id") or new_call_id(), one["name"], compact(dict(one.get("args") or {})))
        for one in said.tool_calls
    )
    answer_words = words(said.text) + sum(words(f"{one.name} {one.arguments}") for one in calls)
    return Reply(
        number=number,
        model=call.name,
        text=said.text,
        pieces=tuple(said.chunks) or tuple(pieces(said.text)),
        calls=calls,
        finish_reason=said.finish_reason,
        input_tokens=said.usage.get("input_tokens", _asked_words(call)),
        output_tokens=said.usage.get("output_tokens", answer_words),
    )


def _asked_words(call: LLMCall) -> int:
    from harness.graph.messages import message_text

    return sum(words(message_text(message)) for message in call.messages)


def words(text: str) -> int:
    """A rough count of tokens."""
    return len(text.split())


def pieces(text: str, most: int = 4) -> Iterator[str]:
    """The text in at most that many pieces of whole words; nothing for an empty text."""
    parts = re.findall(r"\S+\s*|\s+", text)
    size = max(1, -(-len(parts) // most))
    for start in range(0, len(parts), size):
        yield "".join(parts[start : start + size])


def slices(text: str, most: int = 4) -> Iterator[str]:
    """The text in at most that many pieces, cut anywhere."""
    size = max(1, -(-len(text) // most))
    for start in range(0, len(text), size):
        yield text[start : start + size]


# ---------------------------------------------------------------- reading


def text_of(body: Mapping[str, Any], key: str) -> str:
    """A text the request must have.

    Raises:
        Refusal: it is missing, or no text.
    """
    value = body.get(key)
    if not isinstance(value, str) or not value:
        raise Refusal("invalid_request", f"'{key}' must be a text that is not empty", param=key)
    return value


def list_of(value: Any, param: str, *, needed: bool = False) -> list[Json]:
    """A list of mappings; an empty one when there is none, unless it is `needed`.

    Raises:
        Refusal: it is something else.
    """
    if value is None and not needed:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Refusal("invalid_request", f"'{param}' must be a list of objects", param=param)
    if needed and not value:
        raise Refusal("invalid_request", f"'{param}' is empty", param=param)
    return value


def content_of(value: Any, param: str) -> str | list[Any]:
    """The content of a message: parts that are all text become one text, as matchers want it.

    Raises:
        Refusal: it is neither a text nor a list of parts.
    """
    if value is None or isinstance(value, str):
        return value or ""
    parts = list_of(value, param)
    texts = [part.get("text") for part in parts if part.get("type") in ("text", "input_text", "output_text")]
    if len(texts) == len(parts) and all(isinstance(text, str) for text in texts):
        return "".join(map(str, texts))
    return list(parts)


def message(param: str, make: Callable[[], BaseMessage]) -> BaseMessage:
    """A LangChain message.

    Raises:
        Refusal: LangChain does not take it.
    """
    from pydantic import ValidationError

    try:
        return make()
    except (ValidationError, TypeError, ValueError) as error:
        first = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise Refusal("invalid_request", f"'{param}' is no message: {first}", param=param) from None


def ai_message(content: str | list[Any], calls: Sequence[tuple[str, str, Any]], param: str) -> BaseMessage:
    """A model's message; `calls` are (id, name, arguments), arguments as JSON or as a mapping."""
    from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall

    good: list[ToolCall] = []
    bad: list[InvalidToolCall] = []
    for call_id, name, given in calls:
        args = _parsed(given) if isinstance(given, str) else given
        if isinstance(args, dict):
            good.append(ToolCall(name=name, args=args, id=call_id, type="tool_call"))
        else:
            told = str(given)
            bad.append(
                InvalidToolCall(name=name, args=told, id=call_id, error=None, type="invalid_tool_call")
            )
    return message(param, lambda: AIMessage(content=content, tool_calls=good, invalid_tool_calls=bad))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None


def tool_spec(said: Mapping[str, Any], schema_key: str) -> ToolSpec:
    """A tool a model is offered. One that the provider runs itself has its type for a name, and no schema."""
    schema = said.get(schema_key)
    name = said.get("name") or said.get("type") or ""
    return ToolSpec(str(name), str(said.get("description") or ""), schema if isinstance(schema, dict) else {})


def params_of(body: Mapping[str, Any], *apart: str) -> Json:
    """What the request says beside its parts: temperature, top_p, …"""
    return {key: value for key, value in body.items() if key not in apart and value is not None}
