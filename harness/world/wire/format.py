"""The interface of a provider's wire format: reads requests as effects, writes answers and errors as bodies."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol
from weakref import WeakValueDictionary

from harness.graph.effects import LLMCall, LLMReply, ToolSpec
from harness.graph.to_json import from_json
from harness.world.failures import ErrorKind

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


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

    def ending(self, names: Mapping[str, str], *, calls: str, text: str) -> str:
        """Return the reason for which the reply ends, under a provider's name for it.

        Without one in the stub, it is `calls` if tools are called, else `text`.
        """
        if self.finish_reason is None:
            return calls if self.calls else text
        return names.get(self.finish_reason, self.finish_reason)


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


Json = dict[str, Any]


@dataclass(frozen=True)
class Framing:
    """The form in which the parts of a streamed answer follow each other.

    parts  returns the JSON of each part of a body; an empty list if the body is not a stream
    cut    returns a part that cannot be read
    """

    content_type: str
    parts: Callable[[bytes], list[Json]]
    cut: Callable[[bytes], bytes] = lambda part: part[: len(part) // 2] + b"\n\n"


_DATA: Final = "data:"


def event(data: Mapping[str, Any], name: str = "") -> bytes:
    """Return a server-sent event."""
    return ((f"event: {name}\n" if name else "") + f"{_DATA} {compact(data)}\n\n").encode()


def _events_in(body: bytes) -> list[Json]:
    lines = body.decode("utf-8", "replace").splitlines()
    data = [line.removeprefix(_DATA).strip() for line in lines if line.startswith(_DATA)]
    return [json.loads(each) for each in data if each != "[DONE]"]


SERVER_SENT: Final = Framing("text/event-stream; charset=utf-8", _events_in)
"""Server-sent events."""


def tool_call(call_id: Any, name: str, arguments: Any) -> Json:
    """Return a tool call of an answer. `arguments` is JSON text, or what it means.

    Raises:
        ValueError: the arguments are not a JSON object.
    """
    args = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    if not isinstance(args, dict):
        raise ValueError(f"the arguments of tool {name!r} are not a JSON object")
    return {"id": str(call_id or ""), "name": name, "args": args}


def function_calls(said: Mapping[str, Any]) -> list[Json]:
    """Return the tool calls of an answer that has them as OpenAI's chat completions have.

    Raises:
        LookupError, TypeError, ValueError: they are no such calls.
    """
    return [
        tool_call(call.get("id"), call["function"]["name"], call["function"]["arguments"])
        for call in said.get("tool_calls") or ()
    ]


def tokens(usage: Any, sent: str | tuple[str, ...], received: str | tuple[str, ...]) -> dict[str, int]:
    """Return the usage of an answer under our names; empty if none was reported. Several figures are added."""
    if not isinstance(usage, dict):
        return {}
    figures = [(names,) if isinstance(names, str) else names for names in (sent, received)]
    added = [sum(usage.get(name) or 0 for name in names) for names in figures]
    return dict(zip(("input_tokens", "output_tokens"), added, strict=True))


def text_in(content: Any) -> str:
    """Return the text of an answer's content: a text, or blocks of which some are texts."""
    if isinstance(content, list):
        return "".join(block.get("text") or "" for block in content if isinstance(block, dict))
    return content or ""


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


RefusalKind = ErrorKind | Literal["unscripted", "not_found", "forbidden", "too_large"]

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
    "forbidden": 403,
    "too_large": 413,
}


class Refusal(Exception):
    """A request that is answered with an error. `param` names the part of the request that is invalid."""

    def __init__(self, kind: RefusalKind, message: str, *, param: str | None = None) -> None:
        self.kind: RefusalKind = kind
        self.param = param
        super().__init__(message)

    @property
    def status(self) -> int:
        """The HTTP status of the error."""
        return STATUS[self.kind]


class WireFormat(Protocol):
    """A provider's wire format. Each is a module."""

    def read(self, body: Json) -> LLMCall:
        """Return a request as an effect.

        Raises:
            Refusal: the provider would refuse it.
        """
        ...

    def response_json(self, reply: Reply, body: Json) -> Json:
        """Return the body of an answer that is not streamed."""
        ...

    def events(self, reply: Reply, body: Json) -> Iterator[bytes]:
        """Yield the parts of a streamed answer."""
        ...

    @property
    def framing(self) -> Framing:
        """The form in which these parts follow each other."""
        ...

    @property
    def statuses(self) -> Mapping[RefusalKind, int]:
        """The statuses of errors that differ from `STATUS`. One of 200 is an answer with that finish reason."""
        ...

    def error_json(self, refusal: Refusal) -> Json:
        """Return the body of an error."""
        ...

    def answer(self, body: Json) -> LLMReply:
        """Return what the body of a provider's answer says; the inverse of `response_json`.

        Raises:
            LookupError, TypeError, ValueError, AttributeError: it is not such an answer.
        """
        ...

    def joined(self, events: Sequence[Json]) -> Json:
        """Return the events of a streamed answer as the body of one that is not."""
        ...


def text_of(body: Mapping[str, Any], key: str) -> str:
    """Return a required text of a request.

    Raises:
        Refusal: it is missing, empty, or not a text.
    """
    value = body.get(key)
    if not isinstance(value, str) or not value:
        raise Refusal("invalid_request", f"'{key}' must be a text that is not empty", param=key)
    return value


def list_of(value: Any, param: str, *, needed: bool = False) -> list[Json]:
    """Return a list of mappings; an empty list for None, unless it is `needed`.

    Raises:
        Refusal: the value is anything else, or an empty list that is needed.
    """
    if value is None and not needed:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Refusal("invalid_request", f"'{param}' must be a list of objects", param=param)
    if needed and not value:
        raise Refusal("invalid_request", f"'{param}' is empty", param=param)
    return value


def object_of(value: Any) -> Json:
    """Return a part of a request that is an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def typed(parts: Sequence[Json]) -> list[Json]:
    """Return the parts of a message that have their type as their first name, as those of other providers."""
    return [{"type": "text" if "text" in part else next(iter(part), ""), **part} for part in parts]


def content_of(value: Any, param: str) -> str | list[Any]:
    """Return the content of a message. Parts that are all text are joined to one text, which matchers can compare.

    Raises:
        Refusal: the content is neither a text nor a list of parts.
    """
    if value is None or isinstance(value, str):
        return value or ""
    parts = list_of(value, param)
    texts = [part.get("text") for part in parts if part.get("type") in ("text", "input_text", "output_text")]
    if len(texts) == len(parts) and all(isinstance(text, str) for text in texts):
        return "".join(map(str, texts))
    return list(parts)


@cache
def _message_classes() -> tuple[dict[str, type[BaseMessage]], type[Any]]:
    """Import LangChain's messages, by kind, and the error of those that are invalid, a ValueError."""
    from langchain_core import messages
    from pydantic import ValidationError

    classes: dict[str, type[BaseMessage]] = {
        "system": messages.SystemMessage,
        "user": messages.HumanMessage,
        "assistant": messages.AIMessage,
        "tool": messages.ToolMessage,
    }
    return classes, ValidationError


def message(
    kind: Literal["system", "user", "assistant", "tool"], param: str, /, **fields: Any
) -> BaseMessage:
    """Return a LangChain message with these fields.

    Raises:
        Refusal: LangChain does not accept them.
    """
    return _shared((kind, *fields.items()), partial(_made, kind, param, fields))


_alive: Final[WeakValueDictionary[Hashable, BaseMessage]] = WeakValueDictionary()


def _shared(content: Hashable, make: Callable[[], BaseMessage]) -> BaseMessage:
    """Return a message with this content, which must not be changed: the one that there is, or a new one.

    Each request of a conversation repeats its messages, and a trace keeps all requests.
    """
    try:
        found = _alive.get(content)
    except TypeError:  # it has parts, or arguments, that are no texts
        return make()
    if found is None:
        found = _alive[content] = make()
    return found


def _made(kind: str, param: str, fields: Mapping[str, Any]) -> BaseMessage:
    classes, invalid = _message_classes()
    try:
        return classes[kind](**fields)
    except (TypeError, ValueError) as error:
        first = error.errors()[0]["msg"] if isinstance(error, invalid) else str(error)
        raise Refusal("invalid_request", f"'{param}' is not a message: {first}", param=param) from None


def ai_message(content: str | list[Any], calls: Sequence[tuple[str, str, Any]], param: str) -> BaseMessage:
    """Return a model's message. `calls` are (id, name, arguments), with arguments as JSON or as a mapping.

    Raises:
        Refusal: LangChain does not accept it.
    """
    return _shared(("assistant", content, *calls), partial(_ai_message, content, calls, param))


def _ai_message(content: str | list[Any], calls: Sequence[tuple[str, str, Any]], param: str) -> BaseMessage:
    from langchain_core.messages import InvalidToolCall, ToolCall

    good: list[ToolCall] = []
    bad: list[InvalidToolCall] = []
    for call_id, name, given in calls:
        args = from_json(given or "{}") if isinstance(given, str) else given
        if isinstance(args, dict):
            good.append(ToolCall(name=name, args=args, id=call_id, type="tool_call"))
        else:
            text = str(given)
            bad.append(
                InvalidToolCall(name=name, args=text, id=call_id, error=None, type="invalid_tool_call")
            )
    fields = {"content": content, "tool_calls": good, "invalid_tool_calls": bad}
    return _made("assistant", param, fields)


def openai_message(
    role: Any, content: str | list[Any], param: str, others: str, **fields: Any
) -> BaseMessage:
    """Return a message of the user or the system in a request to OpenAI.

    Raises:
        Refusal: the role is another one; the text also names the `others` that the request may have.
    """
    if role in ("system", "developer"):
        return message("system", param, content=content, **fields)
    if role == "user":
        return message("user", param, content=content, **fields)
    known = f"system, developer, user, {others}"
    raise Refusal("invalid_request", f"'{param}.role' is {role!r}; there are {known}", param=f"{param}.role")


def tool_spec(written: Mapping[str, Any], schema_key: str) -> ToolSpec:
    """Return a tool offered to a model. A tool that the provider runs has its type as its name, and no schema."""
    schema = written.get(schema_key)
    name = written.get("name") or written.get("type") or ""
    return ToolSpec(
        str(name), str(written.get("description") or ""), schema if isinstance(schema, dict) else {}
    )


def schema_format(schema: Any, name: str = "") -> Json:
    """Return the response format that asks for a JSON Schema, in the form of OpenAI's chat completions."""
    named = name or (schema.get("title") if isinstance(schema, dict) else "") or "answer"
    return {"type": "json_schema", "json_schema": {"name": named, "schema": schema}}


def params_of(body: Mapping[str, Any], *excluded: str) -> Json:
    """Return the parameters of a request, such as temperature and top_p: all keys that are not `excluded`."""
    return {key: value for key, value in body.items() if key not in excluded and value is not None}
