"""Effects: everything a node can ask of the world, as plain data, and the answers to them.

A node awaits `ctx.perform(effect)`; the run's world answers. `name` and `args` are what a scenario's
`calls` and `args` matchers see (docs/scenario-format.md); `request()` is what `when` sees as `request`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from urllib.parse import parse_qs, urlencode, urlsplit

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from harness.graph.model import State

Real = Callable[[], Awaitable[Any]]
"""Performs the effect for real, when the world says `real`."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A request to the world. `node` is filled in by the context (`outer/inner` in nested graphs).

    `alias` is another name the world may know it by. `hint` says what else people could do when nothing answers.
    """

    kind: ClassVar[str] = ""

    node: str = ""
    name: str = ""
    alias: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    real: Real | None = None
    hint: str = ""

    def request(self) -> dict[str, Any]:
        """What `when` sees as `request`: plain data, or sequences that convert on access."""
        return {"kind": self.kind, "node": self.node, "name": self.name, "args": self.args}

    def recorded(self) -> dict[str, Any]:
        """The request as it stands in the trace."""
        return {"args": self.args}


@dataclass(frozen=True)
class ToolSpec:
    """A tool as a model sees it. `schema` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]

    def as_mapping(self) -> dict[str, Any]:
        """`{name, description, schema}`."""
        return {"name": self.name, "description": self.description, "schema": self.schema}


@dataclass(frozen=True, kw_only=True)
class LLMCall(Effect):
    """A chat model's turn. `name` is the model without its provider; `messages` in the order sent.

    `base_url` is the provider's address in the manifest, None for its default; `api_key` is the key the manifest
    names, which is in no trace. `as_written`: OpenAI is sent the parameters by the names they have here, and nothing
    else, as LiteLLM does.
    """

    kind: ClassVar[str] = "llm"

    provider: str = ""
    base_url: str | None = None
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
    """A chat model's answer. `usage` is `{input_tokens, output_tokens}` where reported."""

    text: str
    tool_calls: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    finish_reason: str | None = None
    chunks: Sequence[str] = ()

    def as_mapping(self) -> dict[str, Any]:
        """The reply as it stands in the trace."""
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
    """A tool, by its id; `args` by parameter name. The answer is the tool's return value.

    A `native` tool belongs to the dialect and runs without a stub.
    """

    kind: ClassVar[str] = "tool"

    native: bool = False


@dataclass(frozen=True)
class MCPEndpoint:
    """How a manifest reaches an MCP server. `transport` is stdio, sse or streamable_http.

    `alias` is another name the world may know it by.
    `cwd` is the working directory of a stdio server. `read_timeout_s` is how many real seconds a real
    server may take for one answer. `client_certificate`: the server wants one of its clients (mTLS).
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
    """A tool of an MCP server, by the server's own name for it. The answer is an `MCPResult`."""

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
    """An HTTP request; `name` is its URL. `args` has {method, url, query, json, headers, text}."""

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
    """An HTTP request with all its `args`, as scenarios match them.

    The query of the URL is taken out of it, and `query` is laid over that. A key has one text, or a list of
    texts when it is repeated (in the URL) or given as a list. The body is one of `json`, `form`, which is
    urlencoded in `text` (then `json` is None), and `text`. `headers` has the names in lower case and only
    those given: no content-type is added for a body. Values are texts; a bool is `true` or `false` and None
    is empty.
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
    """A value as HTTP clients write it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class HTTPReply:
    """An HTTP answer. `json` is the parsed body where it is JSON; header names are in lower case."""

    status: int
    text: str
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def as_mapping(self) -> dict[str, Any]:
        """The reply as it stands in the trace."""
        return {"status": self.status, "text": self.text, "headers": dict(self.headers)}


@dataclass(frozen=True, kw_only=True)
class AgentCall(Effect):
    """Another agent, by its id; `args` is `{input}`, which a request also has as `prompt`. The answer is text."""

    kind: ClassVar[str] = "agent"

    def request(self) -> dict[str, Any]:
        return {**super().request(), "prompt": self.args.get("input")}


@dataclass(frozen=True, kw_only=True)
class HumanCall(Effect):
    """A question to a person; `name` is the node. `args` is `{value}` or `{question, options}`."""

    kind: ClassVar[str] = "human"


@dataclass(frozen=True, kw_only=True)
class ScriptCall(Effect):
    """A child process that a node runs; `name` is the node. The answer is what `read` makes of its standard output.

    `env` stands beside the few variables that every program needs; nothing else of ours is handed on. `files` maps a
    variable to a text: it names a temporary file with it, which is removed at the end of the run. `timeout_s` is in
    real seconds (None: no limit), `output_limit` in bytes, of standard output and of standard error each. What
    `read` raises fails the call.
    """

    kind: ClassVar[str] = "script"

    argv: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    stdin: str = ""
    timeout_s: float | None = None
    output_limit: int = 10_000_000
    read: Callable[[str], Any] = loads


@dataclass(frozen=True, kw_only=True)
class HandlerCall(Effect):
    """A registered Python handler, by name; `args` is what the node was given.

    `convention` is how the dialect calls one; without it, with `args` by name.
    """

    kind: ClassVar[str] = "handler"

    convention: Callable[[Any], Awaitable[Any]] | None = None


@dataclass(frozen=True, kw_only=True)
class RetrievalCall(Effect):
    """A search in documents; `name` is the node. `args` is `{query, top_k, group}`, the answer a `RetrievalReply`."""

    kind: ClassVar[str] = "retrieval"


@dataclass(frozen=True)
class RetrievalReply:
    """What a search found: `context` for a prompt, and `sources`, each once, in order.

    `passages` are `{text, source, score}`, where the answer has them.
    """

    context: str
    sources: Sequence[str] = ()
    passages: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, value: Any) -> RetrievalReply:
        """The reply that a value stands for: `{context, sources}`, or a list of passages.

        Raises:
            ValueError: it is neither.
        """
        if isinstance(value, Mapping) and {"context", "sources"} >= set(value):
            return cls(str(value.get("context", "")), tuple(map(str, value.get("sources") or ())))
        if isinstance(value, list) and all(isinstance(item, Mapping) and "text" in item for item in value):
            sources = dict.fromkeys(str(item["source"]) for item in value if "source" in item)
            return cls("\n\n".join(str(item["text"]) for item in value), tuple(sources), tuple(value))
        raise ValueError("a retrieval returns {context, sources}, or a list of {text, source, score}")

    def as_mapping(self) -> dict[str, Any]:
        """The reply as it stands in the trace."""
        passages = {"passages": list(self.passages)} if self.passages else {}
        return {"context": self.context, "sources": list(self.sources), **passages}


@dataclass(frozen=True)
class Answer:
    """The world's answer. `error` instead of `value` is raised in the node; `latency_s` is virtual."""

    value: Any = None
    error: Exception | None = None
    latency_s: float = 0.0


class World(Protocol):
    """Everything outside the graph."""

    async def answer(self, effect: Effect, state: State) -> Answer:
        """Answer an effect. `state` is what the calling node was given.

        Raises:
            UnscriptedCall: nothing answers; this always ends the run.
        """
        ...

    def has_answers(self, effects: Sequence[Effect], state: State) -> bool:
        """True if `answer` would find one for each; consumes nothing (a pause without an answer is no error)."""
        ...

    def answers_for(self, effect: Effect) -> bool:
        """True if the world says who answers effects of this kind and name; consumes nothing.

        Whether it would answer this one, with these arguments, is what `has_answers` says.
        """
        ...

    def uses_backend(self, effect: Effect, state: State) -> bool:
        """True if no stub would answer this effect, but the real thing, or its recording, could; consumes nothing."""
        ...

    def asks_live(self, effect: Effect, state: State) -> bool:
        """True if the real thing would answer this effect, and nothing of it is recorded; consumes nothing."""
        ...

    async def mcp_tools(self, endpoint: MCPEndpoint) -> Sequence[ToolSpec]:
        """The tools of an MCP server, connecting to it on first use.

        Raises:
            Exception: the server cannot be reached, with a text that says why.
        """
        ...
