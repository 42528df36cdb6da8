"""Data model of a scenario's world: stubs, servers, faults.

The scenario loader builds it; `ScriptedWorld` answers from it. Terms are those of docs/scenario-format.md ("The
world").
"""

from __future__ import annotations

import builtins
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.errors import Span, WorldError
from harness.graph.effects import Answer, HTTPReply, LLMReply, RetrievalReply
from harness.graph.to_json import compact_json, from_json
from harness.source.display import clip

ErrorKind = Literal[
    "rate_limit",
    "timeout",
    "connection",
    "server_error",
    "auth",
    "invalid_request",
    "context_length",
    "content_filter",
    "malformed",
    "exception",
]
Times = int | Literal["any"]


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """An error instead of an answer.

    message        None for the default text of the kind
    type           the name of the exception, for the kind `exception`
    retry_after_s  sent as a header if the answer is an HTTP response; not used for effects of an agent
    """

    kind: ErrorKind
    message: str | None = None
    type: str | None = None
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stub:
    """One scripted answer, and the calls it applies to.

    nodes   globs that must all match the calling node: the key of a mapping by node, and the stub's own `node`
    args    None matches any arguments
    answer  the answer keys of the stub's kind as written: llm {reply | json | tool_calls | chunks, usage,
            finish_reason}; tools, handlers, agents, scripts and retrieval {return}; mcp {return | content};
            http {status, json | text, headers}; human {reply}
    """

    span: Span | None = None
    nodes: tuple[str, ...] = ()
    model: str | None = None
    method: str | None = None
    url: str | None = None
    args: Mapping[str, Any] | None = None
    when: str | None = None
    times: Times = 1
    latency_s: float = 0.0
    error: ErrorAnswer | None = None
    answer: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """The source of answers for one tool, handler, agent, script or retrieval: the real thing, or stubs.

    real  True for the callable that the manifest names, a text for the dotted path of another, False for `stubs`
    """

    real: bool | str = False
    stubs: tuple[Stub, ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class MCPToolSpec:
    """A tool of a scripted MCP server. `input_schema` is JSON Schema (2020-12)."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    stubs: tuple[Stub, ...] = ()


@dataclass(frozen=True, slots=True)
class MCPServerSpec:
    """An MCP server: the real one, or a scripted one. `latency_s` (virtual) is added to every call."""

    real: bool = False
    tools: tuple[MCPToolSpec, ...] = ()
    latency_s: float = 0.0
    error: ErrorAnswer | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """An injected fault.

    One of `nth`, `every` and `rate` selects calls; `error`, `latency_s` and `truncate` act on them.
    """

    effect: Literal["llm", "tool", "mcp", "http", "script", "agent"]
    node: str | None = None
    name: str | None = None
    nth: int | None = None
    every: int | None = None
    rate: float | None = None
    error: ErrorAnswer | None = None
    latency_s: float | None = None
    truncate: int | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """The world of a scenario. Mappings are by the name of the tool, server, script and so on."""

    llm: tuple[Stub, ...] = ()
    tools: Mapping[str, Entry] = field(default_factory=dict)
    mcp: Mapping[str, MCPServerSpec] = field(default_factory=dict)
    http: tuple[Stub, ...] = ()
    scripts: Mapping[str, Entry] = field(default_factory=dict)
    handlers: Mapping[str, Entry] = field(default_factory=dict)
    agents: Mapping[str, Entry] = field(default_factory=dict)
    retrieval: Mapping[str, Entry] = field(default_factory=dict)
    human: tuple[Stub, ...] = ()
    hooks: tuple[str, ...] = ()
    faults: tuple[FaultSpec, ...] = ()


class RemoteError(Exception):
    """Base class of the errors of models, tools and servers. `kind` is the error's name in scenarios."""

    kind = ""


class RateLimitError(RemoteError):
    """Too many requests."""


class APITimeoutError(RemoteError, TimeoutError):
    """No answer within the time limit."""


class APIConnectionError(RemoteError, ConnectionError):
    """The server cannot be reached."""


class InternalServerError(RemoteError):
    """The server failed."""


class AuthenticationError(RemoteError):
    """The credentials were refused."""


class BadRequestError(RemoteError):
    """The request was refused."""


class ContextLengthError(BadRequestError):
    """The prompt is longer than the model's context."""


class ContentFilterError(RemoteError):
    """The answer was blocked by a content filter."""


class MalformedAnswerError(RemoteError):
    """The answer cannot be parsed."""


KINDS: dict[str, tuple[type[RemoteError], str]] = {
    "rate_limit": (RateLimitError, "429 rate limit exceeded"),
    "timeout": (APITimeoutError, "request timed out"),
    "connection": (APIConnectionError, "Connection refused"),
    "server_error": (InternalServerError, "500 internal server error"),
    "auth": (AuthenticationError, "401 unauthorized"),
    "invalid_request": (BadRequestError, "400 invalid request"),
    "context_length": (ContextLengthError, "400 context length exceeded"),
    "content_filter": (ContentFilterError, "response blocked by content filter"),
    "malformed": (MalformedAnswerError, "an answer that cannot be parsed"),
}


def to_exception(answer: ErrorAnswer) -> Exception:
    """Return the exception of a scripted error. Source: docs/scenario-format.md, "The world"."""
    if answer.kind == "exception":
        return _builtin(answer.type or "RuntimeError", answer.message or "")
    exception, text = KINDS[answer.kind]
    error = exception(text if answer.message is None else answer.message)
    error.kind = answer.kind
    return error


def _builtin(name: str, message: str) -> Exception:
    """Return the built-in exception of this name with exactly this text; for any other name, a new class."""
    base = getattr(builtins, name, Exception)
    if not (isinstance(base, type) and issubclass(base, Exception)) or issubclass(base, ExceptionGroup):
        base = Exception
    if base is Exception or issubclass(base, KeyError | UnicodeError):
        # These do not show their argument as their text: KeyError quotes it, UnicodeError takes five arguments.
        base = type(name, (base,), {"__str__": lambda _: message, "__init__": lambda _, *_args: None})
    exception: Exception = base(message)
    return exception


Written = Mapping[str, Any]


@dataclass(frozen=True)
class ScriptedAnswer(Answer):
    """An answer from a stub, a fault or a scripted server (`source`). `title` names the stub list in messages."""

    source: Stub | FaultSpec | MCPServerSpec | None = None
    title: str = ""

    @property
    def failure(self) -> ErrorAnswer | None:
        """The error as written in the scenario; None if the answer is a value."""
        return None if self.source is None else self.source.error

    @property
    def span(self) -> Span | None:
        """The location of the source in the scenario."""
        return None if self.source is None else self.source.span

    @property
    def description(self) -> str:
        """A short description of the answer, for messages."""
        return describe(self.source, self.title) if isinstance(self.source, Stub) else self.title


def describe(stub: Stub, title: str) -> str:
    """Return a short description of a stub's answer, for messages."""
    if stub.error is not None:
        return f"{title}: error {stub.error.kind}"
    written = ", ".join(f"{key}: {clip(repr(value), 60)}" for key, value in stub.answer.items())
    return f"{title}: {written or 'an empty answer'}"


def answer_of(stub: Stub, kind: str, title: str) -> ScriptedAnswer:
    """Return the answer of a stub to an effect of this kind, with its virtual latency."""
    if stub.error is not None:
        return ScriptedAnswer(
            error=to_exception(stub.error), latency_s=stub.latency_s, source=stub, title=title
        )
    # A copy: the caller may change it, and the stub may answer again.
    written = copy.deepcopy(dict(stub.answer))
    value = _CONVERTERS[kind](written) if kind in _CONVERTERS else written.get("return")
    return ScriptedAnswer(value, latency_s=stub.latency_s, source=stub, title=title)


def _llm(written: Written) -> LLMReply:
    chunks = tuple(str(chunk) for chunk in written.get("chunks", ()))
    if "json" in written:
        text = compact_json(written["json"])
    elif "reply" in written:
        text = str(written["reply"])
    else:
        text = "".join(chunks)
    return LLMReply(
        text=text,
        tool_calls=tuple(written.get("tool_calls", ())),
        usage=dict(written.get("usage") or {}),
        finish_reason=written.get("finish_reason"),
        chunks=chunks,
    )


def _http(written: Written) -> HTTPReply:
    has_json = "json" in written
    text = compact_json(written["json"]) if has_json else str(written.get("text", ""))
    return HTTPReply(
        status=int(written.get("status", 200)),
        text=text,
        json=written["json"] if has_json else from_json(text),
        headers={str(name).lower(): str(value) for name, value in (written.get("headers") or {}).items()},
    )


def _retrieval(written: Written) -> RetrievalReply:
    try:
        return RetrievalReply.of(written.get("return"))
    except ValueError as error:
        raise WorldError(f"a stub under `retrieval:` cannot answer: {error}") from None


_CONVERTERS: dict[str, Callable[[Written], Any]] = {
    "llm": _llm,
    "http": _http,
    "human": lambda written: written.get("reply"),
    "retrieval": _retrieval,
}
