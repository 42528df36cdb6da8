"""What a scenario file says about its world: stubs, servers and faults, as they may be written.

Source: docs/scenario-format.md, "The world". Short and long forms are told apart by their shape.
"""

from __future__ import annotations

import builtins
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from harness.scenario.field_types import (
    LEFT_OUT,
    Cel,
    Count,
    Dotted,
    JSONSchemaMapping,
    MatcherMapping,
    Name,
    Seconds,
    Strict,
    Times,
    by_shape,
    shape,
)
from harness.source.models import Mistake, mistaken
from harness.source.suggest import nearest
from harness.world.spec import ErrorKind

# ---------------------------------------------------------------- errors


_BUILT_IN: Final = tuple(
    sorted(
        name
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, Exception)
    )
)


def _exception(name: str) -> str:
    """A built-in exception, or the name of one of the agent's own (suites raise `LensDirty`, `ProviderError`)."""
    if name in _BUILT_IN:
        return name
    if not name.isidentifier() or hasattr(builtins, name):
        raise mistaken(Mistake(f"'{name}' is not the name of an exception"))
    meant = get_close_matches(name, _BUILT_IN, n=1, cutoff=0.9)
    if meant:
        raise mistaken(
            Mistake(f"there is no built-in exception '{name}'", hint=f"did you mean '{meant[0]}'?")
        )
    return name


class ErrorMapping(Strict):
    """`{kind, message?, type?, retry_after?}`."""

    model_config = ConfigDict(title="an error")

    kind: ErrorKind = Field(description="What kind of error.")
    message: str = Field(LEFT_OUT, description="Its text; each kind has one of its own.")
    type: Annotated[str, AfterValidator(_exception)] = Field(
        LEFT_OUT, description="The built-in exception, for kind `exception`; RuntimeError by default."
    )
    retry_after: Seconds = Field(
        LEFT_OUT, description="Seconds until clients may ask again, as `harness serve` tells them."
    )

    @model_validator(mode="after")
    def _type_goes_with_exception(self) -> ErrorMapping:
        if self.written("type") and self.kind != "exception":
            raise mistaken(
                Mistake("'type' goes with kind: exception", ("type",), True, code="conflicting-keys")
            )
        return self


Error = Annotated[
    Annotated[ErrorKind, Tag("text")] | Annotated[ErrorMapping, Tag("mapping")],
    by_shape("an error: its kind, or a mapping with kind, message and type"),
]


# ---------------------------------------------------------------- stubs


class Matchers(Strict):
    """What every stub may say: when it answers, how slowly, and an error instead of an answer."""

    node: str = Field(LEFT_OUT, description="The calling node (glob).")
    args: MatcherMapping = Field(LEFT_OUT, description="What the call's arguments contain; matchers apply.")
    when: Cel = Field(LEFT_OUT, description="A CEL condition; it sees `request` and `state`.")
    times: Times = Field(LEFT_OUT, description="How often it answers: a whole number, or `any`.")
    latency: Seconds = Field(0.0, description="Virtual seconds until the answer.")
    error: Error = Field(LEFT_OUT, description="An error instead of an answer.")

    answers: ClassVar[tuple[str, ...]] = ()
    """The keys of which a stub gives one."""
    together: ClassVar[tuple[str, ...]] = ()
    """Those that may stand together."""
    trimmings: ClassVar[tuple[str, ...]] = ()
    """What goes with an answer, but is none."""
    trimmings_alone: ClassVar[bool] = False
    """A stub may go without an answer."""

    @model_validator(mode="after")
    def _one_answer(self) -> Self:
        given = self.written(*self.answers)
        if self.written("error"):
            others = given + self.written(*self.trimmings)
            if others:
                raise _conflict(others[0], "a stub answers with 'error' or with '{}', not both")
        elif not given and self.answers and not self.trimmings_alone:
            hint = f"give it {', '.join(self.answers)} or error"
            raise mistaken(Mistake("this stub answers nothing", code="missing-answer", hint=hint))
        elif len(given) > 1 and not set(given) <= set(self.together):
            raise _conflict(given[1], f"a stub gives one answer: '{{}}' stands beside '{given[0]}'")
        return self


def _conflict(key: str, message: str) -> PydanticCustomError:
    return mistaken(Mistake(message.format(key), (key,), on_key=True, code="conflicting-keys"))


class ToolCall(Strict):
    """A tool call of a model's answer."""

    model_config = ConfigDict(title="a tool call")

    name: Name = Field(description="The tool.")
    args: dict[str, Any] = Field(LEFT_OUT, description="Its arguments; none when left out.")
    id: str = Field(LEFT_OUT, description="Its id; made up when left out.")


class Usage(Strict):
    """Tokens, as a provider reports them."""

    model_config = ConfigDict(title="usage")

    input_tokens: Count = Field(0, description="Tokens of the request.")
    output_tokens: Count = Field(0, description="Tokens of the answer.")


class LLMStub(Matchers):
    """A scripted answer of a model."""

    model_config = ConfigDict(title="a stub")
    answers: ClassVar[tuple[str, ...]] = ("reply", "json", "tool_calls", "chunks")
    together: ClassVar[tuple[str, ...]] = ("reply", "tool_calls")
    trimmings: ClassVar[tuple[str, ...]] = ("usage", "finish_reason")

    model: str = Field(LEFT_OUT, description="The requested model (glob).")
    reply: str = Field(LEFT_OUT, description="The answer's text.")
    json_: Any = Field(LEFT_OUT, alias="json", description="A value; the text is its compact JSON.")
    tool_calls: list[ToolCall] = Field(LEFT_OUT, description="Tools the model calls; may stand beside reply.")
    chunks: list[str] = Field(LEFT_OUT, description="Texts streamed one by one.")
    usage: Usage = Field(LEFT_OUT, description="Tokens the provider reports.")
    finish_reason: str = Field(LEFT_OUT, description="Why the answer ends, as the provider reports it.")


class ReturnStub(Matchers):
    """A scripted result of a tool, handler, agent, script or retrieval."""

    model_config = ConfigDict(title="a stub")
    answers: ClassVar[tuple[str, ...]] = ("return",)

    return_: Any = Field(LEFT_OUT, alias="return", description="The result.")


class MCPStub(Matchers):
    """A scripted result of a tool of an MCP server."""

    model_config = ConfigDict(title="a stub")
    answers: ClassVar[tuple[str, ...]] = ("return", "content")

    return_: Any = Field(LEFT_OUT, alias="return", description="Text, or a value for structured content.")
    content: list[dict[str, Any]] = Field(LEFT_OUT, description="MCP content blocks.")


class HTTPStub(Matchers):
    """A scripted HTTP response; without an answer it is an empty one with status 200."""

    model_config = ConfigDict(title="a stub")
    answers: ClassVar[tuple[str, ...]] = ("json", "text")
    trimmings: ClassVar[tuple[str, ...]] = ("status", "headers")
    trimmings_alone: ClassVar[bool] = True

    method: str = Field(LEFT_OUT, description="The request's method.")
    url: str = Field(LEFT_OUT, description="The request's URL without query (glob).")
    query: MatcherMapping = Field(LEFT_OUT, description="Short for `args: {query: …}`.")
    status: Annotated[int, Field(ge=100, le=599)] = Field(200, description="The response's status.")
    json_: Any = Field(LEFT_OUT, alias="json", description="The body, as JSON.")
    text: str = Field(LEFT_OUT, description="The body, as text.")
    headers: dict[str, str] = Field(LEFT_OUT, description="The response's headers.")

    @model_validator(mode="after")
    def _query_is_an_argument(self) -> Self:
        if self.written("query") and any(key == "query" or key.startswith("$") for key in self.args or {}):
            raise _conflict("query", "'{}' is short for 'query' in 'args': write it there")
        return self


class HumanStub(Matchers):
    """A person's answer: keys that are not the stub's own are the reply, unless `reply` gives it."""

    model_config = ConfigDict(title="a stub", extra="allow")

    reply: Any = Field(LEFT_OUT, description="The answer, sent as it is.")

    @model_validator(mode="after")
    def _reply_or_error(self) -> Self:
        others = list(self.model_extra or {})
        if self.written("reply") and others:
            raise _conflict(others[0], "'{}' is not sent: 'reply' gives the whole answer")
        given = self.written("reply") + others
        if self.written("error") and given:
            raise _conflict(given[0], "a stub answers with 'error' or with '{}', not both")
        return self


# ---------------------------------------------------------------- who answers

LLMAnswer = Annotated[
    Annotated[str, Tag("text")] | Annotated[LLMStub, Tag("mapping")], by_shape("a text or a stub")
]
LLMStubs = Annotated[
    Annotated[list[LLMAnswer], Tag("list")] | Annotated[dict[str, list[LLMAnswer]], Tag("mapping")],
    by_shape("a list of stubs, or a mapping from node to such a list"),
]
HumanAnswer = Annotated[
    Annotated[str, Tag("text")] | Annotated[HumanStub, Tag("mapping")], by_shape("a text or a mapping")
]
HumanStubs = Annotated[
    Annotated[list[HumanAnswer], Tag("list")] | Annotated[dict[str, list[HumanAnswer]], Tag("mapping")],
    by_shape("a list of answers, or a mapping from node to such a list"),
]


def _callable(text: str) -> str:
    parts = text.split(".")
    if text == "real" or (len(parts) > 1 and all(part.isidentifier() for part in parts)):
        return text
    hint = "did you mean 'real'?" if nearest(text, ("real",)) else f"to return it, write {{return: {text}}}"
    raise mistaken(Mistake(f"'{text}' is neither 'real' nor the dotted path of a callable", hint=hint))


class Real(Strict):
    """Another callable that is called instead."""

    model_config = ConfigDict(title="an entry with 'real'")

    real: Dotted = Field(description="The dotted path of the callable.")


def _entry_shape(value: Any) -> str | None:
    return "real" if isinstance(value, dict) and "real" in value else shape(value)


_STUBS = "a stub list, or a mapping with 'return'"
Callee = Annotated[
    Annotated[str, AfterValidator(_callable), Tag("text")]
    | Annotated[Real, Tag("real")]
    | Annotated[ReturnStub, Tag("mapping")]
    | Annotated[list[ReturnStub], Tag("list")],
    by_shape(f"'real', the dotted path of a callable, {_STUBS}", _entry_shape),
]
Entry = Annotated[
    Annotated[Literal["real"], Tag("text")]
    | Annotated[ReturnStub, Tag("mapping")]
    | Annotated[list[ReturnStub], Tag("list")],
    by_shape(f"'real', {_STUBS}"),
]


class MCPTool(Strict):
    """A tool of a scripted MCP server."""

    model_config = ConfigDict(title="an MCP tool")

    name: Name = Field(description="Its name; unique in the server.")
    description: str = Field("", description="What it does, as models are told.")
    input_schema: JSONSchemaMapping = Field(LEFT_OUT, description="JSON Schema (2020-12) of its arguments.")
    stubs: list[MCPStub] = Field(LEFT_OUT, description="What it answers.")


class MCPServer(Strict):
    """A scripted MCP server."""

    model_config = ConfigDict(title="an MCP server")

    tools: list[MCPTool] = Field(LEFT_OUT, description="Its tools.")
    latency: Seconds = Field(0.0, description="Virtual seconds added to every call.")
    error: Error = Field(LEFT_OUT, description="It cannot be reached.")

    @model_validator(mode="after")
    def _distinct_tools(self) -> Self:
        names = [tool.name for tool in self.tools or []]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise mistaken(
                    Mistake(f"a second tool '{name}'", ("tools", at, "name"), code="duplicate-name")
                )
        return self


Server = Annotated[
    Annotated[Literal["real"], Tag("text")] | Annotated[MCPServer, Tag("mapping")],
    by_shape("'real', or a mapping with 'tools'"),
]


class Fault(Strict):
    """A fault put around answers."""

    model_config = ConfigDict(title="a fault")
    moments: ClassVar[tuple[str, ...]] = ("nth", "every", "rate")
    effects: ClassVar[tuple[str, ...]] = ("error", "latency", "truncate")

    effect: Literal["llm", "tool", "mcp", "http", "script", "agent"] = Field(description="Which calls.")
    node: str = Field(LEFT_OUT, description="Only calls of this node (glob).")
    name: str = Field(LEFT_OUT, description="Only calls of this name (glob).")
    nth: Annotated[int, Field(ge=1)] = Field(LEFT_OUT, description="Only the nth of these calls.")
    every: Annotated[int, Field(ge=1)] = Field(LEFT_OUT, description="Every so many of them.")
    rate: Annotated[float, Field(gt=0, le=1)] = Field(LEFT_OUT, description="This share, drawn from `seed`.")
    error: Error = Field(LEFT_OUT, description="An error instead of the answer.")
    latency: Seconds = Field(LEFT_OUT, description="Virtual seconds added.")
    truncate: Count = Field(LEFT_OUT, description="The answer's text is cut to so many characters.")

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        for keys in (self.moments, self.effects):
            given = self.written(*keys)
            if not given:
                message = f"a fault needs one of {', '.join(keys)}"
                raise mistaken(Mistake(message, code="missing-key"))
            if len(given) > 1:
                raise _conflict(
                    given[1], f"a fault has one of {', '.join(keys)}: '{{}}' stands beside '{given[0]}'"
                )
        return self


class World(Strict):
    """The keys that describe the world, in a scenario and in a turn."""

    llm: LLMStubs = Field(LEFT_OUT, description="Answers of models: a list, or lists by node.")
    tools: dict[str, Callee] = Field(LEFT_OUT, description="Who answers for each tool.")
    mcp: dict[str, Server] = Field(LEFT_OUT, description="The MCP servers, by id.")
    http: list[HTTPStub] = Field(LEFT_OUT, description="Answers of HTTP services.")
    scripts: dict[str, Entry] = Field(
        LEFT_OUT, description="Who answers for each script; by default the script."
    )
    handlers: dict[str, Callee] = Field(LEFT_OUT, description="Who answers for each handler.")
    agents: dict[str, Entry] = Field(LEFT_OUT, description="Who answers for each sub-agent.")
    human: HumanStubs = Field(LEFT_OUT, description="Answers of people: a list, or lists by node.")
    retrieval: dict[str, Entry] = Field(LEFT_OUT, description="Who answers for each retrieval node.")
    hooks: list[Dotted] = Field(LEFT_OUT, description="Dotted paths of hook executors to install.")
    faults: list[Fault] = Field(LEFT_OUT, description="Faults injected into the world.")
