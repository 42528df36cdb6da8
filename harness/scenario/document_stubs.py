"""The pydantic models of stubs, each of which builds a `harness.world.spec.Stub`.

Source: docs/scenario-format.md, "The world".
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from harness.scenario.field_types import (
    LEFT_OUT,
    MatcherMapping,
    Name,
    Seconds,
    Strict,
    Times,
    Tokens,
    When,
    by_shape,
)
from harness.source.document import Document, DocumentPath
from harness.source.models import Mistake, mistaken
from harness.world.spec import ErrorAnswer, ErrorKind, Stub

_BUILT_IN: Final = tuple(
    sorted(
        name
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, Exception)
    )
)


def _exception(name: str) -> str:
    """Check the name of a built-in exception, or of one of the agent's own (such as `LensDirty`, `ProviderError`)."""
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

    kind: ErrorKind = Field(description="The kind of error.")
    message: str = Field(LEFT_OUT, description="Its text; each kind has a default.")
    type: Annotated[str, AfterValidator(_exception)] = Field(
        LEFT_OUT, description="The built-in exception, for kind `exception`; RuntimeError by default."
    )
    retry_after: Seconds = Field(
        LEFT_OUT, description="Seconds after which a client may retry, sent as a header."
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


def error_answer(error: ErrorKind | ErrorMapping | None) -> ErrorAnswer | None:
    """Return the error that a stub answers with, or None if it has none."""
    if isinstance(error, ErrorMapping):
        return ErrorAnswer(error.kind, error.message, error.type, error.retry_after)
    return None if error is None else ErrorAnswer(error)


class AnyStub(Strict):
    """Keys that every stub has: matchers, latency, and an error instead of an answer."""

    node: str = Field(LEFT_OUT, description="The calling node (glob).")
    args: MatcherMapping = Field(
        LEFT_OUT, description="The arguments of the call contain these; matchers apply."
    )
    when: When = Field(LEFT_OUT, description="A CEL condition; it can read `request` and `state`.")
    times: Times = Field(LEFT_OUT, description="Number of times it answers: an integer, or `any`.")
    latency: Seconds = Field(0.0, description="Virtual seconds until the answer.")
    error: Error = Field(LEFT_OUT, description="An error instead of an answer.")

    answers: ClassVar[tuple[str, ...]] = ()
    """The keys that are answers; a stub has one of them."""
    combinable: ClassVar[tuple[str, ...]] = ()
    """Those of `answers` that may stand together."""
    details: ClassVar[tuple[str, ...]] = ()
    """Keys that accompany an answer but are not one."""
    needs_answer: ClassVar[bool] = True
    matched: ClassVar[tuple[str, ...]] = ()
    """Matchers that only calls of this kind have."""
    default_times: ClassVar[Literal[1, "any"]] = 1

    @model_validator(mode="after")
    def _one_answer(self) -> Self:
        given = self.written(*self.answers)
        if self.error is not None:
            others = given + self.written(*self.details)
            if others:
                raise conflict(others[0], "a stub answers with 'error' or with '{}', not both")
        elif not given and self.answers and self.needs_answer:
            hint = f"give it {', '.join(self.answers)} or error"
            raise mistaken(Mistake("this stub has no answer", code="missing-answer", hint=hint))
        elif len(given) > 1 and not set(given) <= set(self.combinable):
            raise conflict(given[1], f"a stub gives one answer: '{{}}' cannot be combined with '{given[0]}'")
        return self

    def spec(self, at: Document, *nodes: str) -> Stub:
        """Return the stub written at `at`. `nodes` are globs that its calls must match in addition to its own."""
        return Stub(
            span=at.span(),
            nodes=nodes if self.node is None else (*nodes, self.node),
            args=self.arguments(),
            when=self.when,
            times=self.times or self.default_times,
            latency_s=self.latency,
            error=error_answer(self.error),
            answer=self.answer(at),
            **{key: getattr(self, key) for key in self.matched},
        )

    def arguments(self) -> dict[str, Any] | None:
        """Return the expected arguments of the call."""
        return self.args

    def answer(self, at: Document) -> dict[str, Any]:
        """Return the keys of the answer as they are written."""
        written = at.value
        return {key: written[key] for key in (*self.answers, *self.details) if key in written}


def conflict(key: str, message: str) -> PydanticCustomError:
    """Return the mistake for a key that cannot stand beside another; `message` contains `{}` for the key."""
    return mistaken(Mistake(message.format(key), (key,), on_key=True, code="conflicting-keys"))


class ReplyToolCall(Strict):
    """A tool call of a model's answer."""

    model_config = ConfigDict(title="a tool call")
    elsewhere: ClassVar[Mapping[str, str]] = {
        "function": "write {name: …, args: {…}}",
        "input": "did you mean 'args'?",
    }

    name: Name = Field(description="The tool.")
    args: dict[str, Any] = Field(LEFT_OUT, description="Its arguments; none by default.")
    id: str = Field(LEFT_OUT, description="Its id; generated by default.")


class Usage(Strict):
    """Numbers of tokens as a provider reports them."""

    model_config = ConfigDict(title="usage")

    input_tokens: Tokens = Field(0, description="Tokens of the request.")
    output_tokens: Tokens = Field(0, description="Tokens of the answer.")


class LLMStub(AnyStub):
    """A scripted answer of a model."""

    model_config = ConfigDict(title="a stub")
    answers: ClassVar[tuple[str, ...]] = ("reply", "json", "tool_calls", "chunks")
    combinable: ClassVar[tuple[str, ...]] = ("reply", "tool_calls")
    details: ClassVar[tuple[str, ...]] = ("usage", "finish_reason")
    matched: ClassVar[tuple[str, ...]] = ("model",)
    elsewhere: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("content", "text", "return", "response", "answer"), "did you mean 'reply'?"
    )

    model: str = Field(LEFT_OUT, description="The requested model (glob).")
    reply: str = Field(LEFT_OUT, description="The answer's text.")
    json_: Any = Field(LEFT_OUT, alias="json", description="A value; the text is its compact JSON.")
    tool_calls: list[ReplyToolCall] = Field(
        LEFT_OUT,
        examples=["tool_calls: [{name: find_order, args: {number: 17}}]"],
        description="Tools that the model calls; may be combined with `reply`.",
    )
    chunks: list[str] = Field(LEFT_OUT, description="Texts, streamed one by one.")
    usage: Usage = Field(LEFT_OUT, description="Tokens that the provider reports.")
    finish_reason: str = Field(
        LEFT_OUT, description="The reason why the answer ends, as the provider reports it."
    )


class ReturnStub(AnyStub):
    """A scripted result of a tool, handler, agent, script or retrieval."""

    model_config = ConfigDict(title="a stub")
    elsewhere: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("reply", "response", "result", "value", "json", "output"), "did you mean 'return'?"
    )
    answers: ClassVar[tuple[str, ...]] = ("return",)
    default_times: ClassVar[Literal[1, "any"]] = "any"

    return_: Any = Field(LEFT_OUT, alias="return", description="The result.")


class MCPStub(AnyStub):
    """A scripted result of a tool of an MCP server."""

    model_config = ConfigDict(title="a stub")
    answers: ClassVar[tuple[str, ...]] = ("return", "content")
    default_times: ClassVar[Literal[1, "any"]] = "any"

    return_: Any = Field(LEFT_OUT, alias="return", description="Text, or a value for structured content.")
    content: list[dict[str, Any]] = Field(LEFT_OUT, description="MCP content blocks.")


class HTTPStub(AnyStub):
    """A scripted HTTP response; without an answer, an empty one with status 200."""

    model_config = ConfigDict(title="a stub")
    answers: ClassVar[tuple[str, ...]] = ("json", "text")
    details: ClassVar[tuple[str, ...]] = ("status", "headers")
    needs_answer: ClassVar[bool] = False
    matched: ClassVar[tuple[str, ...]] = ("method", "url")
    elsewhere: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("body", "return", "reply", "response", "content"), "the body is 'json' or 'text'"
    )

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
            raise conflict("query", "'{}' is short for 'query' in 'args': write it there")
        return self

    def arguments(self) -> dict[str, Any] | None:
        return self.args if self.query is None else {**(self.args or {}), "query": self.query}


class HumanStub(AnyStub):
    """A person's answer. Keys that are not the stub's own are the reply, unless `reply` is given."""

    model_config = ConfigDict(title="a stub", extra="allow")

    reply: Any = Field(LEFT_OUT, description="The answer, sent as it is.")

    @model_validator(mode="after")
    def _reply_or_error(self) -> Self:
        others = list(self.model_extra or {})
        if self.written("reply") and others:
            raise conflict(others[0], "'{}' is not sent: 'reply' gives the whole answer")
        given = self.written("reply") + others
        if self.written("error") and given:
            raise conflict(given[0], "a stub answers with 'error' or with '{}', not both")
        return self

    def answer(self, at: Document) -> dict[str, Any]:
        """Return the reply; an empty mapping if none is written."""
        if self.error is not None:
            return {}
        return {"reply": self.reply if self.written("reply") else dict(self.model_extra or {})}


def spec_of(stub: str | AnyStub, at: Document, path: DocumentPath, *nodes: str) -> Stub:
    """Return the stub written at `path` of `at`; a text is its reply."""
    if isinstance(stub, str):
        return Stub(span=at.span(path), nodes=nodes, answer={"reply": stub})
    return stub.spec(at.at(path), *nodes)


LLMAnswer = Annotated[
    Annotated[str, Tag("text")] | Annotated[LLMStub, Tag("mapping")],
    by_shape("a text or a stub"),
]
HumanAnswer = Annotated[
    Annotated[str, Tag("text")] | Annotated[HumanStub, Tag("mapping")],
    by_shape("a text or a mapping"),
]
