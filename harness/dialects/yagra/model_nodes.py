"""The built-in handlers `llm`, `streaming_llm` and `structured_llm`: params, prompts, calls with retries, replies."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from string import Formatter
from typing import Any, Final

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, ValidationError, create_model

from harness.dialects.kit.attempts import backoff, with_retries
from harness.dialects.kit.tool_calls import refuse_all
from harness.dialects.yagra.document import NodeSpec
from harness.engine.context import NodeContext
from harness.errors import FormatError, HarnessError
from harness.graph.effects import LLMCall, LLMReply
from harness.graph.to_json import error_text
from harness.source.display import did_you_mean
from harness.source.document import parse
from harness.source.models import describe

ATTEMPTS: Final = 3
"""The number of attempts for a node without `retry`, with delays of 1 s and 2 s."""

OUTPUT_KEY: Final = "output_key"
DEFAULT_OUTPUT_KEY: Final = "output"

_NOT_SENT: Final = frozenset({"api_key", "drop_params", "metadata"})
"""Settings that are not sent: API keys stay out of traces, the others configure LiteLLM itself."""

_MAX_WIDTH: Final = 1000
_NUMBER: Final = re.compile(r"\d+")
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")


class ModelParamsError(HarnessError):
    """Invalid params of a model node. `part` is `system` or `user` if that prompt cannot be filled."""

    code = "model-params"

    def __init__(self, text: str, part: str = "") -> None:
        super().__init__(text)
        self.part = part


class ModelCallError(HarnessError):
    """A model call that failed in every attempt."""

    code = "model-call"


@dataclass(frozen=True)
class Prompts:
    """The texts of the two messages of a model node, as templates or filled."""

    system: str
    user: str


@dataclass(frozen=True)
class Model:
    """The `model` of a node. spec: "Node with Parameters". `settings` are its `kwargs`."""

    provider: str
    name: str
    settings: Mapping[str, Any]


async def llm(
    node: NodeSpec, params: Mapping[str, Any], state: Mapping[str, Any], ctx: NodeContext
) -> Mapping[str, Any]:
    """Call the model and return the text of its reply under `output_key`.

    Raises:
        ModelParamsError: the params are not valid, or the prompt cannot be filled.
        ModelCallError: the model failed in every attempt.
    """
    key, model, prompts = model_request(params, state)
    return {key: (await call_model(model, prompts, node, state, ctx)).text}


def model_request(params: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[str, Model, Prompts]:
    """Return the output key, the model and the filled prompts of a model node.

    Placeholders are filled from the state; a missing key is empty text.

    Raises:
        ModelParamsError: a param is missing or malformed, or a placeholder is not a plain name.
    """
    return output_key_of(params), model_of(params), fill_prompts(templates_of(params), state)


def output_key_of(params: Mapping[str, Any]) -> str:
    """Return the state key that a model node writes."""
    return _text(params.get(OUTPUT_KEY, DEFAULT_OUTPUT_KEY), "'output_key'")


def model_of(params: Mapping[str, Any]) -> Model:
    """Return the model of a model node."""
    given = _mapping(params.get("model"), "'model'", " with provider and name")
    return Model(
        _text(given.get("provider"), "'model.provider'", empty=False),
        _text(given.get("name"), "'model.name'", empty=False),
        dict(_mapping(given.get("kwargs", {}), "'model.kwargs'")),
    )


def templates_of(params: Mapping[str, Any]) -> Prompts:
    """Return the prompt templates of a model node."""
    given = _mapping(params.get("prompt"), "'prompt'", " with system and user")
    system, user = (_text(given.get(part, ""), f"'prompt.{part}'") for part in ("system", "user"))
    return Prompts(system, user)


def fill_prompts(templates: Prompts, state: Mapping[str, Any]) -> Prompts:
    """Fill prompt templates from the state; see `model_request`."""
    names = _PLACEHOLDER.findall(f"{templates.system}\n{templates.user}")
    values = {name: state.get(name, "") for name in names}
    return Prompts(_fill(templates.system, values, "system"), _fill(templates.user, values, "user"))


def _fill(template: str, values: Mapping[str, Any], part: str) -> str:
    """Fill one template, a Python format string. `values` has the names that are a plain `{name}` in either prompt.

    Attribute access is refused, because a format string could reach any object through it, and so are widths that
    would exhaust the memory.
    """
    try:
        for _, field, width, _ in Formatter().parse(template):
            if "." in (field or ""):
                raise ValueError(f"{{{field}}} reads an attribute")
            numbers = map(int, _NUMBER.findall(width or ""))
            if "{" in (width or "") or any(number > _MAX_WIDTH for number in numbers):
                raise ValueError(f"{{{field}:{width}}} is wider than {_MAX_WIDTH} characters, or may be")
        return template.format(**values)
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        why = f"there is no value {error}" if isinstance(error, KeyError) else str(error)
        hint = "(expected plain names such as {topic}; {{ and }} are braces)"
        raise ModelParamsError(f"'prompt.{part}' cannot be filled in: {why} {hint}", part) from error


async def call_model(
    model: Model,
    prompts: Prompts,
    node: NodeSpec,
    state: Mapping[str, Any],
    ctx: NodeContext,
    response_format: Any = None,
) -> LLMReply:
    """Call the model and return its reply. If the node has a `retry`, only one attempt is made here.

    Raises:
        ModelCallError: every attempt failed.
    """
    effect = LLMCall(
        name=model.name,
        provider=model.provider,
        base_url=_connection(model, "base_url", "api_base"),
        api_key=_connection(model, "api_key"),
        params={name: value for name, value in model.settings.items() if name not in _NOT_SENT},
        as_written=True,
        messages=(SystemMessage(content=prompts.system), HumanMessage(content=prompts.user)),
        response_format=response_format,
    )
    attempt = partial(ctx.run.perform, effect, state, ctx.name)
    attempts = 1 if node.retry else ATTEMPTS
    try:
        reply: LLMReply = await with_retries(
            attempt, ctx, attempts=attempts, delay_s=backoff(1.0, exponential=True)
        )
    except Exception as error:
        if ctx.is_fatal(error):
            raise
        times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        text = f"the call of model '{model.name}' failed after {times}: {error_text(error)}"
        raise ModelCallError(text) from error
    refuse_all(reply.tool_calls, ctx)
    return reply


def _connection(model: Model, *names: str) -> str | None:
    """Return the first of these settings in the `kwargs` of a model that is non-empty text."""
    texts = (given for name in names if isinstance(given := model.settings.get(name), str))
    return next(filter(None, texts), None)


def _mapping(value: Any, name: str, of_what: str = "") -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ModelParamsError(f"{name} must be a mapping{of_what}, found {describe(value)}")
    return value


def _text(value: Any, name: str, *, empty: bool = True) -> str:
    if not isinstance(value, str) or not (value or empty):
        raise ModelParamsError(f"{name} must be text, found {describe(value)}")
    return value


class Stream(Iterator[str]):
    """An iterator over the chunks of a reply, which can be read once. `str` gives the whole reply at any time."""

    __slots__ = ("_left", "_text")

    def __init__(self, chunks: Sequence[str]) -> None:
        self._text = "".join(chunks)
        self._left = iter([chunk for chunk in chunks if chunk])

    def __next__(self) -> str:
        return next(self._left)

    def __str__(self) -> str:
        return self._text


async def streaming_llm(
    node: NodeSpec, params: Mapping[str, Any], state: Mapping[str, Any], ctx: NodeContext
) -> Mapping[str, Any]:
    """Call the model and return a `Stream` of its reply under `output_key`.

    Only failures before the stream begins are retried.

    Raises:
        ModelParamsError: the params are not valid, or the prompt cannot be filled.
        ModelCallError: the model failed in every attempt.
    """
    key, model, prompts = model_request(params, state)
    streamed = replace(model, settings={"stream": True, **model.settings})
    reply = await call_model(streamed, prompts, node, state, ctx)
    return {key: Stream(reply.chunks or (reply.text,))}


_SCALARS: Final = (str, int, float, bool)
TYPES: Final[Mapping[str, Any]] = {
    **{kind.__name__: kind for kind in _SCALARS},
    **{f"list[{kind.__name__}]": list[kind] for kind in _SCALARS},  # type: ignore[valid-type]
    **{"dict[str, str]": dict[str, str], "dict[str, int]": dict[str, int], "dict[str, Any]": dict[str, Any]},
    **{f"{kind.__name__} | None": kind | None for kind in _SCALARS},
}
"""The types that `schema_yaml` may name. Those with None are optional and default to None."""

SCHEMA: Final = "schema_yaml"


class ModelAnswerError(HarnessError):
    """A reply that is not JSON or does not match the schema."""

    code = "model-answer"


async def structured_llm(
    node: NodeSpec, params: Mapping[str, Any], state: Mapping[str, Any], ctx: NodeContext
) -> Mapping[str, Any]:
    """Call the model and return its reply under `output_key`, as an object with the fields of `schema_yaml`.

    Raises:
        ModelParamsError: the params are not valid, or the prompt cannot be filled.
        ModelCallError: the model failed in every attempt.
        ModelAnswerError: the reply does not match the schema.
    """
    schema = schema_of(params.get(SCHEMA))
    key, model, prompts = model_request(params, state)
    settings = dict(model.settings)
    response_format = settings.pop("response_format", {"type": "json_object"})
    asking = _with_schema(prompts, schema)
    reply = await call_model(replace(model, settings=settings), asking, node, state, ctx, response_format)
    return {key: parse_reply(reply.text, schema)}


def parse_reply(text: str, schema: type[BaseModel]) -> BaseModel:
    """Parse a reply as an instance of the pydantic model `schema`.

    Raises:
        ModelAnswerError: it is not JSON, or does not match the schema. The message names every wrong field.
    """
    try:
        return schema.model_validate_json(text)
    except ValidationError as invalid:
        faults = [
            ": ".join(filter(None, (".".join(map(str, fault["loc"])), _fault_text(fault))))
            for fault in invalid.errors(include_url=False)
        ]
        raise ModelAnswerError(f"the reply is not what schema_yaml asks for: {'; '.join(faults)}") from None


def _fault_text(fault: Mapping[str, Any]) -> str:
    if fault["type"] == "missing":
        return "it is missing"
    return f"{fault['msg']}, found {describe(fault['input'])}"


def _with_schema(prompts: Prompts, schema: type[BaseModel]) -> Prompts:
    schema_text = json.dumps(schema.model_json_schema(), ensure_ascii=False)
    system = f"{prompts.system}\n\nAnswer with JSON alone, valid under this JSON Schema:\n{schema_text}"
    return replace(prompts, system=system.strip())


def schema_of(text: Any) -> type[BaseModel]:
    """Return the pydantic model of a `schema_yaml`, a text with lines of `field: type`.

    Raises:
        ModelParamsError: it is missing, cannot be parsed, or names an unknown type.
    """
    if not isinstance(text, str) or not text.strip():
        why = f"'schema_yaml' must be text with lines of `field: type`, found {describe(text)}"
        raise ModelParamsError(why)
    return _schema(text)


@lru_cache(maxsize=256)
def _schema(text: str) -> type[BaseModel]:
    try:
        fields = parse(text, file="schema_yaml", yaml="1.1", error=FormatError).value
    except FormatError as error:
        raise ModelParamsError(f"'schema_yaml' cannot be read: {error}") from None
    if not isinstance(fields, dict) or not fields:
        raise ModelParamsError(f"'schema_yaml' must be a mapping of field to type, found {describe(fields)}")
    declared = {name: _field(name, written) for name, written in fields.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pydantic warns of a field named like one of its attributes
            found: type[BaseModel] = create_model("Answer", **declared)
            return found
    except (NameError, TypeError, ValueError, RuntimeError) as error:
        raise ModelParamsError(f"'schema_yaml' cannot be used: {error}") from None


def _field(name: str, written: Any) -> Any:
    """Return a field for pydantic: its type, and its default or `...`."""
    kind = TYPES.get(written.strip()) if isinstance(written, str) else None
    if kind is None:
        found = f"{describe(written)} ({did_you_mean(str(written), TYPES)})"
        raise ModelParamsError(f"'schema_yaml': field '{name}' has a type that is not known: {found}")
    return (kind, None if written.strip().endswith("None") else ...)
