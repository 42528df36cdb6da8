"""Field types of scenario files: numbers, names, CEL, JSON Schemas, matchers, and unions discriminated by shape."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import date
from functools import cache
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    WithJsonSchema,
)

from harness.errors import ExpressionError, FormatError
from harness.source.models import Mistake, describe, mistaken
from harness.units import LARGEST_FIGURE, MOST_TOKENS, parse_instant

LEFT_OUT: Final[Any] = None
"""Default of optional keys. A key that is written does not accept null."""


class Strict(BaseModel):
    """Base of all models: a mapping without unknown keys, whose values are not coerced."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        protected_namespaces=(),
        defer_build=True,  # a nested model is built as a part of the outer one
    )

    def written(self, *keys: str) -> list[str]:
        """Return those of `keys` that are present, in this order."""
        fields, given = fields_of(type(self)), self.model_fields_set
        return [key for key in keys if fields.get(key) in given]


@cache
def fields_of(model: type[Strict]) -> dict[str, str]:
    """Return the field name of each key of a model."""
    return {field.alias or name: name for name, field in model.model_fields.items()}


def shape(value: Any) -> str | None:
    """Return `text`, `list` or `mapping`: the tag that selects the short or long form of a value."""
    return _SHAPES.get(type(value), "mapping" if isinstance(value, BaseModel) else None)


_SHAPES: Final[dict[type, str]] = {str: "text", list: "list", dict: "mapping"}


def by_shape(expected: str, shape_of: Callable[[Any], str | None] = shape) -> Discriminator:
    """Return the discriminator of a union whose members are tagged by shape; `expected` is used in error messages."""
    return Discriminator(shape_of, custom_error_type="shape", custom_error_message=f"expected {expected}")


def env_text(value: Any) -> Any:
    """Convert a number or boolean in `env`, which needs no quotes, to the text that YAML 1.2 writes for it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else value


EnvValue = Annotated[
    str, BeforeValidator(env_text), WithJsonSchema({"type": ["string", "number", "boolean"]})
]

# ---------------------------------------------------------------- numbers and names

Seconds = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Weight = Annotated[float, Field(gt=0, le=LARGEST_FIGURE)]
Tokens = Annotated[int, Field(ge=0, lt=MOST_TOKENS)]
Name = Annotated[str, Field(min_length=1)]


def _instant(value: Any) -> Any:
    """Check an instant. YAML reads one that is not quoted as text or as a date."""
    text = value.isoformat() if isinstance(value, date) else value
    if isinstance(text, str):
        parse_instant(text)
    return text


Instant = Annotated[str, BeforeValidator(_instant)]


class PromptFile(Strict):
    """A prompt in a file of its own."""

    model_config = ConfigDict(title="a prompt")

    file: Name = Field(description="Its path, relative to this file.")


def _times(value: Any) -> Any:
    if value == "any" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise mistaken(Mistake(f"times: expected a whole number from 1, or any, found {describe(value)}"))


Times = Annotated[
    Any,
    AfterValidator(_times),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "any"}]}),
]


def _dotted(value: str) -> str:
    parts = value.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        raise mistaken(Mistake(f"'{value}' is not a dotted path, such as package.module.name"))
    return value


Dotted = Annotated[str, AfterValidator(_dotted)]


# ---------------------------------------------------------------- languages of their own


def cel(*variables: str) -> AfterValidator:
    """Return the validator of a CEL expression that may read these variables."""

    def validator(source: str) -> str:
        from harness.expressions.cel import compile as compile_cel

        hint = ""
        try:
            expression = compile_cel(source)
            hint = _known_names(expression.names, variables)
            expression.check_names(variables)
        except ExpressionError as error:
            within = (error.line, error.column) if error.column else None
            hint = "" if "did you mean" in str(error) else hint
            mistake = Mistake(f"not valid CEL: {error}", code="bad-expression", within=within, hint=hint)
            raise mistaken(mistake) from None
        return source

    return AfterValidator(validator)


def _known_names(used: Collection[str], known: Sequence[str]) -> str:
    """Return the hint for unknown variables, or "". The fields of a call are in `request`."""
    lost = sorted(set(used).difference(known))
    if not lost:
        return ""
    example = f"; a field of the call is read as request.{lost[0]}" if "request" in known else ""
    return f"the names here are {', '.join(known)}{example}"


When = Annotated[str, cel("request", "state")]
"""The condition of a stub."""


def _schema(value: Any) -> Any:
    from harness.matchers.json_schema import schema_validator

    try:
        schema_validator(value)
    except FormatError as error:
        raise mistaken(Mistake(error.problems[0].message, code="bad-schema")) from None
    return value


JSONSchema = Annotated[dict[str, Any] | bool, AfterValidator(_schema)]
JSONSchemaMapping = Annotated[dict[str, Any], AfterValidator(_schema)]


def _matcher(value: Any) -> Any:
    from harness.matchers.value import malformed

    flaws = [Mistake(f.message, f.path, f.on_name, code=f.code, hint=f.hint) for f in malformed(value)]
    if flaws:
        raise mistaken(*flaws)
    return value


EXPECTED_VALUE: Final = "x-expected-value"
"""Marks an expected value in a JSON Schema; `harness.scenario.schema` puts the schema of values in its place."""

Matcher = Annotated[Any, AfterValidator(_matcher), WithJsonSchema({EXPECTED_VALUE: True})]
"""An expected value, which may contain matchers at any depth."""

MatcherMapping = Annotated[
    dict[str, Any], AfterValidator(_matcher), WithJsonSchema({"type": "object", EXPECTED_VALUE: True})
]
"""A mapping that must be contained, or a matcher for a mapping."""
