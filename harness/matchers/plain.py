"""Matchers whose argument is plain data. Those whose argument may contain matchers are in `harness.matchers.value`.

The function of each takes the argument as written and returns the test of a value. It raises `FormatError` if the
argument is malformed.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from harness.errors import CannotEvaluate, ExpressionError, FormatError, Problem
from harness.matchers.json_schema import schema_errors, schema_validator
from harness.matchers.regex import searcher
from harness.source.display import clip, truncated
from harness.units import is_number

_SHOWN: Final = 80

Test = Callable[[Any], str | None]
"""A matcher with its argument bound: returns None if the value matches, otherwise the reason why not."""


class Kind(NamedTuple):
    """A matcher.

    Attributes:
        build: returns its test for an argument; raises `FormatError` if the argument is malformed.
        argument: the JSON Schema of the argument; `build` checks what that cannot say, such as a pattern.
        meaning: what it matches, as editors show it.
    """

    build: Callable[[Any], Test]
    argument: Mapping[str, Any]
    meaning: str


def matcher(argument: Mapping[str, Any], meaning: str) -> Callable[[Callable[[Any], Test]], Kind]:
    """Return a decorator that makes a function a matcher: see `Kind`."""
    return lambda build: Kind(build, argument, meaning)


class _Absent:
    """The actual value where the key does not exist."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT: Final = _Absent()

_TEXT: Final = {"type": "string"}
_TOLERANCE: Final = {"type": "number", "minimum": 0}


@matcher(_TEXT, "The same for text, ignoring case.")
def icontains(argument: Any) -> Test:
    """A text that contains this text, or a list or mapping with it as an item or key, ignoring case."""
    if not isinstance(argument, str):
        raise bad_argument("$icontains", "text", argument)
    wanted = argument.casefold()

    def test(actual: Any) -> str | None:
        if isinstance(actual, str):
            held = wanted in actual.casefold()
        elif isinstance(actual, Mapping | list | tuple):
            held = any(isinstance(item, str) and item.casefold() == wanted for item in actual)
        else:
            return f"{kind_of(actual)} contains nothing"
        return None if held else f"does not contain {shown(argument)} in any case"

    return test


@matcher(_TEXT, "A text in which this pattern is found.")
def regex(argument: Any) -> Test:
    """A text in which this pattern (Python's `re`) is found anywhere."""
    if not isinstance(argument, str):
        raise bad_argument("$regex", "a regular expression", argument)
    try:
        found = searcher(argument)
    except re.error as error:
        raise bad_argument("$regex", f"a regular expression ({error})", argument) from error

    def test(actual: Any) -> str | None:
        if not isinstance(actual, str):
            return f"expected text, was {kind_of(actual)}"
        return None if found(actual) else f"does not match /{argument}/"

    return test


def _order(name: str, sign: str, holds: Callable[[Any, Any], bool], meaning: str) -> Kind:
    """Return the matcher `name`: it compares numbers with numbers and texts with texts.

    ISO 8601 dates sort as text.
    """

    @matcher({"type": ["number", "string"]}, meaning)
    def build(argument: Any) -> Test:
        if not (_is_number(argument) or isinstance(argument, str)):
            raise bad_argument(name, "a number or text", argument)

        def test(actual: Any) -> str | None:
            comparable = _is_number(actual) if _is_number(argument) else isinstance(actual, str)
            if not comparable:
                return f"{kind_of(actual)} cannot be compared with {shown(argument)}"
            return None if holds(actual, argument) else f"is not {sign} {shown(argument)}"

        return test

    return build


gt: Final = _order("$gt", ">", operator.gt, "A number or text greater than this.")
gte: Final = _order("$gte", "≥", operator.ge, "A number or text not less than this.")
lt: Final = _order("$lt", "<", operator.lt, "A number or text less than this.")
lte: Final = _order("$lte", "≤", operator.le, "A number or text not greater than this.")


@matcher(
    {
        "type": "object",
        "properties": {"value": {"type": "number"}, "rel": _TOLERANCE, "abs": _TOLERANCE},
        "required": ["value"],
        "additionalProperties": False,
    },
    "A number close to `value`: within `abs`, or within the share `rel` of it.",
)
def approx(argument: Any) -> Test:
    """A number close to `value`: `|actual - value| <= max(rel * |value|, abs)`.

    If neither `rel` nor `abs` is given, `rel` is 1e-6; if only one is given, the other is 0.
    """
    wants = "{value, rel?, abs?} with numbers, rel and abs not below 0"
    if (
        not isinstance(argument, Mapping)
        or "value" not in argument
        or set(argument) - {"value", "rel", "abs"}
    ):
        raise bad_argument("$approx", wants, argument)
    value, rel, absolute = argument["value"], argument.get("rel", 0), argument.get("abs", 0)
    if not all(map(_is_number, (value, rel, absolute))) or rel < 0 or absolute < 0:
        raise bad_argument("$approx", wants, argument)
    tolerance = max(rel * abs(value), absolute) if len(argument) > 1 else 1e-6 * abs(value)

    def test(actual: Any) -> str | None:
        if not _is_number(actual):
            return f"expected a number, was {kind_of(actual)}"
        held = actual == value or abs(actual - value) <= tolerance
        return None if held else f"is not within {tolerance:g} of {value}"

    return test


TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")


@matcher({"enum": [*TYPES]}, "A value of this JSON type.")
def type_(argument: Any) -> Test:
    """A value of this JSON Schema type: 1.0 is an integer, and an integer is a number."""
    from jsonschema import Draft202012Validator

    if argument not in TYPES:
        raise bad_argument("$type", f"one of {', '.join(TYPES)}", argument)
    is_type = Draft202012Validator.TYPE_CHECKER.is_type
    return lambda actual: (
        None if is_type(actual, argument) else f"is {kind_of(actual)}, not of type {argument}"
    )


@matcher({"const": True}, "Any value that exists.")
def any_(argument: Any) -> Test:
    """Any value that exists, null included."""
    if argument is not True:
        raise bad_argument("$any", "true", argument)
    return lambda _: None


@matcher({"type": "boolean"}, "True: the key does not exist. False: it does.")
def missing(argument: Any) -> Test:
    """`true`: the key does not exist. `false`: it exists, with any value."""
    if not isinstance(argument, bool):
        raise bad_argument("$missing", "true or false", argument)

    def test(actual: Any) -> str | None:
        if argument:
            return None if actual is ABSENT else "is there"
        return "missing" if actual is ABSENT else None

    return test


@matcher({"type": ["object", "boolean"]}, "A value that is valid under this JSON Schema.")
def schema(argument: Any) -> Test:
    """A value that is valid under this JSON Schema."""
    schema_validator(argument)
    return lambda actual: "; ".join(schema_errors(argument, actual)) or None


@matcher(_TEXT, "A value for which this CEL expression of `value` is true.")
def cel(argument: Any) -> Test:
    """A value for which this CEL expression over `value` is true.

    The test raises `CannotEvaluate` if it has no value.
    """
    from harness.expressions.cel import compile as compile_cel

    if not isinstance(argument, str):
        raise bad_argument("$cel", "an expression", argument)
    try:
        expression = compile_cel(argument)
        expression.check_names(("value",))
    except ExpressionError as error:
        raise bad_argument("$cel", f"an expression ({error})", argument) from error

    def test(actual: Any) -> str | None:
        try:
            result = expression.evaluate({"value": actual})
        except ExpressionError as error:
            raise CannotEvaluate(f"$cel: {argument}: {error}") from None
        if not isinstance(result, bool):
            raise CannotEvaluate(f"$cel: {argument} is {shown(result)}, neither true nor false")
        return None if result else f"{argument} is false"

    return test


def bad_argument(name: str, wants: str, argument: Any) -> FormatError:
    """Return the error for a matcher with an invalid argument."""
    return FormatError(Problem("bad-matcher", f"{name} wants {wants}, not {shown(argument)}"))


def kind_of(value: Any) -> str:
    """Return the kind of a value in words: `a number`, `text`, `null`."""
    return "a mapping" if isinstance(value, Mapping) else _KINDS.get(type(value), type(value).__name__)


_KINDS: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    tuple: "a list",
}


def _is_number(value: Any) -> bool:
    return is_number(value) and value == value  # not NaN


def shown(value: Any) -> str:
    """Return a value as JSON on one short line."""
    return clip(json.dumps(truncated(value, _SHOWN), ensure_ascii=False, default=str), _SHOWN)
