"""The types of properties, and the rules by which one can be cast to another. spec: "Type compatibility rules".

A `Type` is a JSON Schema reduced to the types that a value may have, without annotations and constraints.
No function here changes a schema or raises an error for one:

- `enum` and `const` without `type` give the types of their values; a schema without a type allows anything;
- `oneOf` is read as `anyOf`, and keywords beside them apply to each alternative;
- `allOf` and a local `$ref` are merged into the schema, and the first of two values wins; a recursive `$ref`, or one
  to another document, allows anything. A nested schema keeps its own `$defs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote

TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
NUMERIC: Final = frozenset({"boolean", "integer", "number"})
NO_DEFAULT: Final = object()


@dataclass(frozen=True, eq=False)
class Type:
    """The alternatives of a value, or any type (`anything`). With neither, no value has this type (`nothing`).

    `str` gives it in words: `string`, `array of number`, `integer or null`, `anything`.
    """

    alternatives: tuple[Alternative, ...] = ()
    anything: bool = False
    default: Any = NO_DEFAULT

    @property
    def nothing(self) -> bool:
        """True if no value has this type."""
        return not (self.anything or self.alternatives)

    def __str__(self) -> str:
        if not self.alternatives:
            return "anything" if self.anything else "nothing"
        return " or ".join(dict.fromkeys(_alternative_text(alternative) for alternative in self.alternatives))


ANYTHING: Final[Type] = Type(anything=True)
NOTHING: Final[Type] = Type()


@dataclass(frozen=True, eq=False)
class Alternative:
    """One named type, such as `string`.

    items       the type of the items of an `array`
    properties  the types of the properties of an `object`
    additional  the type of other properties of an `object`
    """

    name: str
    items: Type = ANYTHING
    properties: Mapping[str, Type] = field(default_factory=dict)
    additional: Type = ANYTHING


def castable(source: Type, target: Type) -> bool:
    """True if every value of the type `source` can be cast to the type `target`.

    A subtype can be cast. Everything can be cast to string; numbers, integers and booleans to each other. Arrays are
    compared by their items, unions by alternative. A value of any type can be cast only to string or anything.

    An object needs every property that the target lists, with a castable type; those with a default may be missing.
    Its other properties, named or not, must be castable to the target's `additionalProperties` (true by default). If
    that is false, it must be false in the source too; properties that only the source names are then dropped.
    """
    if target.anything:
        return True
    if source.anything:
        return any(alternative.name == "string" for alternative in target.alternatives)
    return all(any(_castable_alternative(a, b) for b in target.alternatives) for a in source.alternatives)


def same_type(a: Type, b: Type) -> bool:
    """True if both types have the same alternatives, items and properties."""
    if a.anything or b.anything:
        return a.anything and b.anything
    return _is_subset(a, b) and _is_subset(b, a)


def is_list_of(source: Type, inner: Type) -> bool:
    """True if `source` is an array (or null) whose items can be cast to the type `inner`."""
    held = [alternative for alternative in source.alternatives if alternative.name != "null"]
    return bool(held) and all(
        alternative.name == "array" and castable(alternative.items, inner) for alternative in held
    )


def type_of(schema: Any) -> Type:
    """Return the type that a JSON Schema defines."""
    root = (schema,) if isinstance(schema, Mapping) else ()
    return _Reader().read(schema, _Scope(root, frozenset(map(id, root))))


def _alternative_text(alternative: Alternative) -> str:
    if alternative.name != "array" or alternative.items.anything:
        return alternative.name
    items = str(alternative.items)
    return f"array of ({items})" if len(alternative.items.alternatives) > 1 else f"array of {items}"


# ---------------------------------------------------------------- comparing


def _castable_alternative(source: Alternative, target: Alternative) -> bool:
    if target.name == "string" or (source.name in NUMERIC and target.name in NUMERIC):
        return True
    if source.name != target.name:
        return False
    if target.name == "object":
        return _castable_object(source, target)
    return castable(source.items, target.items)


def _castable_object(source: Alternative, target: Alternative) -> bool:
    for name, wanted in target.properties.items():
        given = source.properties.get(name)
        if given is None and wanted.default is NO_DEFAULT:
            return False
        if not castable(given or source.additional, wanted):
            return False
    others = [given for name, given in source.properties.items() if name not in target.properties]
    return castable(source.additional, target.additional) and (
        target.additional.nothing or all(castable(given, target.additional) for given in others)
    )


def _is_subset(a: Type, b: Type) -> bool:
    return all(any(_same_alternative(one, other) for other in b.alternatives) for one in a.alternatives)


def _same_alternative(a: Alternative, b: Alternative) -> bool:
    return (
        a.name == b.name
        and same_type(a.items, b.items)
        and a.properties.keys() == b.properties.keys()
        and all(same_type(type_, b.properties[name]) for name, type_ in a.properties.items())
        and same_type(a.additional, b.additional)
    )


# ---------------------------------------------------------------- reading schemas

# References can make a schema very large. Beyond these limits it is read as anything.
_MAX_DEPTH: Final = 60
_MAX_SCHEMAS: Final = 10_000

_STRUCTURE: Final = (
    "type",
    "enum",
    "const",
    "items",
    "properties",
    "additionalProperties",
    "patternProperties",
    "anyOf",
    "oneOf",
)


@dataclass(frozen=True)
class _Scope:
    """The context of a nested schema.

    roots     the schemas that `#` may refer to, the innermost last
    followed  the ids of the schemas whose references led here
    depth     the depth of nesting
    """

    roots: tuple[Mapping[str, Any], ...]
    followed: frozenset[int] = frozenset()
    depth: int = 0

    def deeper(self, *, root: Mapping[str, Any] | None = None, reference: int | None = None) -> _Scope:
        return _Scope(
            self.roots if root is None else (*self.roots, root),
            self.followed if reference is None else self.followed | {reference},
            self.depth + 1,
        )


class _Reader:
    """A reader of one schema, which counts its parts."""

    def __init__(self) -> None:
        self.count = 0

    def read(self, schema: Any, scope: _Scope) -> Type:
        """Return the type of a schema in its scope."""
        if schema is False:
            return NOTHING
        self.count += 1
        if not isinstance(schema, Mapping) or scope.depth > _MAX_DEPTH or self.count > _MAX_SCHEMAS:
            return ANYTHING
        flat, scope = self._merged(schema, scope)
        found = self._type(flat, scope)
        return replace(found, default=flat["default"]) if "default" in flat else found

    def _type(self, flat: Mapping[str, Any], scope: _Scope) -> Type:
        for keyword in ("anyOf", "oneOf"):
            if isinstance(flat.get(keyword), list):
                beside = {key: flat[key] for key in _STRUCTURE if key in flat and key != keyword}
                members = [member for member in flat[keyword] if member is not False]
                return _union(self.read({"allOf": [member, beside]}, scope.deeper()) for member in members)
        names = [name for name in _type_names(flat) if name in TYPES]
        return Type(tuple(self._alternative(name, flat, scope) for name in names)) if names else ANYTHING

    def _alternative(self, name: str, flat: Mapping[str, Any], scope: _Scope) -> Alternative:
        inside = scope.deeper()
        if name == "array":
            return Alternative(name, items=self.read(flat.get("items", True), inside))
        if name == "object":
            properties, others = flat.get("properties"), flat.get("additionalProperties", True)
            return Alternative(
                name,
                properties={key: self.read(schema, inside) for key, schema in properties.items()}
                if isinstance(properties, Mapping)
                else {},
                additional=ANYTHING if flat.get("patternProperties") else self.read(others, inside),
            )
        return Alternative(name)

    def _merged(self, schema: Mapping[str, Any], scope: _Scope) -> tuple[dict[str, Any], _Scope]:
        """Merge `$ref` and `allOf` into a schema. Returns it with the scope of the schemas nested in it."""
        self.count += 1
        if "$defs" in schema:
            scope = scope.deeper(root=schema)
        flat = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        joined = schema.get("allOf")
        parts = list(joined) if isinstance(joined, list) else []
        target = _resolve_reference(schema.get("$ref"), scope.roots)
        if target is not None and id(target) not in scope.followed:
            scope = scope.deeper(reference=id(target))
            parts.insert(0, target)
        for part in parts:
            if isinstance(part, Mapping) and scope.depth <= _MAX_DEPTH and self.count <= _MAX_SCHEMAS:
                more, scope = self._merged(part, scope)
                both = flat.get("properties"), more.get("properties")
                flat = {**more, **flat}
                if all(isinstance(value, Mapping) for value in both):
                    flat["properties"] = {**more["properties"], **(both[0] or {})}
        return flat, scope


def _union(types: Iterable[Type]) -> Type:
    members = list(types)
    if any(member.anything for member in members):
        return ANYTHING
    return Type(tuple(alternative for member in members for alternative in member.alternatives))


def _type_names(flat: Mapping[str, Any]) -> Iterator[str]:
    declared = flat.get("type")
    if declared is None:
        values = [flat["const"]] if "const" in flat else flat.get("enum")
        declared = [_name_of(value) for value in values] if isinstance(values, list) else []
    names = declared if isinstance(declared, list) else [declared]
    yield from dict.fromkeys(name for name in names if isinstance(name, str))


def _name_of(value: Any) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object" if isinstance(value, Mapping) else "string"


def _resolve_reference(reference: Any, roots: tuple[Mapping[str, Any], ...]) -> Mapping[str, Any] | None:
    """Return the schema that a local reference (`#`, or `#` and a JSON pointer) refers to; None if there is none."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    steps = [unquote(step).replace("~1", "/").replace("~0", "~") for step in reference.split("/")[1:]]
    for root in reversed(roots):
        found: Any = root
        for step in steps:
            if isinstance(found, list) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            else:
                found = found.get(step) if isinstance(found, Mapping) else None
        if isinstance(found, Mapping):
            return found
    return None
