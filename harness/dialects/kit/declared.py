"""Shared mechanics of saying what a manifest declares of its data, as JSON Schemas."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping
from types import UnionType
from typing import Any, Final, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

from langchain_core.tools import BaseTool
from pydantic import TypeAdapter
from typing_extensions import TypedDict, is_typeddict

from harness.dialects.kit.rules import reachable
from harness.graph.model import START, Schema

TYPES: Final[Mapping[str, Schema]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array"},
    "dict": {"type": "object"},
}
"""The schemas of types that manifests name as Python does."""


def user_messages(content: Schema | None = None) -> Schema:
    """Return the schema of the messages that a caller gives. `content` is that of theirs; None for text."""
    properties = {"role": {"enum": ["user"]}, "content": content or {"type": "string"}}
    return array_schema(object_schema(properties), minItems=1)


def array_schema(items: Schema, **limits: int) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items, **limits, **_definitions([items])}


def object_schema(properties: Mapping[str, Schema], required: Iterable[str] | None = None) -> Schema:
    """Return the schema of a mapping. None requires all its properties. It may have others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
        **_definitions(properties.values()),
    }


def like(value: Any) -> Schema:
    """Return the schema of values of the same shape: lists of such items, mappings with such keys."""
    if isinstance(value, Mapping):
        return object_schema({str(key): like(each) for key, each in value.items()}, map(str, value))
    if isinstance(value, list):
        items = [like(each) for each in value]
        distinct = [each for at, each in enumerate(items) if each not in items[:at]]
        return array_schema(distinct[0] if len(distinct) == 1 else {"anyOf": distinct} if distinct else {})
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    return {"type": kinds[type(value)]} if type(value) in kinds else {}


def _definitions(parts: Iterable[Schema]) -> Schema:
    """Return the definitions of parts of a schema, which refer to them from its root."""
    found: dict[str, dict[str, Any]] = {}
    for part in parts:
        for key in ("$defs", "definitions"):
            if isinstance(part.get(key), Mapping):
                found[key] = {**part[key], **found.get(key, {})}
    return found


def type_schema(annotation: Any) -> Schema | None:
    """Return the schema of a Python type; None if it has none, or allows any value."""
    try:
        return TypeAdapter(_readable(annotation)).json_schema(mode="serialization", by_alias=False) or None
    except Exception:  # a type may be anything, and raise anything
        return None


def _readable(annotation: Any) -> Any:
    """Return a type with the TypedDicts in it in the form that pydantic reads in every version of Python."""
    if is_typeddict(annotation):
        hints = get_type_hints(annotation)
        fields = {name: _readable(hints[name]) for name in hints}
        optional = {
            name: NotRequired[fields[name]] for name in fields if name in annotation.__optional_keys__
        }
        return TypedDict(annotation.__name__, {**fields, **optional})  # type: ignore[operator]
    origin, parts = get_origin(annotation), get_args(annotation)
    if not parts or origin is Literal:
        return annotation
    inside = tuple(map(_readable, parts))
    return Union[inside] if origin in (Union, UnionType) else origin[inside]  # noqa: UP007


def return_schema(function: Any) -> Schema | None:
    """Return the schema of what a function or a LangChain tool returns, by its annotation; None if it has none."""
    if isinstance(function, BaseTool):
        if function.response_format == "content_and_artifact":
            return None
        function = getattr(function, "func", None) or getattr(function, "coroutine", None)
    try:
        annotation = get_type_hints(inspect.unwrap(function)).get("return", Any)
    except Exception:  # annotations may name what only a type checker imports
        return None
    return type_schema(annotation)


def return_schemas(kind: str, functions: Mapping[str, Any]) -> dict[tuple[str, str], Schema]:
    """Return the schemas of what functions return, by kind of effect and name, of those that have one."""
    found = {(kind, name): return_schema(function) for name, function in functions.items()}
    return {call: schema for call, schema in found.items() if schema is not None}


def is_number(schema: Schema) -> bool:
    """True for a number: if it may be left out, it is a limit or a count, and no input."""
    return schema.get("type") in ("integer", "number")


def first_read(
    edges: Collection[tuple[str, str]],
    reads: Iterable[tuple[str, str]],
    writes: Mapping[str, Collection[str]],
) -> list[str]:
    """Return the keys that a node reads which no node can have written when it first runs.

    A node that writes the key itself counts as one that sets it: so does a counter. Nor is a key among them that
    another node makes, without reading it, on a way that does not lead there: it is missing then.

    Args:
        edges: source and target of all edges, those of START included.
        reads: nodes (or START), each with a key that it or a condition after it reads.
        writes: the keys that nodes write.
    """
    found: dict[str, None] = {}
    reads = list(reads)
    for node, key in reads:
        before = reachable(START, [edge for edge in edges if edge[0] != node])
        writers = before & {writer for writer, keys in writes.items() if key in keys}
        makes = any((each, key) not in reads for each in writers)
        if (
            key not in writes.get(node, ())
            and not makes
            and not any(node in reachable(one, edges) for one in writers)
        ):
            found[key] = None
    return list(found)
