"""Casting values to the type of a property. spec: "Type compatibility rules".

- To string: a string stays, any other value becomes its JSON text.
- Numbers, integers and booleans are cast to each other: a number is truncated towards zero to an integer, 0 is
  false, true is 1. A `number` is a float, also a whole one: 2 becomes 2.0, and texts and requests have 2.0.
- Text is read as a value if it can mean only one: `"2.5"` as a number, `"12"` as an integer, `"true"` as a boolean.
- Arrays are cast item by item, objects property by property. A missing property takes its default, or stays
  missing; a property that the type does not allow is dropped.
- In a union, null stays as it is. Any other value is cast to the alternative that changes it least: not at all; to an
  equal value (2 to 2.0); a number to its text; to any other type; anything to text. Of several, the first.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from operator import itemgetter
from typing import Any, Final

from harness.dialects.agentspec.types import NO_DEFAULT, Alternative, Type
from harness.errors import HarnessError
from harness.source.models import describe

Path = tuple[str | int, ...]

_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


class CastError(HarnessError):
    """A value that cannot be cast. `path` is the path of the part that cannot."""

    code = "cast"

    def __init__(self, value: Any, wanted: str, path: Path = ()) -> None:
        self.value, self.wanted, self.path = value, wanted, path
        steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
        place = f"{steps.removeprefix('.')}: " if path else ""
        super().__init__(f"{place}expected a value of type {wanted}, found {describe(value)}")


def cast_value(value: Any, wanted: Type, path: Path = ()) -> Any:
    """Cast a value to a type. `value` is not modified; `path` is its path in the whole value, for errors.

    Raises:
        CastError: it cannot be cast.
    """
    if wanted.anything:
        return value
    if len(wanted.alternatives) == 1:
        return _cast_to(value, wanted.alternatives[0], path)
    if value is None:
        return value
    found: list[tuple[int, Any]] = []
    for alternative in wanted.alternatives:
        with suppress(CastError):
            cast = _cast_to(value, alternative, path)
            found.append((_change(value, cast, alternative), cast))
    if not found:
        raise CastError(value, str(wanted), path)
    return min(found, key=itemgetter(0))[1]


def _change(value: Any, cast: Any, alternative: Alternative) -> int:
    """Return how much casting to an alternative of a union changes a value: 0 (not at all) to 4."""
    if repr(cast) == repr(value):
        return 0
    if _fits_alternative(value, alternative, as_default=False):
        return 1
    if alternative.name == "string":
        return 2 if isinstance(value, int | float) and not isinstance(value, bool) else 4
    return 3


def fits(value: Any, wanted: Type, *, as_default: bool = False) -> bool:
    """True if a value is already of the type, so that casting it returns an equal value.

    As in JSON Schema, true is not a number, and 2.0 is an integer.

    With `as_default`, true if the value may be declared as the default of a property of this type. A string may have
    any default; numbers, integers and booleans may have each other's values, but no text. An object needs every
    property that has no default of its own. Null is allowed for every union.
    """
    if wanted.anything or (as_default and value is None and len(wanted.alternatives) > 1):
        return True
    return any(_fits_alternative(value, alternative, as_default) for alternative in wanted.alternatives)


def as_text(value: Any) -> str:
    """Return text as it is, and any other value as JSON (`json.dumps`).

    Raises:
        CastError: the value cannot be written as JSON.
    """
    return _to_string(value, Alternative("string"), ())


# ---------------------------------------------------------------- casting


def _cast_to(value: Any, wanted: Alternative, path: Path) -> Any:
    return _CASTS[wanted.name](value, wanted, path)


def _to_null(value: Any, wanted: Alternative, path: Path) -> None:
    if value is not None:
        raise CastError(value, "null", path)


def _to_string(value: Any, wanted: Alternative, path: Path) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        raise CastError(value, "string", path) from None


def _to_boolean(value: Any, wanted: Alternative, path: Path) -> bool:
    if isinstance(value, int | float):
        return value != 0
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise CastError(value, "boolean", path)


def _to_integer(value: Any, wanted: Alternative, path: Path) -> int:
    number = _parse_number(value) if isinstance(value, str) else value
    if isinstance(number, int):
        return int(number)
    # A number is truncated, but text with decimals is more likely a mistake.
    if isinstance(number, float) and math.isfinite(number) and (number is value or number.is_integer()):
        return int(number)
    raise CastError(value, "integer", path)


def _to_number(value: Any, wanted: Alternative, path: Path) -> float:
    number = _parse_number(value) if isinstance(value, str) else value
    try:
        if isinstance(number, int | float):
            return float(number)
    except OverflowError:  # an integer that no float can hold
        pass
    raise CastError(value, "number", path)


def _parse_number(text: str) -> int | float | None:
    """Parse a number; None if the text is not one."""
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return int(text)
    except ValueError:  # decimals, or more digits than Python parses as an integer
        number = float(text)
    return number if math.isfinite(number) else None


def _to_array(value: Any, wanted: Alternative, path: Path) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise CastError(value, str(Type((wanted,))), path)
    return [cast_value(item, wanted.items, (*path, index)) for index, item in enumerate(value)]


def _to_object(value: Any, wanted: Alternative, path: Path) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise CastError(value, "object", path)
    result = {}
    for name, held in value.items():
        type_ = wanted.properties.get(name, wanted.additional)
        if not type_.nothing:
            result[name] = cast_value(held, type_, (*path, name))
    for name, type_ in wanted.properties.items():
        if name not in value and type_.default is not NO_DEFAULT:
            result[name] = cast_value(deepcopy(type_.default), type_, (*path, name))
    return result


_CASTS: Final[dict[str, Callable[[Any, Alternative, Path], Any]]] = {
    "null": _to_null,
    "string": _to_string,
    "boolean": _to_boolean,
    "integer": _to_integer,
    "number": _to_number,
    "array": _to_array,
    "object": _to_object,
}


# ---------------------------------------------------------------- fitting


def _fits_alternative(value: Any, wanted: Alternative, as_default: bool) -> bool:
    if wanted.name == "array":
        return isinstance(value, list) and all(
            fits(item, wanted.items, as_default=as_default) for item in value
        )
    if wanted.name == "object":
        return isinstance(value, Mapping) and _fits_object(value, wanted, as_default)
    return _is_allowed_default(value, wanted.name) if as_default else _has_type(value, wanted.name)


def _fits_object(value: Mapping[str, Any], wanted: Alternative, as_default: bool) -> bool:
    missing = [type_ for name, type_ in wanted.properties.items() if name not in value]
    # Casting adds a missing property with a default: a default may lack it, a value of the type may not.
    return all((type_.default is not NO_DEFAULT) == as_default for type_ in missing) and all(
        fits(held, wanted.properties.get(name, wanted.additional), as_default=as_default)
        for name, held in value.items()
    )


def _has_type(value: Any, name: str) -> bool:
    if isinstance(value, bool) or name == "boolean":
        return isinstance(value, bool) and name == "boolean"
    if name == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if name == "number":
        return isinstance(value, int | float)
    return value is None if name == "null" else isinstance(value, str)


def _is_allowed_default(value: Any, name: str) -> bool:
    if name == "null":
        return value is None
    return name == "string" or isinstance(value, int | float)
