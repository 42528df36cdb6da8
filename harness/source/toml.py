"""TOML with the location of tables and keys: `tomllib` gives the values, a walk over the lines where they stand.

What stands inside an inline table, or in an array over several lines, has the location of the key it belongs to.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from harness.source.location import Entry, Flaw, Location, Unreadable

_HEADER: Final = re.compile(r"^[ \t]*(\[\[?)([^\[\]\r\n]+)\]", re.M)
_KEY: Final = re.compile(r"^[ \t]*((?:[\w.-]|\"[^\"\r\n]*\"|'[^'\r\n]*')+)[ \t]*=[ \t]*([^\r\n]*)", re.M)
_PARTS: Final = re.compile(r"[\w-]+|\"[^\"]*\"|'[^']*'")
_COMMENT: Final = re.compile(r"[ \t]*(#[^\"']*)?$")
_PLACE: Final = re.compile(r"\(at line (\d+), column (\d+)\)$")
Steps = tuple[str | int, ...]
Place = tuple[int, int, int, int]
"""Where a key begins and ends, and its value."""


def load(text: str) -> tuple[Any, Location]:
    """The value `text` holds, and its location.

    Raises:
        Unreadable: it is no TOML.
    """
    try:
        value = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Unreadable(_flaw(text, error)) from None
    return value, _location(value, _places(text), (), (0, 0, 0, len(text)))


def _flaw(text: str, error: Exception) -> Flaw:
    found = _PLACE.search(str(error))
    message = _PLACE.sub("", str(error)).strip()
    at = len(text)
    if found:
        lines = text.splitlines(keepends=True)
        at = sum(map(len, lines[: int(found[1]) - 1])) + int(found[2]) - 1
    return Flaw("bad-toml", f"not TOML: {message[:1].lower()}{message[1:]}", at, at + 1)


def _places(text: str) -> dict[Steps, Place]:
    """Where each table and key is that has a line of its own; the first of two that look alike."""
    places: dict[Steps, Place] = {}
    headers = [*_HEADER.finditer(text)]
    starts = [0, *(header.end() for header in headers)]
    ends = [*(header.start() for header in headers), len(text)]
    tables = [(), *_tables(headers)]
    for header, table in zip(headers, tables[1:], strict=True):
        places.setdefault(table, (header.start(2), header.end(2), header.start(), header.end()))
    for table, start, end in zip(tables, starts, ends, strict=True):
        for key in _KEY.finditer(text, start, end):
            value_end = key.start(2) + len(_COMMENT.sub("", key[2]))
            place = key.start(1), key.end(1), key.start(2), value_end
            places.setdefault((*table, *_names(key[1])), place)
    return places


def _tables(headers: Sequence[re.Match[str]]) -> Iterator[Steps]:
    """The path of each table: one of an array has its number."""
    counts: dict[Steps, int] = {}
    for header in headers:
        path: Steps = ()
        names = _names(header[2])
        for at, name in enumerate(names, start=1):
            path = (*path, name)
            if header[1] == "[[" and at == len(names):
                counts[path] = counts.get(path, -1) + 1
            if path in counts:
                path = (*path, counts[path])
        yield path


def _names(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in _PARTS.findall(dotted)]


def _location(value: Any, places: dict[Steps, Place], path: Steps, around: Place) -> Location:
    """The location of a value; where it has no place of its own, that of what it is in."""
    at = places.get(path, around)
    start, end = at[2:]
    if isinstance(value, dict):
        entries: dict[str, Entry] = {}
        for key, item in value.items():
            below = (*path, key)
            key_start, key_end = places.get(below, at)[:2]
            entries[key] = (key_start, key_end, _location(item, places, below, at))
        return start, end, entries
    if isinstance(value, list):
        return start, end, [_location(item, places, (*path, n), at) for n, item in enumerate(value)]
    return start, end, None
