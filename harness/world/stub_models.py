"""The models of stubs: a scripted answer as a scenario has it, which calls it applies to, and what it answers.

Source: docs/scenario-format.md, "The world".
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from harness.errors import Span, WorldError
from harness.graph.effects import Effect, HTTPReply, LLMReply
from harness.graph.to_json import compact_json, from_json
from harness.matchers.regex import glob_matches, last_part_matches
from harness.source.display import clip
from harness.source.document import DocumentPath
from harness.source.models import Mistake, mistaken
from harness.world.failures import Error
from harness.world.field_types import (
    LEFT_OUT,
    MatcherMapping,
    Name,
    Seconds,
    Strict,
    Times,
    Tokens,
    When,
    fields_of,
)


class Placed(Strict):
    """A part of a world, which knows its location in the scenario once it is placed."""

    # Kept beside the fields: reading a private attribute of pydantic is slow.
    span: ClassVar[Span | None] = None
    """The location in the scenario; None if it is not from a file."""

    def place(self, span: Span | None) -> None:
        """Set the location; None if it has none."""
        self.__dict__["span"] = span

    called: ClassVar[Callable[..., Any] | None] = None
    """Answers in place of what is written."""

    def answer_by(self, function: Callable[..., Any]) -> None:
        """Let a function answer in place of what is written."""
        self.__dict__["called"] = function


class AnyStub(Placed):
    """A scripted answer. The keys that every stub has: matchers, latency, and an error instead of an answer."""

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
    matchers: ClassVar[tuple[str, ...]] = ("node", "args", "when")
    """The keys that say which calls it applies to."""
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

    list_node: ClassVar[str | None] = None
    """The key of the mapping by node that it is listed under."""
    is_alone: ClassVar[bool] = False
    """True if it is written without a list."""

    def listed_under(self, node: str) -> Self:
        """Return this stub as one of the list of this node (glob)."""
        self.__dict__["list_node"] = node
        return self

    def alone(self) -> list[Self]:
        """Return a list of this stub alone, which is written without a list."""
        self.__dict__["is_alone"] = True
        return [self]

    def for_any_node(self) -> Self:
        """Return a copy that applies to the calls of any node."""
        return self.model_copy(update={"node": None, "list_node": None, "nodes": ()})

    def path(self, of_list: DocumentPath, index: int) -> DocumentPath:
        """Return its path, given that of its list and its index there."""
        return of_list if self.is_alone else (*of_list, index)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The globs that must all match the calling node."""
        return tuple(node for node in (self.list_node, self.node) if node is not None)

    @property
    def uses(self) -> int | Literal["any"]:
        """The number of times that it answers."""
        uses: int | Literal["any"] = self.times or self.default_times
        return uses

    def arguments(self) -> dict[str, Any] | None:
        """Return the expected arguments of the call; None for any."""
        return self.args

    def reasons_against(self, effect: Effect) -> Iterator[str]:
        """Yield the reason for each matcher of this kind of stub alone that does not match."""
        return iter(())

    @property
    def answer(self) -> dict[str, Any]:
        """The keys of the answer, as they are written."""
        fields, given, values = fields_of(type(self)), self.model_fields_set, vars(self)
        written = {key: fields[key] for key in (*self.answers, *self.details)}
        return {key: values[name] for key, name in written.items() if name in given}

    def value(self, answer: dict[str, Any]) -> Any:
        """Return what the call returns for a copy of `answer`."""
        return answer.get("return")

    def answer_to(self, effect: Effect) -> Any:
        """Return what a call returns: the written answer, or that of a function, which gets the request.

        Raises:
            ValueError: the function gave what is no answer.
            WorldError: the function gave nothing.
            Exception: whatever the function raises: the call fails with it.
        """
        if self.called is None:  # a copy: the caller may change it, and the stub may answer again
            return self.value(copy.deepcopy(self.answer))
        given = self.called(SimpleNamespace(**effect.request()))
        return self.value(type(self).answer_of(given))

    @classmethod
    def answer_of(cls, given: Any) -> dict[str, Any]:
        """Return what a function gave as the keys of an answer."""
        return {"return": given}

    def described(self, title: str) -> str:
        """Return a short description of this stub, for messages. `title` names its list."""
        if self.error is not None:
            return f"{title}: error {self.error.kind}"
        written = ", ".join(f"{key}: {clip(repr(value), 60)}" for key, value in self.answer.items())
        return f"{title}: {written or 'an empty answer'}"


def conflict(key: str, message: str) -> PydanticCustomError:
    """Return the mistake for a key that cannot stand beside another; `message` contains `{}` for the key."""
    return mistaken(Mistake(message.format(key), (key,), on_key=True, code="conflicting-keys"))


def _as_written(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    check(value)
    return value


AsWritten: Final = WrapValidator(_as_written)
"""Checks a value against a model, and keeps it as it is written."""


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
    matchers: ClassVar[tuple[str, ...]] = ("node", "model", "args", "when")
    elsewhere: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("content", "text", "return", "response", "answer"), "did you mean 'reply'?"
    )

    model: str = Field(LEFT_OUT, description="The requested model (glob).")
    reply: str = Field(LEFT_OUT, description="The answer's text.")
    json_: Any = Field(LEFT_OUT, alias="json", description="A value; the text is its compact JSON.")
    tool_calls: list[Annotated[ReplyToolCall, AsWritten]] = Field(
        LEFT_OUT,
        examples=["tool_calls: [{name: find_order, args: {number: 17}}]"],
        description="Tools that the model calls; may be combined with `reply`.",
    )
    chunks: list[str] = Field(LEFT_OUT, description="Texts, streamed one by one.")
    usage: Annotated[Usage, AsWritten] = Field(LEFT_OUT, description="Tokens that the provider reports.")
    finish_reason: str = Field(
        LEFT_OUT, description="The reason why the answer ends, as the provider reports it."
    )

    def reasons_against(self, effect: Effect) -> Iterator[str]:
        if self.model is not None and not last_part_matches(self.model, effect.name):
            yield f"model is {effect.name!r}, not {self.model!r}"

    @classmethod
    def answer_of(cls, given: Any) -> dict[str, Any]:
        if isinstance(given, str):
            return {"reply": given}
        if isinstance(given, Mapping) and given.keys() & {*cls.answers}:
            return dict(given)
        if hasattr(given, "tool_calls") and hasattr(given, "content"):  # a message of LangChain
            return {"reply": str(given.content), "tool_calls": [dict(call) for call in given.tool_calls]}
        if given is None:  # probably a `return` is missing
            text = "a callable under `llm:` returned None: a text, data, or a mapping with the keys of a stub"
            raise WorldError(f"{text} is expected")
        return {"json": given}

    def value(self, answer: dict[str, Any]) -> LLMReply:
        chunks = tuple(answer.get("chunks", ()))
        text = compact_json(answer["json"]) if "json" in answer else answer.get("reply", "".join(chunks))
        return LLMReply(
            text=text,
            tool_calls=tuple(answer.get("tool_calls", ())),
            usage=answer.get("usage", {}),
            finish_reason=answer.get("finish_reason"),
            chunks=chunks,
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
    elicit: dict[str, Any] = Field(
        LEFT_OUT,
        examples=["elicit: {message: Sure?, requestedSchema: {type: object, properties: {…}}}"],
        description="What the server asks a person before it answers: the parameters of `elicitation/create`.",
    )
    sample: dict[str, Any] = Field(
        LEFT_OUT,
        examples=["sample: {messages: [{role: user, content: {type: text, text: …}}], maxTokens: 100}"],
        description="What the server asks a model before it answers: the parameters of `sampling/createMessage`.",
    )

    @property
    def needs_answer(self) -> bool:  # type: ignore[override]
        """False for a stub that gives what its question was answered with."""
        return self.question() is None

    def question(self) -> tuple[str, dict[str, Any]] | None:
        """Return what the server asks before it answers: method and parameters of the request; None for nothing."""
        if self.elicit is not None:
            schema = {"requestedSchema": {"type": "object", "properties": {}}}
            return "elicitation/create", {"message": "", **schema, **self.elicit}
        return None if self.sample is None else ("sampling/createMessage", self.sample)


class HTTPStub(AnyStub):
    """A scripted HTTP response; without an answer, an empty one with status 200."""

    model_config = ConfigDict(title="a stub")
    answers: ClassVar[tuple[str, ...]] = ("json", "text")
    details: ClassVar[tuple[str, ...]] = ("status", "headers")
    needs_answer: ClassVar[bool] = False
    matchers: ClassVar[tuple[str, ...]] = ("node", "args", "when", "method", "url", "query")
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

    def reasons_against(self, effect: Effect) -> Iterator[str]:
        method = effect.args.get("method")
        if self.method is not None and self.method.upper() != str(method or "").upper():
            yield f"method is {method!r}, not {self.method!r}"
        if self.url is not None and not glob_matches(self.url, effect.name):
            yield f"url is {effect.name!r}, not {self.url!r}"

    @classmethod
    def answer_of(cls, given: Any) -> dict[str, Any]:
        if isinstance(given, str):
            return {"text": given}
        is_response = isinstance(given, Mapping) and given.keys() & {*cls.answers, *cls.details}
        return dict(given) if is_response else {"json": given}

    def value(self, answer: dict[str, Any]) -> HTTPReply:
        has_json = "json" in answer
        text = compact_json(answer["json"]) if has_json else answer.get("text", "")
        return HTTPReply(
            status=answer.get("status", 200),
            text=text,
            json=answer["json"] if has_json else from_json(text),
            headers={name.lower(): value for name, value in answer.get("headers", {}).items()},
        )


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

    @property
    def answer(self) -> dict[str, Any]:
        """The reply; an empty mapping if none is written."""
        if self.error is not None:
            return {}
        return {"reply": self.reply if self.written("reply") else dict(self.model_extra or {})}

    @classmethod
    def answer_of(cls, given: Any) -> dict[str, Any]:
        return {"reply": given}

    def value(self, answer: dict[str, Any]) -> Any:
        return answer["reply"]
