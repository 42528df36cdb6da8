"""Flaws of JSON Schemas: errors that make one invalid, unknown keywords, and schemas that accept every value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from harness.source.display import clip, did_you_mean, nearest
from harness.source.models import describe

TYPES: Final = ("null", "boolean", "string", "integer", "number", "array", "object")

_SCHEMA_KEYWORDS: Final = (
    *("items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems"),
    *("unevaluatedProperties", "not", "if", "then", "else", "contentSchema"),
)
"""Keywords whose value is a schema."""
_SCHEMA_LIST_KEYWORDS: Final = ("prefixItems", "allOf", "anyOf", "oneOf")
"""Keywords whose value is a list of schemas."""
_SCHEMA_MAPPING_KEYWORDS: Final = (
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
    "definitions",
)
"""Keywords whose value is a mapping from name to schema."""
_VALUE_KEYWORDS: Final = (
    *("type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
    *("maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems"),
    *("maxContains", "minContains", "maxProperties", "minProperties", "required"),
    *("dependentRequired", "$ref", "$dynamicRef"),
)
"""Keywords whose value contains no schema."""
_ANNOTATIONS: Final = (
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"),
    *("contentMediaType", "contentEncoding", "$schema", "$id", "$comment", "$anchor", "$dynamicAnchor"),
    *("$vocabulary", "$defs", "definitions", "then", "else", "contentSchema", "maxContains", "minContains"),
    "example",  # of OpenAPI
)
"""Keywords that by themselves require nothing of a value."""
KEYWORDS: Final = frozenset(
    (*_SCHEMA_KEYWORDS, *_SCHEMA_LIST_KEYWORDS, *_SCHEMA_MAPPING_KEYWORDS, *_VALUE_KEYWORDS, *_ANNOTATIONS)
)
_SUGGESTED: Final = KEYWORDS - {"not"}  # else `note` would be reported as a misspelt `not`
_ASSERTIONS: Final = KEYWORDS - set(_ANNOTATIONS)
_TYPE_KEYWORDS: Final[tuple[tuple[type | tuple[type, ...], frozenset[str]], ...]] = (
    (
        dict,
        frozenset(
            (
                *(
                    "properties",
                    "patternProperties",
                    "additionalProperties",
                    "unevaluatedProperties",
                    "required",
                ),
                *("propertyNames", "maxProperties", "minProperties", "dependentRequired", "dependentSchemas"),
            )
        ),
    ),
    (
        list,
        frozenset(
            ("items", "prefixItems", "contains", "unevaluatedItems", "maxItems", "minItems", "uniqueItems")
        ),
    ),
    (str, frozenset(("maxLength", "minLength", "pattern"))),
    (
        (int, float),
        frozenset(("multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum")),
    ),
)
"""Keywords that apply only to values of one type; values of all other types pass them."""
_LONGEST_MESSAGE: Final = 200
_SIMILARITY: Final = 0.8
"""Minimum similarity at which an unknown keyword is reported as misspelt; others are the schema's own annotations."""


class SchemaFlaw(NamedTuple):
    """A reason why a value is not a JSON Schema; `path` leads to the invalid part."""

    path: tuple[str | int, ...]
    message: str
    hint: str = ""


class MisspeltKeyword(NamedTuple):
    """A keyword that JSON Schema does not define, and therefore ignores; `path` leads to it."""

    path: tuple[str | int, ...]
    keyword: str
    meant: str


def schema_flaw(schema: Any, *, patterns: bool = True) -> SchemaFlaw | None:
    """Return the first flaw of a value that is not a JSON Schema (2020-12), or None if it is one.

    With `patterns`, regular expressions in it must be valid too.

    Raises:
        RecursionError: it is nested too deeply to be checked.
    """
    from jsonschema import Draft202012Validator, FormatChecker  # takes as long as loading a manifest
    from jsonschema.exceptions import SchemaError

    try:
        checker = Draft202012Validator.FORMAT_CHECKER if patterns else FormatChecker(())
        Draft202012Validator.check_schema(schema, checker)
    except SchemaError as error:
        if error.validator == "anyOf":  # the metaschema uses `anyOf` only for the value of `type`
            return _bad_type(tuple(error.absolute_path), error.instance)
        return SchemaFlaw(tuple(error.absolute_path), clip(error.message, _LONGEST_MESSAGE))
    return None


def _bad_type(path: tuple[str | int, ...], found: Any) -> SchemaFlaw:
    unknown = [at for at, one in enumerate(found) if one not in TYPES] if isinstance(found, list) else []
    if unknown:
        path, found = (*path, unknown[0]), found[unknown[0]]
    hint = did_you_mean(found, TYPES) if isinstance(found, str) else ""
    if found is None:
        hint = "quote it to name the type: 'null'"
    return SchemaFlaw(path, f"expected a type, or a list of different types, found {describe(found)}", hint)


def accepts_everything(schema: Any) -> bool:
    """True if the schema has no keyword that requires anything, so that every value is valid."""
    return schema is True or (isinstance(schema, Mapping) and not _ASSERTIONS.intersection(schema))


def keywords_of_other_types(schema: Any, value: Any) -> list[str]:
    """Return the schema's keywords if all of them apply to other types than that of `value`; otherwise none.

    Such a schema says nothing about the value.
    """
    asking = [keyword for keyword in schema if keyword in _ASSERTIONS] if isinstance(schema, Mapping) else []
    others = frozenset[str]().union(
        *(
            keywords
            for kind, keywords in _TYPE_KEYWORDS
            if isinstance(value, bool) or not isinstance(value, kind)
        )
    )
    return asking if others.issuperset(asking) else []


def misspelt_keywords(
    schema: Any, path: tuple[str | int, ...] = (), *, cutoff: float = _SIMILARITY
) -> Iterator[MisspeltKeyword]:
    """Yield the unknown keywords of a schema, and of schemas inside it, that are similar to a known one."""
    for at, inside in schemas_inside(schema, path):
        for keyword in inside:
            if keyword not in KEYWORDS and (meant := nearest(str(keyword), _SUGGESTED, cutoff=cutoff)):
                yield MisspeltKeyword((*at, keyword), str(keyword), meant)


def schemas_inside(
    schema: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Mapping[Any, Any]]]:
    """Yield the schema and those inside it, outer before inner, each with its path."""
    if not isinstance(schema, Mapping):
        return
    yield path, schema
    for keyword, value in schema.items():
        at = (*path, keyword)
        if keyword in _SCHEMA_KEYWORDS:
            yield from schemas_inside(value, at)
        elif keyword in _SCHEMA_LIST_KEYWORDS and isinstance(value, list):
            for index, item in enumerate(value):
                yield from schemas_inside(item, (*at, index))
        elif keyword in _SCHEMA_MAPPING_KEYWORDS and isinstance(value, Mapping):
            for name, item in value.items():
                yield from schemas_inside(item, (*at, name))


NO_TARGET: Final = "leads nowhere"
EXTERNAL: Final = "leads out of the schema, and nothing is fetched"
_KEYWORDS: Final = ("$ref", "$dynamicRef")


class UnresolvedReference(NamedTuple):
    """A reference that does not lead to a schema; `path` leads to the reference."""

    path: tuple[str | int, ...]
    reference: str
    why: str


def unresolved_references(schema: Any) -> Iterator[UnresolvedReference]:
    """Yield the references in a valid schema that cannot be resolved, or that form a circle. Nothing is fetched."""
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    root = Registry().resolver_with_root(DRAFT202012.create_resource(schema))
    resolvers: dict[tuple[str | int, ...], Any] = {(): root}
    for path, inside in schemas_inside(schema):
        enclosing = next(resolvers[path[:end]] for end in range(len(path), -1, -1) if path[:end] in resolvers)
        resolvers[path] = enclosing.in_subresource(DRAFT202012.create_resource(inside)) if path else enclosing
        for keyword in _KEYWORDS:
            reference = inside.get(keyword)
            if isinstance(reference, str) and (why := _fault(inside, keyword, resolvers[path])):
                yield UnresolvedReference((*path, keyword), reference, why)


def _fault(schema: Any, keyword: str, resolver: Any) -> str:
    """Return the reason why a reference cannot be resolved; empty if it can."""
    from referencing.exceptions import Unresolvable

    seen = [schema]
    while isinstance(schema.get(keyword), str):
        reference = schema[keyword]
        try:
            found = resolver.lookup(reference)
        except (Unresolvable, ValueError):
            return NO_TARGET if reference.startswith("#") else EXTERNAL
        schema, resolver = found.contents, found.resolver
        if isinstance(schema, bool):
            break
        if not isinstance(schema, dict):
            return "leads to something that is not a schema"
        if any(schema is earlier for earlier in seen):
            return "leads in a circle"
        seen.append(schema)
    return ""
