"""Lookup of values in a document by path patterns; works on invalid documents too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from harness.source.document import DocumentPath

EACH: Final = object()
"""In a pattern: every item of a list, or every value of a mapping."""


class Match(NamedTuple):
    """A value and its path."""

    path: DocumentPath
    value: Any


def matches(value: Any, *pattern: Any, path: DocumentPath = ()) -> Iterator[Match]:
    """Yield the existing values at a pattern of keys, indices and `EACH`, in order."""
    if not pattern:
        yield Match(path, value)
        return
    step, *rest = pattern
    if step is EACH:
        entries = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, item in entries:
            yield from matches(item, *rest, path=(*path, key))
    elif isinstance(value, dict) and step in value:
        yield from matches(value[step], *rest, path=(*path, step))


def texts(value: Any, *pattern: Any) -> Iterator[Match]:
    """Yield the `matches` that are texts."""
    return (match for match in matches(value, *pattern) if isinstance(match.value, str))
