"""Properties, the inputs and outputs of components. spec: "Input and output properties"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from harness.dialects.agentspec.casts import cast_value, fits
from harness.dialects.agentspec.types import TYPES, Type, type_of
from harness.matchers.schema_flaws import schema_flaw
from harness.source.document import DocumentPath
from harness.source.models import Mistake, describe

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

    @property
    def type_text(self) -> str:
        """The type in words: `string`, `array of number`, `integer or null`, `anything`."""
        return str(self.type)

    def cast(self, value: Any) -> Any:
        """Cast a value to the type of the property.

        Raises:
            CastError: it cannot be cast.
        """
        return cast_value(value, self.type)


def normalize_null_types(schema: Any) -> Any:
    """Return the schema with 'null' for null in lists of types. spec: "an input of type `[number, null]`"."""
    if isinstance(schema, list):
        return [normalize_null_types(item) for item in schema]
    if not isinstance(schema, Mapping) or not any(isinstance(item, dict | list) for item in schema.values()):
        return schema
    return {
        key: _normalize_types(value) if key == "type" else _normalize_value(key, value)
        for key, value in schema.items()
    }


def _normalize_types(types: Any) -> Any:
    if isinstance(types, list):
        return ["null" if item is None else item for item in types]
    return normalize_null_types(types)


def _normalize_value(key: str, value: Any) -> Any:
    """Normalize the value of a keyword. Keywords whose values are data keep their nulls."""
    return value if key in ("default", "enum", "const", "examples") else normalize_null_types(value)


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
