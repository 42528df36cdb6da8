"""Values for a JSON Schema, drawn with one primitive, so that what draws them also shrinks them.

The answers of models and tools are made of them, and faulty answers that do not fit a schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache, lru_cache
from math import inf
from typing import Any, Final

from harness.errors import FormatError
from harness.explore.alternatives import Alternative, Alternatives, as_text
from harness.explore.alternatives import NotDrawable as NotDrawable
from harness.graph.effects import ToolSpec
from harness.matchers.json_schema import schema_validator
from harness.matchers.schema_flaws import schemas_inside
from harness.source.display import clip

Choose = Callable[[int], int]
"""Draws a number from 0 up to, but not including, its argument, which is at least 1. 0 is the simplest."""
_Words = tuple[str, ...]
_Make = Callable[[Choose, _Words, int], Any]
"""Draws a value from words, at a depth."""

_DEEPEST: Final = 6
"""The simplest value is taken below this many objects and lists, so that recursive schemas end."""
_MOST_MORE: Final = 20
"""The number of items that a list has at most beyond those that it must have."""
_TRIES: Final = 30
"""Attempts to draw a value that is valid, or another one."""
_NOT_CONSTRUCTED: Final = frozenset(
    (
        *("not", "if", "contains", "minContains", "maxContains", "patternProperties", "propertyNames"),
        *("maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties"),
        *("unevaluatedItems", "$dynamicRef"),
    )
)
"""Keywords that values are checked against after they are drawn."""
_SPOILT: Final = 12
"""Attempts to spoil a value, for each way to do it."""


def instance(schema: Any, choose: Choose, words: Sequence[str] = ()) -> Any:
    """Draw a value that is valid under the schema. Texts are mostly `words`, the most interesting of which are first.

    Raises:
        NotDrawable: no valid value was found.
    """
    return _drawer(as_text(schema))(choose, tuple(words))


def broken(schema: Any, choose: Choose) -> str:
    """Draw a text that is no JSON, or that lacks a key which it must have: a reply of a model at fault.

    Raises:
        NotDrawable: no value was found that is valid, and could be broken.
    """
    refusal = "I cannot answer that."
    written = as_text(value := instance(schema, choose))
    match choose(6):
        case 0:
            return refusal
        case 1:
            return ""
        case 2:
            return written[: len(written) // 2] + "…"  # cut off: never JSON, as `…` is none outside of a text
    lacking = _spoilt(value, choose, schema_validator(schema).is_valid, [LEFT_OUT])
    return refusal if lacking is LEFT_OUT else as_text(lacking)


def arguments(tool: ToolSpec, choose: Choose, words: Sequence[str] = ()) -> dict[str, Any]:
    """Draw arguments that are valid for a tool.

    Raises:
        NotDrawable: no valid arguments were found.
    """
    drawn: dict[str, Any] = instance(_of_arguments(tool), choose, words)
    return drawn


def wrong_arguments(tool: ToolSpec, choose: Choose, words: Sequence[str] = ()) -> dict[str, Any]:
    """Draw arguments that the schema of a tool does not allow; if it allows all, one that it does not name.

    Raises:
        NotDrawable: no arguments were found that are valid, and could be made wrong.
    """
    is_valid = schema_validator(_of_arguments(tool)).is_valid
    value = arguments(tool, choose, words)
    wrong = _spoilt(value, choose, is_valid, [LEFT_OUT, None, [], {}])
    return {**value, "unexpected": "value"} if wrong is LEFT_OUT else dict(wrong)


def _of_arguments(tool: ToolSpec) -> dict[str, Any]:
    return {"properties": {}, **tool.schema, "type": "object"}


LEFT_OUT: Final = object()
"""In place of a part of a value: it is not there."""


def _spoilt(value: Any, choose: Choose, is_valid: Callable[[Any], bool], others: Sequence[Any]) -> Any:
    """Return the value with a part replaced or left out; `LEFT_OUT` if some attempts leave it valid."""
    changes = [(path, other) for path in paths(value) for other in others]
    at = choose(len(changes)) if changes else 0
    for attempt in range(min(_SPOILT * len(others), len(changes))):
        spoilt = changed(value, *changes[(at + attempt) % len(changes)])
        if not is_valid(spoilt):
            return spoilt
    return LEFT_OUT


def paths(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each key in a value."""
    is_mapping = isinstance(value, dict)
    for at, part in value.items() if is_mapping else enumerate(value) if isinstance(value, list) else ():
        yield from [(at,)] if is_mapping else []
        yield from ((at, *path) for path in paths(part))


def changed(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """Return a value with another part at a path, or without it (`LEFT_OUT`)."""
    copy, key = value.copy(), path[0]
    if len(path) > 1:
        copy[key] = changed(value[key], path[1:], other)
    elif other is LEFT_OUT:
        del copy[key]
    else:
        copy[key] = other
    return copy


@lru_cache(maxsize=256)
def _drawer(text: str) -> Callable[[Choose, _Words], Any]:
    """Return the function that draws values of a schema, which is given as JSON.

    Raises:
        NotDrawable: it is not a schema. The function raises it if it finds no value.
    """
    schema = json.loads(text)
    try:
        is_valid = schema_validator(schema).is_valid
    except FormatError as error:
        raise NotDrawable(schema, str(error)) from error
    make = _Compiler(schema).maker(schema)
    if not any(_must_be_checked(inside) for _, inside in schemas_inside(schema)):
        return lambda choose, words: make(choose, words, 0)

    def checked(choose: Choose, words: _Words) -> Any:
        for attempt in range(_TRIES):
            value = make(_shifted(choose, attempt) if attempt else choose, words, 0)
            if is_valid(value):
                return value
        raise NotDrawable(schema, f"none of {_TRIES} drawn values is valid")

    return checked


def _must_be_checked(schema: Mapping[str, Any]) -> bool:
    """True if values are drawn that may break the schema: alternatives overlap, parts close each other, and so on."""
    overlapping = "oneOf" in schema and "discriminator" not in schema
    parts = [key for key in ("$ref", "anyOf", "oneOf", "properties") if key in schema]
    return (
        overlapping
        or len(parts) + len(schema.get("allOf", ())) > 1
        or not _NOT_CONSTRUCTED.isdisjoint(schema)
    )


def _simplest(_count: int) -> int:
    return 0


def _shifted(choose: Choose, by: int) -> Choose:
    """Return a primitive that draws other numbers than `choose`, even if that always draws the same."""
    return lambda count: (choose(count) + by) % count


class _Compiler:
    """The functions for a schema and the schemas inside it, each of which is compiled on first use."""

    def __init__(self, root: Any) -> None:
        self._alternatives = Alternatives(root)
        self._makers: dict[str, _Make] = {}

    def maker(self, schema: Any) -> _Make:
        """Return the function that draws values of a schema."""
        key = as_text(schema)
        if key not in self._makers:
            compiled = cache(lambda: self._compile(schema))
            self._makers[key] = lambda choose, words, depth: compiled()(choose, words, depth)
        return self._makers[key]

    def _compile(self, schema: Any) -> _Make:
        makes = [self._of_type(each) for each in self._alternatives.of(schema)]
        if not makes:
            why = f"nothing is valid under {clip(as_text(schema), 100)}"
            raise NotDrawable(self._alternatives.root, why)
        if len(makes) == 1:
            return makes[0]
        return lambda choose, words, depth: makes[choose(len(makes))](choose, words, depth)

    def _of_type(self, alternative: Alternative) -> _Make:
        if alternative.kind == "object":
            return self._object(alternative.flat)
        return self._array(alternative.flat) if alternative.kind == "array" else self._scalar(alternative)

    def _scalar(self, alternative: Alternative) -> _Make:
        candidates = lru_cache(maxsize=8)(lambda words: self._alternatives.candidates(alternative, words))
        copied = any(isinstance(value, list | dict) for value in candidates(()))

        def make(choose: Choose, words: _Words, _depth: int) -> Any:
            values = candidates(words)
            value = values[choose(len(values))] if len(values) > 1 else values[0]
            return deepcopy(value) if copied else value

        return make

    def _object(self, flat: dict[str, Any]) -> _Make:
        properties, required = flat.get("properties", {}), flat.get("required", ())
        other, names = flat.get("additionalProperties", True), flat.get("propertyNames", True)
        possible = {**properties, **{name: other for name in required if name not in properties}}
        fields = [
            (name, self.maker(schema), name in required)
            for name, schema in possible.items()
            if name in required or self._alternatives.ends(schema)
        ]
        if "patternProperties" in flat and not properties:
            pattern, other = next(iter(flat["patternProperties"].items()))
            names = {"pattern": pattern, **(names if isinstance(names, dict) else {})}
        free = other is not True or "properties" not in flat
        extra = self.maker(other) if free and self._alternatives.ends(other) else None
        name_of = self.maker({"allOf": [{"type": "string"}, names]})
        least = flat.get("minProperties", 0)
        most = flat.get("maxProperties", len(possible) + least + _MOST_MORE)

        def make(choose: Choose, words: _Words, depth: int) -> Any:
            if depth > _DEEPEST:
                choose = _simplest
            value: dict[str, Any] = {}
            for name, draw, needed in fields:
                if needed or choose(2):
                    value[name] = draw(choose, words, depth + 1)
            while extra and len(value) < most and (len(value) < least or choose(2)):
                name = _another(name_of, value, choose, words, depth)
                if name in value:
                    break
                value[name] = extra(choose, words, depth + 1)
            return value

        return make

    def _array(self, flat: dict[str, Any]) -> _Make:
        first, items = [self.maker(each) for each in flat.get("prefixItems", ())], flat.get("items", True)
        least, unique = flat.get("minItems", 0), flat.get("uniqueItems", False)
        most = min(flat.get("maxItems", inf), least + _MOST_MORE)
        if not self._alternatives.ends(items):
            most = min(most, len(first))
        others = self.maker(items)

        def make(choose: Choose, words: _Words, depth: int) -> Any:
            if depth > _DEEPEST:
                choose = _simplest
            # Each item is chosen, so that a list shrinks by items; a quarter of the outer lists are made long.
            more = 32 if depth < 2 and most > least and choose(4) == 3 else 2
            value: list[Any] = []
            while len(value) < most and (len(value) < least or choose(more)):
                draw = first[len(value)] if len(value) < len(first) else others
                item = _another(draw, value if unique else (), choose, words, depth)
                if unique and item in value:
                    break
                value.append(item)
            return value

        return make


def _another(draw: _Make, taken: Any, choose: Choose, words: _Words, depth: int) -> Any:
    """Draw a value that is not in `taken`, if that is possible in a few attempts."""
    value = draw(choose, words, depth + 1)
    for attempt in range(1, _TRIES):
        if value not in taken:
            break
        value = draw(_shifted(choose, attempt), words, depth + 1)
    return value
