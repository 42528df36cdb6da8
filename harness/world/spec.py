"""The models of the world of a scenario: stubs by kind of call, servers, faults. `ScriptedWorld` answers from them.

Source: docs/scenario-format.md, "The world". The shape of a value selects its short or long form; validation turns
the short form into the long one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, Tag, model_validator

from harness.errors import Span
from harness.graph.effects import EFFECTS, Effect
from harness.graph.world import Answer
from harness.matchers.regex import vagueness
from harness.source.display import nearest
from harness.source.document import Document, DocumentPath
from harness.source.models import Mistake, mistaken
from harness.world.failures import Error, ErrorMapping
from harness.world.field_types import (
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
from harness.world.stub_models import (
    AnyStub,
    HTTPStub,
    HumanStub,
    LLMStub,
    MCPStub,
    Placed,
    ReturnStub,
    conflict,
)

S = TypeVar("S", bound=AnyStub)


def _by_node(stubs: dict[str, list[S]]) -> list[S]:
    """Return the stubs of all nodes as one list: first those of the names that say more, else in file order."""
    nodes = sorted(stubs, key=vagueness)
    return [stub.listed_under(node) for node in nodes for stub in stubs[node]]


def _listed(kind: Any, one: str, several: str) -> Any:
    """Return the type of the stubs of a kind: a list, or lists by node. A text alone is a stub that replies so."""
    of_text = kind.model_construct({"reply"}, reply="")  # copying it is much faster than making one

    def replying(text: str) -> Any:
        return of_text.model_copy(update={"reply": text})

    stub = Annotated[
        Annotated[str, AfterValidator(replying), Tag("text")] | Annotated[kind, Tag("mapping")],
        by_shape(f"a text or a {one}"),
    ]
    return Annotated[
        Annotated[list[stub], Tag("list")]
        | Annotated[dict[str, list[stub]], AfterValidator(_by_node), Tag("mapping")],
        by_shape(f"a list of {several}, or a mapping from node to such a list"),
    ]


if TYPE_CHECKING:
    LLMStubs = list[LLMStub]
    HumanStubs = list[HumanStub]
else:
    LLMStubs = _listed(LLMStub, "stub", "stubs")
    HumanStubs = _listed(HumanStub, "mapping", "answers")


def _callable(text: str) -> Real:
    parts = text.split(".")
    if text == "real" or (len(parts) > 1 and all(part.isidentifier() for part in parts)):
        return _real(text)
    if nearest(text, ("real",)):
        hint = "did you mean 'real'?"
    elif text.endswith(".py") or "/" in text:
        hint = "a function is written module.function, its module as Python imports it"
    else:
        hint = f"to return it, write {{return: {text}}}"
    raise mistaken(Mistake(f"'{text}' is neither 'real' nor the dotted path of a callable", hint=hint))


class Real(Placed):
    """An entry that is answered by a Python callable."""

    model_config = ConfigDict(title="an entry with 'real'")

    real: Dotted = Field(description="The dotted path of the callable.")

    @property
    def function(self) -> str | None:
        """The dotted path of the callable; None for the one that the manifest names."""
        return None if self.real == "real" else self.real


def _real(text: str) -> Real:
    return Real.model_construct({"real"}, real=text)


def _entry_shape(value: Any) -> str | None:
    is_real = isinstance(value, Real) or (isinstance(value, dict) and "real" in value)
    return "real" if is_real else shape(value)


_STUBS = "a stub list, or a mapping with 'return'"
if TYPE_CHECKING:
    Callee = Real | list[ReturnStub]
    Entry = Callee
else:
    _Stubs = (
        Annotated[ReturnStub, AfterValidator(ReturnStub.alone), Tag("mapping")]
        | Annotated[list[ReturnStub], Tag("list")]
    )
    Callee = Annotated[
        Annotated[str, AfterValidator(_callable), Tag("text")] | Annotated[Real, Tag("real")] | _Stubs,
        by_shape(f"'real', the dotted path of a callable, {_STUBS}", _entry_shape),
    ]
    Entry = Annotated[
        Annotated[Literal["real"], AfterValidator(_real), Tag("text")] | _Stubs,
        by_shape(f"'real', {_STUBS}"),
    ]


class ScriptedMCPTool(Strict):
    """A tool of a scripted MCP server."""

    model_config = ConfigDict(title="an MCP tool")

    name: Name = Field(description="Its name; unique in the server.")
    description: str = Field("", description="Its description for models.")
    input_schema: JSONSchemaMapping = Field(
        default_factory=lambda: {"type": "object"}, description="JSON Schema (2020-12) of its arguments."
    )
    stubs: list[MCPStub] = Field(
        default_factory=list, examples=["stubs: [{return: …}]"], description="Its answers."
    )


class ScriptedMCPServer(Placed):
    """A scripted MCP server."""

    model_config = ConfigDict(title="an MCP server")
    real: ClassVar[bool] = False

    tools: list[ScriptedMCPTool] = Field(
        default_factory=list,
        examples=["tools: [{name: search, stubs: [{return: …}]}]"],
        description="Its tools.",
    )
    latency: Seconds = Field(0.0, description="Virtual seconds added to every call.")
    error: Error = Field(LEFT_OUT, description="The error with which connecting fails.")

    @model_validator(mode="after")
    def _distinct_tools(self) -> Self:
        names = [tool.name for tool in self.tools]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise mistaken(
                    Mistake(f"a second tool '{name}'", ("tools", at, "name"), code="duplicate-name")
                )
        return self


class RealMCPServer(ScriptedMCPServer):
    """The server that the manifest names."""

    real: ClassVar[bool] = True


if TYPE_CHECKING:
    Server = ScriptedMCPServer
else:
    Server = Annotated[
        Annotated[Literal["real"], AfterValidator(lambda _: RealMCPServer.model_construct()), Tag("text")]
        | Annotated[ScriptedMCPServer, Tag("mapping")],
        by_shape("'real', or a mapping with 'tools'"),
    ]


class Fault(Placed):
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


class WorldSpec(Strict):
    """The world of a scenario or of a turn. Mappings are by the name of the tool, server, script and so on."""

    llm: LLMStubs = Field(default_factory=list, description="Answers of models: a list, or lists by node.")
    tools: dict[str, Callee] = Field(
        default_factory=dict,
        examples=["tools: {find_order: {return: …}}"],
        description="The answers of each tool.",
    )
    mcp: dict[str, Server] = Field(
        default_factory=dict,
        examples=["mcp: {docs: {tools: [{name: search, stubs: [{return: …}]}]}}"],
        description="The MCP servers, by id.",
    )
    http: list[HTTPStub] = Field(
        default_factory=list,
        examples=["http: [{url: https://shop.example/*, json: {…}}]"],
        description="Answers of HTTP services.",
    )
    scripts: dict[str, Entry] = Field(
        default_factory=dict,
        examples=["scripts: {check: {return: {…}}}"],
        description="The answers of each script; by default it really runs.",
    )
    handlers: dict[str, Callee] = Field(
        default_factory=dict,
        examples=["handlers: {find_order: {return: …}}"],
        description="The answers of each handler.",
    )
    agents: dict[str, Entry] = Field(
        default_factory=dict,
        examples=["agents: {helper: {return: …}}"],
        description="The answers of each sub-agent.",
    )
    human: HumanStubs = Field(
        default_factory=list, description="Answers of people: a list, or lists by node."
    )
    retrieval: dict[str, Entry] = Field(
        default_factory=dict,
        examples=["retrieval: {search: {return: {context: …, sources: []}}}"],
        description="The answers of each retrieval node.",
    )
    hooks: list[Dotted] = Field(
        default_factory=list, description="Dotted paths of hook executors to install."
    )
    faults: list[Fault] = Field(default_factory=list, description="Faults injected into the world.")

    def lists(self) -> Iterator[StubsAt]:
        """Yield each list of stubs, with the kind of effects that it answers and its path in the world."""
        for effect in BY_FORM:
            key, written = effect.key, getattr(self, effect.key)
            if effect.stubs == "list":
                for node, stubs in groupby(written, key=lambda stub: stub.list_node):
                    yield effect, (key,) if node is None else (key, node), [*stubs]
                continue
            for name, entry in written.items():
                if effect.stubs == "name" and not isinstance(entry, Real):
                    yield effect, (key, name), entry
                elif effect.stubs == "server":
                    for index, tool in enumerate(entry.tools):
                        yield effect, (key, name, "tools", index, "stubs"), tool.stubs

    def stubs(self, *kinds: str) -> Iterator[AnyStub]:
        """Yield all stubs, or those for effects of these kinds."""
        return (
            stub for effect, _, stubs in self.lists() if not kinds or effect.kind in kinds for stub in stubs
        )

    def real(self) -> Iterator[tuple[DocumentPath, Real]]:
        """Yield the entries that a Python callable answers, each with its path."""
        for effect in EFFECTS.values():
            entries = getattr(self, effect.key) if effect.stubs == "name" else {}
            yield from (
                ((effect.key, name), each) for name, each in entries.items() if isinstance(each, Real)
            )

    def placed(self, at: Document) -> WorldSpec:
        """Return this world alone, written at `at`, with the location of each part of it."""
        keys = self.model_fields_set & WorldSpec.model_fields.keys()
        world = WorldSpec.model_construct(
            set(keys), **{key: getattr(self, key) for key in WorldSpec.model_fields}
        )
        for _, path, stubs in world.lists():
            for index, stub in enumerate(stubs):
                stub.place(at.span(stub.path(path, index)))
        for path, entry in world.real():
            entry.place(at.span(path))
        for name, server in world.mcp.items():
            server.place(at.span(("mcp", name)))
        for index, fault in enumerate(world.faults):
            fault.place(at.span(("faults", index)))
        return world


StubsAt = tuple[type[Effect], DocumentPath, Sequence[AnyStub]]
BY_FORM: Final = sorted(EFFECTS.values(), key=lambda effect: ("list", "name", "server").index(effect.stubs))
"""The kinds of effects in the order of their stubs: one list, by name, by server."""


@dataclass(frozen=True)
class ScriptedAnswer(Answer):
    """An answer from a stub, a fault or a scripted server (`source`). `title` names the stub list in messages."""

    source: AnyStub | Fault | ScriptedMCPServer | None = None
    title: str = ""

    @property
    def failure(self) -> ErrorMapping | None:
        """The error as written in the scenario; None if the answer is a value."""
        return None if self.source is None else self.source.error

    @property
    def span(self) -> Span | None:
        """The location of the source in the scenario."""
        return None if self.source is None else self.source.span

    @property
    def description(self) -> str:
        """A short description of the answer, for messages."""
        return self.source.described(self.title) if isinstance(self.source, AnyStub) else self.title
