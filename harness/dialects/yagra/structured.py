"""The handler `structured_llm`, which validates a JSON reply against the `schema_yaml` of the node."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from pydantic import BaseModel, ValidationError, create_model

from harness.dialects.yagra.document import NodeSpec
from harness.dialects.yagra.model_nodes import (
    Model,
    ModelParamsError,
    Prompts,
    call_model,
    model_request,
)
from harness.engine.context import NodeContext
from harness.errors import FormatError, HarnessError
from harness.source.document import parse
from harness.source.models import describe
from harness.source.suggest import did_you_mean

TYPES: Final[Mapping[str, Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list[str]": list[str],
    "list[int]": list[int],
    "list[float]": list[float],
    "list[bool]": list[bool],
    "dict[str, str]": dict[str, str],
    "dict[str, int]": dict[str, int],
    "dict[str, Any]": dict[str, Any],
    "str | None": str | None,
    "int | None": int | None,
    "float | None": float | None,
    "bool | None": bool | None,
}
"""The types that `schema_yaml` may name. Those with None are optional and default to None."""

SCHEMA: Final = "schema_yaml"
_RESPONSE_FORMAT: Final = "response_format"


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
    response_format = settings.pop(_RESPONSE_FORMAT, {"type": "json_object"})
    model = Model(model.provider, model.name, settings)
    reply = await call_model(model, _with_schema(prompts, schema), node, state, ctx, response_format)
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
        raise ModelParamsError(
            f"'schema_yaml' must be text with lines of `field: type`, found {describe(text)}"
        )
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
        hint = did_you_mean(str(written), TYPES)
        raise ModelParamsError(
            f"'schema_yaml': field '{name}' has a type that is not known: {describe(written)} ({hint})"
        )
    return (kind, None if written.strip().endswith("None") else ...)
