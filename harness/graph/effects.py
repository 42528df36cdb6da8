"""Effects, as plain data: all requests that a node can make to the world, and the answers to them.

A node awaits `ctx.perform(effect)`, and the world of the run answers. The `calls` and `args` matchers of a scenario
are compared with `name` and `args` (docs/scenario-format.md); `when` reads `request()` as `request`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

from harness.graph.to_json import from_json

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

ACTIVE: Final = "active"
"""The name of the model in a call for which the manifest names none: the one that is active where the agent runs."""

Real = Callable[[], Awaitable[Any]]
"""Performs the effect for real, if the world answers it with `real`."""


Ask = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Sends a request of an MCP server, by method and parameters, to its client, and returns the result."""


class EffectSpan(NamedTuple):
    """The spans of a kind of effect, by the conventions of OpenTelemetry.

    `operation` is its name there, and `name_attribute` the attribute with the name of the effect. `is_remote` is
    True for a call to another process.
    """

    operation: str = ""
    name_attribute: str = ""
    is_remote: bool = False


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A request to the world.

    The context fills in `node` (`outer/inner` in nested graphs). `alias` is another name that stubs may use. `hint`
    is shown if nothing answers the effect: it suggests an alternative to a stub.

    A class is the record of its kind of effect. What it says of the kind:

    kind              its name in traces and expectations
    key               the key of a world with its stubs (`harness.world.spec.WorldSpec`)
    stubs             how they are found there: one `list`, by the `name` of the effect, or by `server` and tool
    target            what has the name of the effect, in the description of an expected call
    noun              the same in messages, if it differs
    listed            a graph lists the names that it can call
    expected          an expectation can name it; a handler is the code of its node, and appears in `path`
    named_in_parts    the name is a node or a model: a pattern without a slash is compared with its last part
    arguments         the names in `args`; None for any
    fields            the fields of `request` besides `kind`, `node`, `name` and `args`
    real_by_default   without stubs, the real thing answers
    real_hint         what an entry says in place of `real` if there is nothing real
    example           the shortest answer, as it is written
    informs           what it returns is context to a judge
    span              its span in OpenTelemetry
    """

    kind: ClassVar[str] = ""
    key: ClassVar[str] = ""
    stubs: ClassVar[Literal["list", "name", "server"]] = "name"
    target: ClassVar[str] = ""
    noun: ClassVar[str] = ""
    listed: ClassVar[bool] = True
    expected: ClassVar[bool] = True
    named_in_parts: ClassVar[bool] = False
    arguments: ClassVar[Sequence[str] | None] = None
    fields: ClassVar[Sequence[str]] = ()
    real_by_default: ClassVar[bool] = False
    real_hint: ClassVar[str] = "{return: …}"
    example: ClassVar[str] = '"…"'
    informs: ClassVar[bool] = False
    span: ClassVar[EffectSpan] = EffectSpan()

    node: str = ""
    name: str = ""
    alias: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    real: Real | None = None
    hint: str = ""

    def __init_subclass__(cls) -> None:
        EFFECTS[cls.kind] = cls

    @property
    def is_real_by_default(self) -> bool:
        """True if the real thing answers this effect unless the world has an entry for it."""
        return self.real_by_default

    def request(self) -> dict[str, Any]:
        """Return the `request` that `when` reads: plain data, or sequences that convert on access."""
        return {"kind": self.kind, "node": self.node, "name": self.name, "args": self.args}

    def recorded(self) -> dict[str, Any]:
        """Return the request as it is recorded in the trace."""
        return {"args": self.args}

    @staticmethod
    def answered(value: Any) -> Any:
        """Return the answer to a call of this kind for what a stub returns.

        Raises:
            ValueError: the value cannot be an answer.
        """
        return value

    @staticmethod
    def told(call: Mapping[str, Any]) -> str:
        """Describe a call of this kind in a line, made from its event in a trace."""
        return f"{call['kind']} call: {call['name']}"


EFFECTS: Final[dict[str, type[Effect]]] = {}
"""The classes of effects, by kind."""


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
    key = "llm"
    stubs = "list"
    target = "model"
    named_in_parts = True
    arguments = ()
    fields = ("model", "provider", "params", "messages", "tools", "response_format", "prompt")
    span = EffectSpan("chat", "gen_ai.request.model", is_remote=True)

    provider: str = ""
    base_url: str | None = None
    server: ModelServer | None = None
    api_key: str | None = field(default=None, repr=False)
    params: Mapping[str, Any] = field(default_factory=dict)
    messages: Sequence[BaseMessage] = ()
    tools: Sequence[ToolSpec] = ()
    response_format: Any = None
    as_written: bool = False

    @property
    def forced_tool(self) -> str:
        """The name of the tool that the model must call; "" if it may choose."""
        choice = self.params.get("tool_choice")
        if isinstance(choice, Mapping):
            function = choice.get("function")
            name = function.get("name") if isinstance(function, Mapping) else choice.get("name")
            if name:
                return str(name)
            choice = choice.get("type")
        forced = choice in ("required", "any", True) and len(self.tools) == 1
        if forced:
            return self.tools[0].name
        return str(choice) if choice in [tool.name for tool in self.tools] else ""

    def request(self) -> dict[str, Any]:
        from harness.graph.messages import MessageViews, message_text

        return {
            **super().request(),
            "model": self.name,
            "provider": self.provider,
            "params": self.params,
            "messages": MessageViews(self.messages),
            "tools": [tool.as_mapping() for tool in self.tools],
            "response_format": self.response_format,
            "prompt": message_text(self.messages[-1]) if self.messages else "",
        }

    def recorded(self) -> dict[str, Any]:
        given = {
            "provider": self.provider or None,
            "params": self.params or None,
            "tools": [tool.name for tool in self.tools] or None,
            "response_format": self.response_format,
        }
        return {"messages": self.messages, **_without_none(given)}

    @staticmethod
    def told(call: Mapping[str, Any]) -> str:
        request = call["request"]
        model = "<active>" if call["name"] == ACTIVE and "provider" not in request else call["name"]
        return f"llm call: model={model} tools={', '.join(request.get('tools', ())) or '<none>'}"


@dataclass(frozen=True)
class LLMReply:
    """The answer of a chat model. `usage` is `{input_tokens, output_tokens}`, or empty if none was reported."""

    text: str
    tool_calls: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    finish_reason: str | None = None
    chunks: Sequence[str] = ()

    def as_forced_call(self, call: LLMCall) -> LLMReply:
        """Return the reply to a call that forces one tool call: a JSON object is the arguments of that tool."""
        name = call.forced_tool
        arguments = from_json(self.text) if name and not self.tool_calls else None
        if not isinstance(arguments, dict):
            return self
        return replace(self, text="", chunks=(), tool_calls=({"name": name, "args": arguments},))

    def as_mapping(self) -> dict[str, Any]:
        """Return the reply as it is recorded in the trace."""
        given = {
            "tool_calls": [*self.tool_calls] or None,
            "usage": dict(self.usage) or None,
            "finish_reason": self.finish_reason,
            "chunks": [*self.chunks] or None,
        }
        return {"text": self.text, **_without_none(given)}


@dataclass(frozen=True, kw_only=True)
class ToolCall(Effect):
    """A call of a tool by its id, with `args` by parameter name. The answer is the tool's return value.

    A `native` tool is part of the dialect and runs without a stub. `env` are environment variables that a real tool
    sees while it runs.
    """

    kind: ClassVar[str] = "tool"
    key = "tools"
    target = "tool"
    real_hint = "package.module.function"
    informs = True
    span = EffectSpan("execute_tool", "gen_ai.tool.name")

    native: bool = False
    env: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_real_by_default(self) -> bool:
        return self.native


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
    """A call of a tool of an MCP server, by the tool's name on that server. The answer is an `MCPResult`.

    Attributes:
        perform: performs a further effect of the node: the answer to what the server asks.
        client: the app's own client, if it answers what servers ask.
    """

    kind: ClassVar[str] = "mcp"
    key = "mcp"
    stubs = "server"
    target = "tool of an MCP server"
    fields = ("server",)
    informs = True
    span = EffectSpan("execute_tool", "gen_ai.tool.name", is_remote=True)

    endpoint: MCPEndpoint
    perform: Callable[[Effect], Awaitable[Any]] | None = field(default=None, compare=False, repr=False)
    client: Ask | None = field(default=None, compare=False, repr=False)

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
    key = "http"
    stubs = "list"
    target = "URL"
    listed = False
    arguments = ("method", "url", "query", "json", "headers", "text")
    fields = ("method", "url", "query", "headers", "json", "text")
    informs = True
    span = EffectSpan(is_remote=True)

    def request(self) -> dict[str, Any]:
        return {**super().request(), **self.args}


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
class HandlerCall(Effect):
    """A call of a registered Python handler by name. `args` is the input of the node.

    `convention` is the dialect's way to call a handler; without it, `args` are passed by name.
    """

    kind: ClassVar[str] = "handler"
    key = "handlers"
    target = "handler"
    expected = False
    real_hint = "package.module.function"
    example = "{}"

    convention: Callable[[Any], Awaitable[Any]] | None = None


@dataclass(frozen=True, kw_only=True)
class AgentCall(Effect):
    """A call of another agent by its id. `args` is `{input}`, which `request` also has as `prompt`.

    The answer is text.
    """

    kind: ClassVar[str] = "agent"
    key = "agents"
    target = "agent"
    arguments = ("input",)
    fields = ("prompt",)
    real_by_default = True
    span = EffectSpan("invoke_agent", "gen_ai.agent.name", is_remote=True)

    def request(self) -> dict[str, Any]:
        return {**super().request(), "prompt": self.args.get("input")}


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
    key = "scripts"
    target = "script's node"
    noun = "script"
    named_in_parts = True
    real_by_default = True
    example = "{}"

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
class HumanCall(Effect):
    """A question to a person. `name` is the node, `args` is `{value}` or `{question, options}`."""

    kind: ClassVar[str] = "human"
    key = "human"
    stubs = "list"
    target = "node that asked"
    listed = False
    named_in_parts = True
    arguments = ("question", "options", "value")


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


@dataclass(frozen=True, kw_only=True)
class RetrievalCall(Effect):
    """A search in documents. `name` is the node, `args` is `{query, top_k, group}`.

    The answer is a `RetrievalReply`.
    """

    kind: ClassVar[str] = "retrieval"
    key = "retrieval"
    target = "retrieval node"
    named_in_parts = True
    arguments = ("query", "top_k", "group")
    example = '{context: "…", sources: []}'
    informs = True
    span = EffectSpan("retrieval", "gen_ai.data_source.id", is_remote=True)

    answered = staticmethod(RetrievalReply.of)


def _without_none(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value is not None}


EXPECTED_KINDS: Final = tuple(kind for kind, effect in EFFECTS.items() if effect.expected)
"""The kinds of calls that expectations can name."""
SERVER: Final = "server"
"""The kind of the names of MCP servers, which are not effects."""
NAMED_KINDS: Final = (*(kind for kind, effect in EFFECTS.items() if effect.listed), SERVER)
"""The kinds of names in a vocabulary."""
