"""Properties, the inputs and outputs of components. spec: "Input and output properties"."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, Final

from harness.dialects.agentspec.types import NO_DEFAULT, TYPES, Alternative, Type, type_of
from harness.dialects.kit.manifest import fill, placeholders
from harness.errors import HarnessError
from harness.matchers.schema_flaws import schema_flaw
from harness.source.document import DocumentPath
from harness.source.models import Mistake, describe

_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


class CastError(HarnessError):
    """A value that cannot be cast. `path` is the path of the part that cannot."""

    code = "cast"

    def __init__(self, value: Any, wanted: str, path: DocumentPath = ()) -> None:
        self.value, self.wanted, self.path = value, wanted, path
        steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
        place = f"{steps.removeprefix('.')}: " if path else ""
        super().__init__(f"{place}expected a value of type {wanted}, found {describe(value)}")


def cast_value(value: Any, wanted: Type, path: DocumentPath = ()) -> Any:
    """Cast a value to a type. `value` is not modified; `path` is its path in the whole value, for errors.

    Raises:
        CastError: it cannot be cast.
    """
    if wanted.anything:
        return value
    if len(wanted.alternatives) == 1:
        (only,) = wanted.alternatives
        return _CASTS[only.name](value, only, path)
    if value is None:
        return value
    found: list[tuple[int, Any]] = []
    for alternative in wanted.alternatives:
        with suppress(CastError):
            cast = _CASTS[alternative.name](value, alternative, path)
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


def _to_null(value: Any, wanted: Alternative, path: DocumentPath) -> None:
    if value is not None:
        raise CastError(value, "null", path)


def _to_string(value: Any, wanted: Alternative, path: DocumentPath) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        raise CastError(value, "string", path) from None


def _to_boolean(value: Any, wanted: Alternative, path: DocumentPath) -> bool:
    if isinstance(value, int | float):
        return value != 0
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise CastError(value, "boolean", path)


def _to_integer(value: Any, wanted: Alternative, path: DocumentPath) -> int:
    number = _parse_number(value) if isinstance(value, str) else value
    if isinstance(number, int):
        return int(number)
    # A number is truncated, but text with decimals is more likely a mistake.
    if isinstance(number, float) and math.isfinite(number) and (number is value or number.is_integer()):
        return int(number)
    raise CastError(value, "integer", path)


def _to_number(value: Any, wanted: Alternative, path: DocumentPath) -> float:
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


def _to_array(value: Any, wanted: Alternative, path: DocumentPath) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise CastError(value, str(Type((wanted,))), path)
    return [cast_value(item, wanted.items, (*path, index)) for index, item in enumerate(value)]


def _to_object(value: Any, wanted: Alternative, path: DocumentPath) -> dict[str, Any]:
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


_CASTS: Final[dict[str, Callable[[Any, Alternative, DocumentPath], Any]]] = {
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


_NOT_IN_TITLES: Final = frozenset(".,{}'\" \n")
_KEYS_OF_SIMPLE: Final = {"title", "description", "type", "default", "items"}
MAX_NODES: Final = 10_000
"""The maximum number of values in a property's schema. Checking a JSON Schema takes 50 µs for each."""


@dataclass(frozen=True)
class Property:
    """An input or output. `schema` is its JSON Schema as written, which has no `mistakes`."""

    schema: Mapping[str, Any]

    @cached_property
    def title(self) -> str:
        """The name of the property."""
        return str(self.schema["title"])

    @cached_property
    def type(self) -> Type:
        """The type of the property, cached because reading a schema takes longer than casting a value."""
        return type_of(self.schema)

    @property
    def has_default(self) -> bool:
        """True if the property has a default, which may be null."""
        return "default" in self.schema

    @property
    def default(self) -> Any:
        """A copy of the default. Raises KeyError if there is none."""
        return deepcopy(self.schema["default"])

    def cast(self, value: Any) -> Any:
        """Cast a value to the type of the property.

        Raises:
            CastError: it cannot be cast.
        """
        return cast_value(value, self.type)


def scalar_types(properties: Mapping[str, Property]) -> dict[str, str]:
    """Return the JSON types that the values of properties are cast to, by title, if those are single and scalar.

    A default is not cast, so that a property with one may have a value of any type.
    """
    only = {title: item.type.alternatives for title, item in properties.items() if not item.has_default}
    names = {title: found[0].name for title, found in only.items() if len(found) == 1}
    return {
        title: name for title, name in names.items() if name in ("string", "boolean", "integer", "number")
    }


def normalize_null_types(schema: Any) -> Any:
    """Return the schema with 'null' for null in lists of types. spec: "an input of type `[number, null]`"."""
    if isinstance(schema, list):
        return [normalize_null_types(item) for item in schema]
    if not isinstance(schema, Mapping) or not any(isinstance(item, dict | list) for item in schema.values()):
        return schema
    return {
        key: ["null" if item is None else item for item in value]
        if key == "type" and isinstance(value, list)
        else value
        if key in _DATA
        else normalize_null_types(value)
        for key, value in schema.items()
    }


_DATA: Final = ("default", "enum", "const", "examples")
"""The keywords whose values are data, and keep their nulls."""


def mistakes(schema: Any) -> Iterator[Mistake]:
    """Yield the mistakes in the schema of a property.

    Codes: `wrong-type`, `too-many-nodes`, `too-deep`, `property-title`, `bad-schema`, `property-default`.
    """
    if not isinstance(schema, Mapping):
        found = describe(schema)
        yield Mistake(f"a property is a JSON Schema: expected a mapping, found {found}", code="wrong-type")
        return
    if _is_too_large(schema):
        message = f"more than {MAX_NODES:,} values in a property, with references and aliases expanded"
        yield Mistake(message, code="too-many-nodes")
        return
    title = schema.get("title")
    if "title" not in schema:
        yield Mistake("a property needs a 'title', its name", code="property-title")
    elif not isinstance(title, str) or not title:
        message = f"the title of a property is its name: expected text, found {describe(title)}"
        yield Mistake(message, ("title",), code="property-title")
    yield from _title_mistakes(schema, ())
    invalid = list(_schema_mistakes(schema))
    yield from invalid
    if "default" in schema and not invalid and not fits(schema["default"], type_of(schema), as_default=True):
        message = f"the default must be of type {type_of(schema)}, found {describe(schema['default'])}"
        yield Mistake(message, ("default",), code="property-default")


def _is_too_large(schema: Any) -> bool:
    """True if a schema has too many values. A value with several aliases counts several times."""
    ahead, nodes = [schema], 0
    while ahead and nodes <= MAX_NODES:
        found = ahead.pop()
        nodes += 1
        if isinstance(found, Mapping):
            ahead += found.values()
        elif isinstance(found, list):
            ahead += found
    return nodes > MAX_NODES


def _title_mistakes(schema: Any, path: DocumentPath) -> Iterator[Mistake]:
    if not isinstance(schema, Mapping):
        return
    title = schema.get("title")
    if isinstance(title, str) and _NOT_IN_TITLES & set(title):
        message = f"a title has no space and none of . , {{ }} ' \" in it, found {describe(title)}"
        better = "_".join("".join(" " if char in _NOT_IN_TITLES else char for char in title).split())
        hint = f"write '{better}'" if better else ""
        yield Mistake(message, (*path, "title"), code="property-title", hint=hint)
    for keyword in ("items", "additionalProperties"):
        yield from _title_mistakes(schema.get(keyword), (*path, keyword))
    alternatives, properties = schema.get("anyOf"), schema.get("properties")
    for number, nested in enumerate(alternatives if isinstance(alternatives, list) else ()):
        yield from _title_mistakes(nested, (*path, "anyOf", number))
    for name, nested in properties.items() if isinstance(properties, Mapping) else ():
        yield from _title_mistakes(nested, (*path, "properties", name))


def _is_simple(schema: Any) -> bool:
    """True for simple types and arrays of them, which are valid without a check against the metaschema."""
    if not isinstance(schema, Mapping) or not schema.keys() <= _KEYS_OF_SIMPLE:
        return False
    texts = all(isinstance(schema.get(key, ""), str) for key in ("title", "description"))
    type_ = schema.get("type")
    items = "items" not in schema or _is_simple(schema["items"])
    return texts and items and isinstance(type_, str) and type_ in TYPES


def _schema_mistakes(schema: Mapping[str, Any]) -> Iterator[Mistake]:
    try:
        flaw = None if _is_simple(schema) else schema_flaw(schema)
    except RecursionError:
        yield Mistake("a JSON Schema that is nested too deep to be checked", code="too-deep")
        return
    if flaw is not None and flaw.path != ("title",):  # `_title_mistakes` has a better message
        message = f"not a JSON Schema: {flaw.message}"
        yield Mistake(message, flaw.path, code="bad-schema", hint=flaw.hint)


PLACEHOLDER: Final = re.compile(r"{{\s*(\w+)\s*}}")


def placeholder_names(value: Any) -> list[str]:
    """Return the names of the placeholders in a value, each once, in order."""
    return list(dict.fromkeys(found[1] for found in placeholders(value, PLACEHOLDER)))


def render(value: Any, values: Mapping[str, Any]) -> Any:
    """Return a text, list or mapping with each placeholder replaced by the `str` of its value.

    Placeholders without a value, and other braces, stay as they are.
    """
    return fill(value, PLACEHOLDER, lambda found: str(values.get(found[1], found[0])))
