"""Keys a manifest has and sherma's documentation does not know: ignored, and worth a warning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from harness.source.document import DocumentPath


def unknown_keys(
    model: type[BaseModel], value: Any, path: DocumentPath = ()
) -> Iterator[tuple[DocumentPath, list[str]]]:
    """The keys a manifest has and the document does not know, each with those it knows there."""
    if not isinstance(value, Mapping):
        return
    known = {field.alias or name: field for name, field in model.model_fields.items()}
    for key, item in value.items():
        if key not in known:
            yield (*path, key), sorted(known)
            continue
        for inner, below, at in _sections(known[key].annotation, item, (*path, key)):
            yield from unknown_keys(inner, below, at)


def _sections(
    annotation: Any, value: Any, path: DocumentPath
) -> Iterator[tuple[type[BaseModel], Any, DocumentPath]]:
    """The sections inside a value, with the model of each."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, value, path
    elif get_origin(annotation) is list and isinstance(value, list):
        for at, item in enumerate(value):
            yield from _sections(get_args(annotation)[0], item, (*path, at))
    elif get_origin(annotation) is dict and isinstance(value, dict):
        for key, item in value.items():
            yield from _sections(get_args(annotation)[1], item, (*path, key))
    else:
        for member in get_args(annotation):
            if _fits(member, value):
                yield from _sections(member, value, path)


def _fits(member: Any, value: Any) -> bool:
    """Whether a union's member is meant: node types are told apart by `type`, the rest by their shape."""
    if isinstance(member, type) and issubclass(member, BaseModel):
        kind = member.model_fields.get("type")
        if kind is None or get_origin(kind.annotation) is not Literal or not isinstance(value, dict):
            return isinstance(value, dict)
        return value.get("type") in get_args(kind.annotation)
    return get_origin(member) in (list, dict) or bool(get_args(member))
