"""The pydantic models of the world of a scenario, which build its `WorldSpec`.

Source: docs/scenario-format.md, "The world". The shape of a value selects its short or long form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, Tag, model_validator

from harness.scenario.document_stubs import (
    Error,
    HTTPStub,
    HumanAnswer,
    LLMAnswer,
    MCPStub,
    ReturnStub,
    conflict,
    error_answer,
    spec_of,
)
from harness.scenario.field_types import (
    LEFT_OUT,
    Count,
    Dotted,
    JSONSchemaMapping,
    Name,
    Seconds,
    Strict,
    by_shape,
    shape,
)
from harness.source.display import nearest
from harness.source.document import Document
from harness.source.models import Mistake, mistaken
from harness.world import spec as built

LLMStubs = Annotated[
    Annotated[list[LLMAnswer], Tag("list")] | Annotated[dict[str, list[LLMAnswer]], Tag("mapping")],
    by_shape("a list of stubs, or a mapping from node to such a list"),
]
HumanStubs = Annotated[
    Annotated[list[HumanAnswer], Tag("list")] | Annotated[dict[str, list[HumanAnswer]], Tag("mapping")],
    by_shape("a list of answers, or a mapping from node to such a list"),
]


def _callable(text: str) -> str:
    parts = text.split(".")
    if text == "real" or (len(parts) > 1 and all(part.isidentifier() for part in parts)):
        return text
    if nearest(text, ("real",)):
        hint = "did you mean 'real'?"
    elif text.endswith(".py") or "/" in text:
        hint = "a function is written module.function, its module as Python imports it"
    else:
        hint = f"to return it, write {{return: {text}}}"
    raise mistaken(Mistake(f"'{text}' is neither 'real' nor the dotted path of a callable", hint=hint))


class Real(Strict):
    """An entry that is answered by a Python callable."""

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


class ScriptedMCPTool(Strict):
    """A tool of a scripted MCP server."""

    model_config = ConfigDict(title="an MCP tool")

    name: Name = Field(description="Its name; unique in the server.")
    description: str = Field("", description="Its description for models.")
    input_schema: JSONSchemaMapping = Field(LEFT_OUT, description="JSON Schema (2020-12) of its arguments.")
    stubs: list[MCPStub] = Field(LEFT_OUT, examples=["stubs: [{return: …}]"], description="Its answers.")

    def spec(self, at: Document) -> built.MCPToolSpec:
        """Return the tool written at `at`."""
        schema = {"type": "object"} if self.input_schema is None else self.input_schema
        return built.MCPToolSpec(self.name, self.description, schema, _specs_below(self.stubs, at, "stubs"))


class ScriptedMCPServer(Strict):
    """A scripted MCP server."""

    model_config = ConfigDict(title="an MCP server")

    tools: list[ScriptedMCPTool] = Field(
        LEFT_OUT, examples=["tools: [{name: search, stubs: [{return: …}]}]"], description="Its tools."
    )
    latency: Seconds = Field(0.0, description="Virtual seconds added to every call.")
    error: Error = Field(LEFT_OUT, description="The error with which connecting fails.")

    @model_validator(mode="after")
    def _distinct_tools(self) -> Self:
        names = [tool.name for tool in self.tools or []]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise mistaken(
                    Mistake(f"a second tool '{name}'", ("tools", at, "name"), code="duplicate-name")
                )
        return self

    def spec(self, at: Document) -> built.MCPServerSpec:
        """Return the server written at `at`."""
        return built.MCPServerSpec(
            tools=_specs_below(self.tools, at, "tools"),
            latency_s=self.latency,
            error=error_answer(self.error),
            span=at.span(),
        )


Server = Annotated[
    Annotated[Literal["real"], Tag("text")] | Annotated[ScriptedMCPServer, Tag("mapping")],
    by_shape("'real', or a mapping with 'tools'"),
]


class Fault(Strict):
    """A fault that is injected into answers."""

    model_config = ConfigDict(title="a fault")
    triggers: ClassVar[tuple[str, ...]] = ("nth", "every", "rate")
    effects: ClassVar[tuple[str, ...]] = ("error", "latency", "truncate")

    effect: Literal["llm", "tool", "mcp", "http", "script", "agent"] = Field(description="The kind of calls.")
    node: str = Field(LEFT_OUT, description="Only calls of this node (glob).")
    name: str = Field(LEFT_OUT, description="Only calls of this name (glob).")
    nth: Annotated[int, Field(ge=1)] = Field(LEFT_OUT, description="Only the nth of the matching calls.")
    every: Annotated[int, Field(ge=1)] = Field(LEFT_OUT, description="Every nth of the matching calls.")
    rate: Annotated[float, Field(gt=0, le=1)] = Field(
        LEFT_OUT, description="This share of the matching calls, drawn from `seed`."
    )
    error: Error = Field(LEFT_OUT, description="An error instead of the answer.")
    latency: Seconds = Field(LEFT_OUT, description="Virtual seconds to add.")
    truncate: Count = Field(LEFT_OUT, description="Maximum length of the answer's text, in characters.")

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        for keys in (self.triggers, self.effects):
            given = self.written(*keys)
            if not given:
                message = f"a fault needs one of {', '.join(keys)}"
                raise mistaken(Mistake(message, code="missing-key"))
            if len(given) > 1:
                raise conflict(
                    given[1],
                    f"a fault has one of {', '.join(keys)}: '{{}}' cannot be combined with '{given[0]}'",
                )
        return self

    def spec(self, at: Document) -> built.FaultSpec:
        """Return the fault written at `at`."""
        return built.FaultSpec(
            effect=self.effect,
            node=self.node,
            name=self.name,
            nth=self.nth,
            every=self.every,
            rate=self.rate,
            error=error_answer(self.error),
            latency_s=self.latency,
            truncate=self.truncate,
            span=at.span(),
        )


class WorldKeys(Strict):
    """Keys that describe the world, in a scenario or in a turn."""

    llm: LLMStubs = Field(LEFT_OUT, description="Answers of models: a list, or lists by node.")
    tools: dict[str, Callee] = Field(
        LEFT_OUT, examples=["tools: {find_order: {return: …}}"], description="The answers of each tool."
    )
    mcp: dict[str, Server] = Field(
        LEFT_OUT,
        examples=["mcp: {docs: {tools: [{name: search, stubs: [{return: …}]}]}}"],
        description="The MCP servers, by id.",
    )
    http: list[HTTPStub] = Field(
        LEFT_OUT,
        examples=["http: [{url: https://shop.example/*, json: {…}}]"],
        description="Answers of HTTP services.",
    )
    scripts: dict[str, Entry] = Field(
        LEFT_OUT,
        examples=["scripts: {check: {return: {…}}}"],
        description="The answers of each script; by default it really runs.",
    )
    handlers: dict[str, Callee] = Field(
        LEFT_OUT,
        examples=["handlers: {find_order: {return: …}}"],
        description="The answers of each handler.",
    )
    agents: dict[str, Entry] = Field(
        LEFT_OUT, examples=["agents: {helper: {return: …}}"], description="The answers of each sub-agent."
    )
    human: HumanStubs = Field(LEFT_OUT, description="Answers of people: a list, or lists by node.")
    retrieval: dict[str, Entry] = Field(
        LEFT_OUT,
        examples=["retrieval: {search: {return: {context: …, sources: []}}}"],
        description="The answers of each retrieval node.",
    )
    hooks: list[Dotted] = Field(LEFT_OUT, description="Dotted paths of hook executors to install.")
    faults: list[Fault] = Field(LEFT_OUT, description="Faults injected into the world.")

    def world(self, at: Document) -> built.WorldSpec:
        """Return the world described at `at`."""
        written = {key: getattr(self, key) for key in BUILDERS if key in self.model_fields_set}
        return built.WorldSpec(**{key: BUILDERS[key](value, at.at((key,))) for key, value in written.items()})


# ---------------------------------------------------------------- from models to the spec


def _specs(models: Sequence[Any], at: Document) -> tuple[Any, ...]:
    return tuple(model.spec(at.at((index,))) for index, model in enumerate(models))


def _specs_below(models: Sequence[Any] | None, at: Document, key: str) -> tuple[Any, ...]:
    return _specs(models, at.at((key,))) if models else ()


def _stubs(stubs: Sequence[Any] | Mapping[str, Sequence[Any]], at: Document) -> tuple[built.Stub, ...]:
    """Return the stubs of a list, or of all lists of a mapping by node, in file order."""
    if isinstance(stubs, Mapping):
        return tuple(
            spec_of(stub, at, (node, index), node)
            for node, of_node in stubs.items()
            for index, stub in enumerate(of_node)
        )
    return tuple(spec_of(stub, at, (index,)) for index, stub in enumerate(stubs))


def _entry(entry: str | Real | ReturnStub | list[ReturnStub], at: Document) -> built.Entry:
    if isinstance(entry, str):
        return built.Entry(real=entry == "real" or entry, span=at.span())
    if isinstance(entry, Real):
        return built.Entry(real=entry.real, span=at.span())
    if isinstance(entry, ReturnStub):
        stub = entry.spec(at)
        return built.Entry(stubs=(stub,), span=stub.span)
    return built.Entry(stubs=_specs(entry, at), span=at.span())


def _entries(entries: Mapping[str, Any], at: Document) -> dict[str, built.Entry]:
    return {name: _entry(entry, at.at((name,))) for name, entry in entries.items()}


def _servers(servers: Mapping[str, str | ScriptedMCPServer], at: Document) -> dict[str, built.MCPServerSpec]:
    return {
        name: built.MCPServerSpec(real=True, span=at.span((name,)))
        if isinstance(server, str)
        else server.spec(at.at((name,)))
        for name, server in servers.items()
    }


BUILDERS: Final[Mapping[str, Callable[[Any, Document], Any]]] = {
    "llm": _stubs,
    "tools": _entries,
    "mcp": _servers,
    "http": _specs,
    "scripts": _entries,
    "handlers": _entries,
    "agents": _entries,
    "human": _stubs,
    "retrieval": _entries,
    "hooks": lambda hooks, _: tuple(hooks),
    "faults": _specs,
}
"""For each key of the world, the function that builds its part of the `WorldSpec`."""
