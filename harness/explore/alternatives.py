"""The alternatives of a JSON Schema: flat schemas, of which a value has to be valid under one.

References are followed, `allOf` is merged, and `anyOf`, `oneOf`, `if` and lists of types become alternatives. Those
that nothing is valid under are left out, as far as that is seen without drawing values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import inf
from re import error as PatternError
from typing import Any, Final, NamedTuple

from harness.errors import HarnessError
from harness.explore.scalars import numbers, texts
from harness.matchers.json_schema import schema_validator
from harness.source.display import clip

_TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
_TYPE_OF_KEYWORD: Final = {
    **dict.fromkeys(("properties", "required", "additionalProperties", "patternProperties"), "object"),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"), "array"),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
}
_NOTES: Final = ("title", "description", "default", "examples")
_TIGHTER: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    **{f"min{of}": max for of in ("imum", "Length", "Items", "Properties")},
    **{f"max{of}": min for of in ("imum", "Length", "Items", "Properties")},
    "exclusiveMinimum": max,
    "exclusiveMaximum": min,
    "required": lambda one, other: [*one, *(name for name in other if name not in one)],
    "enum": lambda one, other: [value for value in one if value in other],
    "uniqueItems": lambda one, other: one or other,
}


class NotDrawable(HarnessError):
    """A schema that no value was found for. `why` says which part of it, as far as that is known."""

    code = "not-drawable"

    def __init__(self, schema: Any, why: str) -> None:
        self.schema, self.why = schema, why
        super().__init__(f"no value can be drawn for the schema {clip(as_text(schema), 200)}: {why}")


def as_text(schema: Any) -> str:
    """Return a schema, or a value, as JSON: equal texts are equal schemas, with properties in the same order."""
    return json.dumps(schema, default=dict, ensure_ascii=False)


class Alternative(NamedTuple):
    """A type, or `enum`, and a schema without references and combinations."""

    kind: str
    flat: dict[str, Any]


class Alternatives:
    """The alternatives of a schema and of the schemas inside it."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._named = {
            key: root[key] for key in ("$defs", "definitions") if isinstance(root, dict) and key in root
        }
        self._options_of: dict[str, list[Alternative]] = {}
        self._heights: dict[str, float] = {}

    def of(self, schema: Any) -> list[Alternative]:
        """Return the alternatives that end, simple ones first: null, then those that are nested less."""
        heights = [(self._height_of(each, ()), each) for each in self._options(schema)]
        found = [(each.kind != "null", height, each) for height, each in heights if height < inf]
        return [each for *_, each in sorted(found, key=lambda entry: entry[:2])]

    def ends(self, schema: Any) -> bool:
        """True if a value of the schema does not have to contain another of its kind."""
        return self._height(schema, ()) < inf

    def candidates(self, alternative: Alternative, words: Sequence[str]) -> list[Any]:
        """Return the scalars to choose from, which are valid.

        Raises:
            NotDrawable: the schema has a pattern that is none.
        """
        kind, flat = alternative
        asking = {key: value for key, value in flat.items() if key not in _NOTES}
        is_valid = schema_validator(asking | (self._named if "$ref" in as_text(asking) else {})).is_valid
        try:
            match kind:
                case "enum":
                    found: Sequence[Any] = flat["enum"]
                case "null":
                    found = (None,)
                case "boolean":
                    found = (False, True)
                case "string":
                    found = texts(flat, words)
                case _:
                    found = numbers(flat, words, whole=kind == "integer")
            return [each for each in found if is_valid(each)]
        except (PatternError, OverflowError) as error:
            raise NotDrawable(self.root, str(error)) from error

    def _options(self, schema: Any) -> list[Alternative]:
        """Return the alternatives of a schema that something is valid under, each with its type, or `enum`."""
        key = as_text(schema)
        if key in self._options_of:
            return self._options_of[key]
        found: list[Alternative] = []
        for flat in self._flat(schema, ()):
            if "enum" in flat:
                types: Any = ("enum",)
            else:
                implied = [kind for key, kind in _TYPE_OF_KEYWORD.items() if key in flat]
                types = flat.get("type", implied[:1] or _TYPES)
            found += [Alternative(kind, flat) for kind in ([types] if isinstance(types, str) else types)]
        composite = ("array", "object")
        options = [each for each in found if each.kind in composite or self.candidates(each, ())]
        self._options_of[key] = options
        return options

    def _flat(self, schema: Any, seen: tuple[str, ...]) -> list[dict[str, Any]]:
        """Return schemas without references and combinations, of which a value has to be valid under one."""
        if isinstance(schema, bool):
            return [{}] if schema else []
        combined = ("$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "$defs", "definitions", "const")
        flats = [{key: value for key, value in schema.items() if key not in combined}]
        if "const" in schema:
            flats = _both(flats, [{"enum": [schema["const"]]}])
        if "$ref" in schema:
            if schema["$ref"] in seen:
                return []
            flats = _both(flats, self._flat(self._target(schema["$ref"]), (*seen, schema["$ref"])))
        for part in schema.get("allOf", ()):
            flats = _both(flats, self._flat(part, seen))
        either = [schema[key] for key in ("anyOf", "oneOf") if key in schema]
        if "if" in schema:
            then = {"allOf": [schema["if"], schema.get("then", True)]}
            either.append([schema.get("else", True), then])
        for options in either:
            flats = _both(flats, [flat for option in options for flat in self._flat(option, seen)])
        return flats

    def _target(self, reference: str) -> Any:
        target = self.root
        try:
            if not reference.startswith("#"):
                raise LookupError(reference)
            for part in reference.split("/")[1:]:
                name = part.replace("~1", "/").replace("~0", "~")
                target = target[int(name) if isinstance(target, list) else name]
        except (LookupError, ValueError) as error:
            raise NotDrawable(self.root, f"the reference {reference!r} leads nowhere") from error
        return target

    def _height(self, schema: Any, above: tuple[str, ...]) -> float:
        """Return how deeply the shallowest value is nested; infinite if each contains another of its kind."""
        key = as_text(schema)
        if key in above:
            return inf
        if key not in self._heights:
            heights = [self._height_of(each, (*above, key)) for each in self._options(schema)]
            if (height := min(heights, default=inf)) == inf:
                return inf  # perhaps only because of the schemas above
            self._heights[key] = height
        return self._heights[key]

    def _height_of(self, alternative: Alternative, above: tuple[str, ...]) -> float:
        kind, flat = alternative
        match kind:
            case "object":
                properties = flat.get("properties", {})
                other = flat.get("additionalProperties", True)
                inside = [properties.get(name, other) for name in flat.get("required", ())]
            case "array":
                count = flat.get("minItems", 0)
                first = flat.get("prefixItems", ())[:count]
                inside = [*first, *[flat.get("items", True)] * (count > len(first))]
            case _:
                return 0
        return 1 + max((self._height(each, above) for each in inside), default=0)


def _both(ones: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [_merge(one, other) for one in ones for other in others]


def _merge(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return a schema for what is valid under both. What cannot be merged stays in `allOf`."""
    merged = {**one, **other}
    unmerged = [*one.get("allOf", ()), *other.get("allOf", ())]
    for key in [key for key in one if key in other and key != "allOf" and one[key] != other[key]]:
        if key in _TIGHTER:
            merged[key] = _TIGHTER[key](one[key], other[key])
        elif key == "type":
            merged[key] = _types_of_both(one[key], other[key])
        elif key == "properties":
            both = {
                name: {"allOf": [one[key][name], other[key][name]]} for name in one[key] if name in other[key]
            }
            merged[key] = {**one[key], **other[key], **both}
        elif key in ("items", "additionalProperties", "propertyNames"):
            merged[key] = {"allOf": [one[key], other[key]]}
        elif key in _TYPE_OF_KEYWORD:
            unmerged.append({key: one[key]})
    return {**merged, "allOf": unmerged} if unmerged else merged


def _types_of_both(one: Any, other: Any) -> list[str]:
    ones, others = ([each] if isinstance(each, str) else each for each in (one, other))
    common = [each for each in ones if each in others]
    if "integer" not in common and "integer" in [*ones, *others] and "number" in [*ones, *others]:
        common.append("integer")
    return common
