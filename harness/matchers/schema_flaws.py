"""What a valid JSON Schema does not ask for: one that accepts everything, and keywords that no one knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from harness.source.suggest import nearest

_OF_SCHEMA: Final = (
    *("items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems"),
    *("unevaluatedProperties", "not", "if", "then", "else", "contentSchema"),
)
"""Keywords whose value is a schema."""
_OF_LIST: Final = ("prefixItems", "allOf", "anyOf", "oneOf")
_OF_MAPPING: Final = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_OF_VALUES: Final = (
    *("type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
    *(
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "maxContains",
        "minContains",
    ),
    *("maxProperties", "minProperties", "required", "dependentRequired", "$ref", "$dynamicRef"),
)
_NOTES: Final = (
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"),
    *("contentMediaType", "contentEncoding", "$schema", "$id", "$comment", "$anchor", "$dynamicAnchor"),
    *("$vocabulary", "$defs", "definitions", "then", "else", "contentSchema", "maxContains", "minContains"),
)
"""Keywords that ask for nothing by themselves."""
_KNOWN: Final = (*_OF_SCHEMA, *_OF_LIST, *_OF_MAPPING, *_OF_VALUES, *_NOTES)
_ASKING: Final = frozenset(_KNOWN) - set(_NOTES)
_MISSPELT: Final = 0.8
"""So alike are a misspelt keyword and the one that is meant; others are the schema's own notes."""


class Misspelt(NamedTuple):
    """A keyword that JSON Schema does not know, and therefore ignores; `path` leads to it."""

    path: tuple[str | int, ...]
    keyword: str
    meant: str


def accepts_everything(schema: Any) -> bool:
    """No value can be invalid: there is no keyword that asks for anything."""
    return schema is True or (isinstance(schema, Mapping) and not _ASKING.intersection(schema))


def misspelt_keywords(
    schema: Any, path: tuple[str | int, ...] = (), *, cutoff: float = _MISSPELT
) -> Iterator[Misspelt]:
    """The keywords of a schema, and of those inside it, that are nearly one that JSON Schema knows."""
    for at, inside in schemas_inside(schema, path):
        for keyword in inside:
            if keyword not in _KNOWN and (meant := nearest(str(keyword), _KNOWN, cutoff=cutoff)):
                yield Misspelt((*at, keyword), str(keyword), meant)


def schemas_inside(
    schema: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Mapping[Any, Any]]]:
    """A schema and those inside it, each with its path, the outer before the inner."""
    if not isinstance(schema, Mapping):
        return
    yield path, schema
    for keyword, value in schema.items():
        at = (*path, keyword)
        if keyword in _OF_SCHEMA:
            yield from schemas_inside(value, at)
        elif keyword in _OF_LIST and isinstance(value, list):
            for index, item in enumerate(value):
                yield from schemas_inside(item, (*at, index))
        elif keyword in _OF_MAPPING and isinstance(value, Mapping):
            for name, item in value.items():
                yield from schemas_inside(item, (*at, name))
