"""The handler `llm`, and the functions that all model nodes share: params, prompts and calls with retries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final

from langchain_core.messages import HumanMessage, SystemMessage

from harness.dialects.kit.attempts import backoff, with_retries
from harness.dialects.kit.tool_calls import refuse_all
from harness.dialects.yagra.document import NodeSpec
from harness.engine.context import NodeContext
from harness.errors import HarnessError
from harness.graph.effects import LLMCall, LLMReply
from harness.graph.to_json import error_text
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
    values = {
        name: state.get(name, "") for name in _PLACEHOLDER.findall(f"{templates.system}\n{templates.user}")
    }
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
            if "{" in (width or "") or any(
                int(number) > _MAX_WIDTH for number in _NUMBER.findall(width or "")
            ):
                raise ValueError(f"{{{field}:{width}}} is wider than {_MAX_WIDTH} characters, or may be")
        return template.format(**values)
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        why = f"there is no value {error}" if isinstance(error, KeyError) else str(error)
        raise ModelParamsError(
            f"'prompt.{part}' cannot be filled in: {why} "
            "(expected plain names such as {topic}; {{ and }} are braces)",
            part,
        ) from error


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

    async def attempt() -> LLMReply:
        reply: LLMReply = await ctx.run.perform(effect, state, ctx.name)
        return reply

    attempts = 1 if node.retry else ATTEMPTS
    try:
        reply = await with_retries(attempt, ctx, attempts=attempts, delay_s=backoff(1.0, exponential=True))
    except Exception as error:
        if ctx.is_fatal(error):
            raise
        times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        raise ModelCallError(
            f"the call of model '{model.name}' failed after {times}: {error_text(error)}"
        ) from error
    refuse_all(reply.tool_calls, ctx)
    return reply


def _connection(model: Model, *names: str) -> str | None:
    """Return the first of these settings in the `kwargs` of a model that is non-empty text."""
    return next(
        (given for name in names if isinstance(given := model.settings.get(name), str) and given), None
    )


def _mapping(value: Any, name: str, of_what: str = "") -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ModelParamsError(f"{name} must be a mapping{of_what}, found {describe(value)}")
    return value


def _text(value: Any, name: str, *, empty: bool = True) -> str:
    if not isinstance(value, str) or not (value or empty):
        raise ModelParamsError(f"{name} must be text, found {describe(value)}")
    return value
