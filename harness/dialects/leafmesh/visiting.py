"""The values at the places of a document that a pattern names, whatever else is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from harness.source.document import DocumentPath

EACH: Final = object()
"""In a pattern, every item of a list or every value of a mapping."""


class Place(NamedTuple):
    """A value, and its path."""

    path: DocumentPath
    value: Any


def places(value: Any, *pattern: Any, path: DocumentPath = ()) -> Iterator[Place]:
    """The values that exist at a pattern of keys, indices and `EACH`, in order."""
    if not pattern:
        yield Place(path, value)
        return
    step, *rest = pattern
    if step is EACH:
        entries = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, item in entries:
            yield from places(item, *rest, path=(*path, key))
    elif isinstance(value, dict) and step in value:
        yield from places(value[step], *rest, path=(*path, step))


def texts(value: Any, *pattern: Any) -> Iterator[Place]:
    """Those of the `places` that are texts."""
    return (place for place in places(value, *pattern) if isinstance(place.value, str))
