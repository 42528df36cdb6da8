"""Effects, as plain data: all requests that a node can make to the world, and the answers to them.

A node awaits `ctx.perform(effect)`, and the world of the run answers. The `calls` and `args` matchers of a scenario
are compared with `name` and `args` (docs/scenario-format.md); `when` reads `request()` as `request`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol
from urllib.parse import parse_qs, urlencode, urlsplit

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from harness.graph.model import State

ACTIVE: Final = "active"
"""The name of the model in a call for which the manifest names none: the one that is active where the agent runs."""

Real = Callable[[], Awaitable[Any]]
"""Performs the effect for real, if the world answers it with `real`."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A request to the world.

    The context fills in `node` (`outer/inner` in nested graphs). `alias` is another name that stubs may use. `hint`
    is shown if nothing answers the effect: it suggests an alternative to a stub.
    """

    kind: ClassVar[str] = ""

    node: str = ""
    name: str = ""
    alias: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    real: Real | None = None
    hint: str = ""

    def request(self) -> dict[str, Any]:
        """Return the `request` that `when` reads: plain data, or sequences that convert on access."""
        return {"kind": self.kind, "node": self.node, "name": self.name, "args": self.args}

    def recorded(self) -> dict[str, Any]:
        """Return the request as it is recorded in the trace."""
        return {"args": self.args}


@dataclass(frozen=True)
class ToolSpec:
    """The definition of a tool that is sent to a model. `schema` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]

    def as_mapping(self) -> dict[str, Any]:
        """Return `{name, description, schema}`."""
        return {"name": self.name, "description": self.description, "schema": self.schema}


@dataclass(frozen=True)
class ModelServer:
    """A model server of one's own. The variables LOCAL_MODEL_* have what is not given here.

    Attributes:
        url: the whole address of its calls: nothing is appended.
        kind: its wire format: `openai`, `ollama`, `textgen` or `huggingface`; None: that of the address.
        headers: additional headers. They never appear in a trace.
        timeout_s: the time limit of a call, in seconds.
        default_url: the address if nothing else gives one.
    """

    url: str | None = None
    kind: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float | None = None
    default_url: str | None = None


@dataclass(frozen=True, kw_only=True)
class LLMCall(Effect):
    """A call of a chat model.

    Attributes:
        name: the model without its provider; `ACTIVE` if the manifest names none.
        messages: the messages in the order sent.
        base_url: the provider's address in the manifest; None for its default.
        server: the server of the model, in place of a provider.
        api_key: the key that the manifest gives. It never appears in a trace.
        as_written: send OpenAI the parameters exactly as named here, and no others, as LiteLLM does.
    """

    kind: ClassVar[str] = "llm"

    provider: str = ""
    base_url: str | None = None
    server: ModelServer | None = None
    api_key: str | None = field(default=None, repr=False)
    params: Mapping[str, Any] = field(default_factory=dict)
    messages: Sequence[BaseMessage] = ()
    tools: Sequence[ToolSpec] = ()
    response_format: Any = None
    as_written: bool = False

    def request(self) -> dict[str, Any]:
        from harness.graph.messages import MessageViews, message_text

        return {
            "kind": self.kind,
            "node": self.node,
            "name": self.name,
            "args": self.args,
            "model": self.name,
            "provider": self.provider,
            "params": self.params,
            "messages": MessageViews(self.messages),
            "tools": [tool.as_mapping() for tool in self.tools],
            "response_format": self.response_format,
            "prompt": message_text(self.messages[-1]) if self.messages else "",
        }

    def recorded(self) -> dict[str, Any]:
        recorded: dict[str, Any] = {"messages": self.messages}
        if self.provider:
            recorded["provider"] = self.provider
        if self.params:
            recorded["params"] = self.params
        if self.tools:
            recorded["tools"] = [tool.name for tool in self.tools]
        if self.response_format is not None:
            recorded["response_format"] = self.response_format
        return recorded


@dataclass(frozen=True)
class LLMReply:
    """The answer of a chat model. `usage` is `{input_tokens, output_tokens}`, or empty if none was reported."""

    text: str
    tool_calls: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    finish_reason: str | None = None
    chunks: Sequence[str] = ()

    def as_mapping(self) -> dict[str, Any]:
        """Return the reply as it is recorded in the trace."""
        mapping: dict[str, Any] = {"text": self.text}
        if self.tool_calls:
            mapping["tool_calls"] = list(self.tool_calls)
        if self.usage:
            mapping["usage"] = dict(self.usage)
        if self.finish_reason is not None:
            mapping["finish_reason"] = self.finish_reason
        if self.chunks:
            mapping["chunks"] = list(self.chunks)
        return mapping


@dataclass(frozen=True, kw_only=True)
class ToolCall(Effect):
    """A call of a tool by its id, with `args` by parameter name. The answer is the tool's return value.

    A `native` tool is part of the dialect and runs without a stub. `env` are environment variables that a real tool
    sees while it runs.
    """

    kind: ClassVar[str] = "tool"

    native: bool = False
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class MCPEndpoint:
    """The address of an MCP server, as a manifest gives it.

    Attributes:
        id: the name of the server in the manifest.
        transport: stdio, sse or streamable_http.
        cwd: the working directory of a stdio server.
        read_timeout_s: the real seconds that a live server may take for one answer; None for no limit.
        client_certificate: the server requires a certificate of its clients (mTLS).
        alias: another name that stubs may use.
    """

    id: str
    transport: str
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    command: str | None = None
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    read_timeout_s: float | None = None
    client_certificate: bool = False
    alias: str = ""


@dataclass(frozen=True, kw_only=True)
class MCPCall(Effect):
    """A call of a tool of an MCP server, by the tool's name on that server. The answer is an `MCPResult`."""

    kind: ClassVar[str] = "mcp"

    endpoint: MCPEndpoint

    @property
    def server(self) -> str:
        """The id of the server."""
        return self.endpoint.id

    def request(self) -> dict[str, Any]:
        return {**super().request(), "server": self.server}

    def recorded(self) -> dict[str, Any]:
        return {"server": self.server, "args": self.args}


@dataclass(frozen=True, kw_only=True)
class HTTPCall(Effect):
    """An HTTP request. `name` is its URL, `args` is {method, url, query, json, headers, text}."""

    kind: ClassVar[str] = "http"

    def request(self) -> dict[str, Any]:
        return {**super().request(), **self.args}


def http_call(
    method: str,
    url: str,
    *,
    json: Any = None,
    form: Mapping[str, Any] | None = None,
    text: str = "",
    query: Mapping[str, Any] | None = None,
    headers: Mapping[str, Any] | None = None,
    hint: str = "",
) -> HTTPCall:
    """Return an HTTP request with the complete `args` that scenarios match.

    Args:
        method: the HTTP method.
        url: the URL. Its query string is moved to `query`.
        json: the body as JSON data.
        form: the body as a form: it is urlencoded into `text`, and `json` is None.
        text: the body as text. Only one of `json`, `form` and `text` is given.
        query: query parameters, which override those of the URL. A value is a text, or a list of texts if the key is
            repeated in the URL or has a list here.
        headers: headers; names are put in lower case, and no content-type is added for a body.
        hint: see `Effect`.

    Values of `form`, `query` and `headers` become texts: a bool is `true` or `false`, and None is empty.
    """
    parts = urlsplit(url)
    address = parts._replace(query="", fragment="").geturl()
    if form is not None:
        text = urlencode(_texts(form), doseq=True)
    elif json is not None:
        text = dumps(json, ensure_ascii=False)
    args = {
        "method": method,
        "url": address,
        "query": {**_query_of(parts.query), **_texts(query or {})},
        "json": json,
        "headers": {name.lower(): _text(value) for name, value in (headers or {}).items()},
        "text": text,
    }
    return HTTPCall(name=address, args=args, hint=hint)


def _query_of(query: str) -> dict[str, str | list[str]]:
    values = parse_qs(query, keep_blank_values=True)
    return {key: found if len(found) > 1 else found[0] for key, found in values.items()}


def _texts(values: Mapping[str, Any]) -> dict[str, str | list[str]]:
    return {
        str(key): [_text(item) for item in value] if isinstance(value, (list, tuple)) else _text(value)
        for key, value in values.items()
    }


def _text(value: Any) -> str:
    """Return a value as HTTP clients write it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class HTTPReply:
    """An HTTP response. `json` is the parsed body if it is JSON; header names are in lower case."""

    status: int
    text: str
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def as_mapping(self) -> dict[str, Any]:
        """Return the reply as it is recorded in the trace."""
        return {"status": self.status, "text": self.text, "headers": dict(self.headers)}


@dataclass(frozen=True, kw_only=True)
class AgentCall(Effect):
    """A call of another agent by its id. `args` is `{input}`, which `request` also has as `prompt`.

    The answer is text.
    """

    kind: ClassVar[str] = "agent"

    def request(self) -> dict[str, Any]:
        return {**super().request(), "prompt": self.args.get("input")}


@dataclass(frozen=True, kw_only=True)
class HumanCall(Effect):
    """A question to a person. `name` is the node, `args` is `{value}` or `{question, options}`."""

    kind: ClassVar[str] = "human"


@dataclass(frozen=True, kw_only=True)
class ScriptCall(Effect):
    """A child process that a node runs. `name` is the node.

    Attributes:
        argv: the command and its arguments.
        env: variables of the process, of which some may be secret. Of the harness's own environment it gets only the
            few that every program needs.
        inputs: texts by variable, like `env`, with the input of the script.
        files: texts by variable. Each is written to a temporary file, whose path is the variable's value; it is
            removed at the end of the run.
        cwd: the working directory.
        stdin: the text on standard input.
        timeout_s: the limit in real seconds; None for no limit.
        output_limit: the limit in bytes for standard output and for standard error each.
        read: turns the standard output into the answer. An exception that it raises fails the call.
    """

    kind: ClassVar[str] = "script"

    argv: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    inputs: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    stdin: str = ""
    timeout_s: float | None = None
    output_limit: int = 10_000_000
    read: Callable[[str], Any] = loads


@dataclass(frozen=True, kw_only=True)
class HandlerCall(Effect):
    """A call of a registered Python handler by name. `args` is the input of the node.

    `convention` is the dialect's way to call a handler; without it, `args` are passed by name.
    """

    kind: ClassVar[str] = "handler"

    convention: Callable[[Any], Awaitable[Any]] | None = None


@dataclass(frozen=True, kw_only=True)
class RetrievalCall(Effect):
    """A search in documents. `name` is the node, `args` is `{query, top_k, group}`.

    The answer is a `RetrievalReply`.
    """

    kind: ClassVar[str] = "retrieval"


@dataclass(frozen=True)
class RetrievalReply:
    """The result of a search: `context` for a prompt, and `sources` in order, without duplicates.

    `passages` are `{text, source, score}`, if the answer has them.
    """

    context: str
    sources: Sequence[str] = ()
    passages: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, value: Any) -> RetrievalReply:
        """Return the reply for a value that is `{context, sources}` or a list of passages.

        Raises:
            ValueError: the value is neither.
        """
        if isinstance(value, Mapping) and {"context", "sources"} >= set(value):
            return cls(str(value.get("context", "")), tuple(map(str, value.get("sources") or ())))
        if isinstance(value, list) and all(isinstance(item, Mapping) and "text" in item for item in value):
            sources = dict.fromkeys(str(item["source"]) for item in value if "source" in item)
            return cls("\n\n".join(str(item["text"]) for item in value), tuple(sources), tuple(value))
        raise ValueError("a retrieval returns {context, sources}, or a list of {text, source, score}")

    def as_mapping(self) -> dict[str, Any]:
        """Return the reply as it is recorded in the trace."""
        passages = {"passages": list(self.passages)} if self.passages else {}
        return {"context": self.context, "sources": list(self.sources), **passages}


@dataclass(frozen=True)
class Answer:
    """The answer of the world: a value, or an error to raise in the node. `latency_s` is in virtual seconds."""

    value: Any = None
    error: Exception | None = None
    latency_s: float = 0.0


class World(Protocol):
    """Everything outside the graph."""

    async def answer(self, effect: Effect, state: State) -> Answer:
        """Answer an effect. `state` is the state that the calling node received.

        Raises:
            UnscriptedCall: nothing answers. This always ends the run.
        """
        ...

    def has_answers(self, effects: Sequence[Effect], state: State) -> bool:
        """True if `answer` would find an answer to each effect. Consumes nothing.

        A pause without an answer is no error, so schedulers ask this before `answer`.
        """
        ...

    def answers_for(self, effect: Effect) -> bool:
        """True if the world has any entry for effects of this kind and name. Consumes nothing.

        Unlike `has_answers`, this ignores the arguments of the effect.
        """
        ...

    def uses_backend(self, effect: Effect, state: State) -> bool:
        """True if no stub would answer this effect, but the live backend or its recording could. Consumes nothing."""
        ...

    def asks_live(self, effect: Effect, state: State) -> bool:
        """True if the live backend would answer this effect, and no recording. Consumes nothing."""
        ...

    async def mcp_tools(self, endpoint: MCPEndpoint) -> Sequence[ToolSpec]:
        """Return the tools of an MCP server, connecting to it on first use.

        Raises:
            Exception: the server cannot be reached; the message gives the reason.
        """
        ...
