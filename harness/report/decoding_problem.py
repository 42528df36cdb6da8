"""Explain in words why JSON does not match its type: the field, the value found, and the type expected."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from harness.source.display import clip, did_you_mean, printable

_EXCERPT: Final = 60
_KINDS: Final = {
    "array": "a list",
    "object": "a mapping",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}


class DecodingProblem(NamedTuple):
    """The explanation of a decoding error.

    text      the explanation
    hint      a suggestion, such as a similar field name; "" for none
    expected  the kind of document that was expected, if the input is of another kind; "" otherwise
    line, column  the location in the input, from 1 on
    """

    text: str
    hint: str = ""
    expected: str = ""
    line: int = 1
    column: int = 1


def decoding_problem(
    raw: bytes, error: Exception, format_: str | None, choices: Mapping[str, Sequence[str]] | None = None
) -> DecodingProblem:
    """Explain why msgspec could not decode `raw`.

    Args:
        raw: the input.
        error: the exception of msgspec.
        format_: the expected value of the field `format`, if the document has one.
        choices: the values allowed for some fields, for suggestions.
    """
    from msgspec import ValidationError
    from msgspec.json import decode

    try:
        parsed = decode(raw)
    except (ValueError, RecursionError) as broken:
        byte = re.search(r"\(byte (\d+)\)", str(broken))
        at = int(byte[1]) if byte else 0
        before, text = raw[:at].split(b"\n"), raw[at : at + _EXCERPT].decode(errors="replace")
        return DecodingProblem(
            _format_value(text), expected="JSON", line=len(before), column=len(before[-1]) + 1
        )
    found = parsed.get("format") if isinstance(parsed, dict) else parsed
    if format_ is not None and found != format_:
        return DecodingProblem(f"found {_format_value(found)}", expected=f"the format {format_}")
    if not isinstance(error, ValidationError):
        return DecodingProblem(str(error))
    message, _, place = str(error).partition(" - at ")
    return DecodingProblem(
        *_explain_field(message, place.strip("`").removeprefix("$").removeprefix("."), parsed, choices or {})
    )


def _explain_field(
    message: str, field: str, line: dict[str, Any], known_values: Mapping[str, Sequence[str]]
) -> tuple[str, str]:
    """Return the explanation for a field, and a hint."""
    value, name = _value_at(line, field), field.replace("[...]", "[…]")
    if missing := re.fullmatch("Object missing required field `(.*)`", message):
        known = value if isinstance(value, dict) else {}
        name = ".".join(filter(None, (name, missing[1])))
        return f"it has no '{name}'", did_you_mean(missing[1], known, listing=False)
    if choices := known_values.get(field):
        return f"{name} cannot be {_format_value(value)}", did_you_mean(str(value), choices)
    expected = re.match(r"Expected `([^`]*)`, got", message)
    if expected is None:
        return f"{name} cannot be {_format_value(value)}", ""
    kinds = " or ".join(_KINDS.get(kind, kind) for kind in expected[1].split(" | "))
    return f"{name} must be {kinds}, found {_format_value(value)}", ""


def _value_at(line: Any, field: str) -> Any:
    """Return the value of a field such as `checks[0].name`. Stops at `[...]`, where msgspec names no key."""
    for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", field.partition("[...]")[0]):
        line = line[int(index)] if index else line[key]
    return line


def _format_value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return clip(printable(repr(value)), _EXCERPT)
