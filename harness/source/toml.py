"""A TOML parser that returns the location of tables and keys.

`tomllib` parses the values, and a search over the lines finds their locations. Values inside an inline table, or
in an array over several lines, have the location of the key they belong to.
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
_POSITION: Final = re.compile(r"\(at line (\d+), column (\d+)\)$")
Steps = tuple[str | int, ...]
Extents = tuple[int, int, int, int]
"""The start and end offsets of a key, and those of its value."""


def load(text: str) -> tuple[Any, Location]:
    """Parse `text` and return its value and location.

    Raises:
        Unreadable: the text is not valid TOML.
    """
    try:
        value = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Unreadable(_flaw(text, error)) from None
    return value, _location(value, _extents(text), (), (0, 0, 0, len(text)))


def _flaw(text: str, error: Exception) -> Flaw:
    found = _POSITION.search(str(error))
    message = _POSITION.sub("", str(error)).strip()
    at = len(text)
    if found:
        lines = text.splitlines(keepends=True)
        at = sum(map(len, lines[: int(found[1]) - 1])) + int(found[2]) - 1
    return Flaw("bad-toml", f"not TOML: {message[:1].lower()}{message[1:]}", at, at + 1)


def _extents(text: str) -> dict[Steps, Extents]:
    """Return the extents of each table and key with a line of its own; the first if a path occurs twice."""
    found: dict[Steps, Extents] = {}
    headers = [*_HEADER.finditer(text)]
    starts = [0, *(header.end() for header in headers)]
    ends = [*(header.start() for header in headers), len(text)]
    tables = [(), *_tables(headers)]
    for header, table in zip(headers, tables[1:], strict=True):
        found.setdefault(table, (header.start(2), header.end(2), header.start(), header.end()))
    for table, start, end in zip(tables, starts, ends, strict=True):
        for key in _KEY.finditer(text, start, end):
            value_end = key.start(2) + len(_COMMENT.sub("", key[2]))
            extents = key.start(1), key.end(1), key.start(2), value_end
            found.setdefault((*table, *_names(key[1])), extents)
    return found


def _tables(headers: Sequence[re.Match[str]]) -> Iterator[Steps]:
    """Yield the path of each table. The path of a table in an array ends with its index."""
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


def _location(value: Any, known: dict[Steps, Extents], path: Steps, outer: Extents) -> Location:
    """Return the location of a value; without extents of its own, that of the value around it."""
    at = known.get(path, outer)
    start, end = at[2:]
    if isinstance(value, dict):
        entries: dict[str, Entry] = {}
        for key, item in value.items():
            below = (*path, key)
            key_start, key_end = known.get(below, at)[:2]
            entries[key] = (key_start, key_end, _location(item, known, below, at))
        return start, end, entries
    if isinstance(value, list):
        return start, end, [_location(item, known, (*path, n), at) for n, item in enumerate(value)]
    return start, end, None
