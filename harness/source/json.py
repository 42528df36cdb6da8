"""Parsers of JSON and TOML that return the location of every key and value.

Values are those of `json.loads` and `tomllib.loads`. The parser of JSON is stricter where its rules surprise authors:
it refuses duplicate keys, lone surrogates, `NaN` and `Infinity`, and nesting beyond a limit.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Final, NoReturn

from harness.source.location import MAX_DEPTH, MAX_NODES, Entry, Flaw, Location, Unreadable

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_NUMBER: Final = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORD: Final = re.compile(r"-?[A-Za-z_$][A-Za-z0-9_$]*")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_CONSTANTS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}


def load(text: str) -> tuple[Any, Location]:
    """Parse `text` and return its value and location.

    Raises:
        Unreadable: with every duplicate key, or with the first syntax error.
    """
    reader = _Reader(text)
    if reader.skip(0) == len(text):
        raise Unreadable.one_flaw("empty-file", "the file is empty", 0, 0)
    value, location = reader.value(reader.skip(0), 0)
    end = reader.skip(location[1])
    if end != len(text):
        reader.refuse(end, "text after the end of the JSON value")
    if reader.flaws:
        raise Unreadable(reader.flaws)
    return value, location


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.flaws: list[Flaw] = []
        self._nodes = 0

    def skip(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> tuple[Any, Location]:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise Unreadable.one_flaw("too-many-nodes", f"more than {MAX_NODES:,} values", at, at + 1)
        first = self.text[at : at + 1]
        if first in ("{", "["):
            if depth >= MAX_DEPTH:
                raise Unreadable.one_flaw("too-deep", f"nested more than {MAX_DEPTH} levels deep", at, at + 1)
            return self._object(at, depth) if first == "{" else self._array(at, depth)
        if first == '"':
            text, end = self._string(at)
            return text, (at, end, None)
        return self._number(at) if first and first in "-0123456789" else self._constant(at)

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], Location]:
        values: dict[str, Any] = {}
        locations: dict[str, Entry] = {}
        end = self.skip(at + 1)
        while self.text[end : end + 1] != "}" or values:
            if self.text[end : end + 1] != '"':
                self._expected(end, "a key in double quotes" if values else "a key in double quotes or '}'")
            start = end
            key, key_end = self._string(start)
            colon = self.skip(key_end)
            if self.text[colon : colon + 1] != ":":
                self._expected(colon, "':' after the key")
            value, location = self.value(self.skip(colon + 1), depth + 1)
            if key in values:
                first, message = locations[key][0], f"key '{key}' is given twice"
                self.flaws.append(Flaw("duplicate-key", message, start, key_end, first=first))
            else:
                values[key], locations[key] = value, (start, key_end, location)
            end = self.skip(location[1])
            if self.text[end : end + 1] != ",":
                break
            end = self.skip(end + 1)
        if self.text[end : end + 1] != "}":
            self._expected(end, "',' or '}'")
        return values, (at, end + 1, locations)

    def _array(self, at: int, depth: int) -> tuple[list[Any], Location]:
        values: list[Any] = []
        locations: list[Location] = []
        end = self.skip(at + 1)
        while self.text[end : end + 1] != "]" or values:
            value, location = self.value(end, depth + 1)
            values.append(value)
            locations.append(location)
            end = self.skip(location[1])
            if self.text[end : end + 1] != ",":
                break
            end = self.skip(end + 1)
        if self.text[end : end + 1] != "]":
            self._expected(end, "',' or ']'")
        return values, (at, end + 1, locations)

    def _string(self, at: int) -> tuple[str, int]:
        try:
            text, end = scanstring(self.text, at + 1, True)
        except JSONDecodeError as error:
            if error.msg.startswith("Unterminated"):
                self.refuse(at, 'this " is never closed', at + 1, 'end the text with "')
            if error.msg.startswith("Invalid control"):
                hint = 'a new line is written \\n, a tab \\t; or this text lacks its closing "'
                self.refuse(error.pos, "a new line, tab or control character inside a text", hint=hint)
            hint = "a backslash is written \\\\"
            self.refuse(error.pos, "this is not an escape sequence of JSON", hint=hint)
        if _SURROGATE.search(text):
            raise Unreadable.one_flaw("bad-surrogate", "half of a surrogate pair in a text", at, end)
        return text, end

    def _number(self, at: int) -> tuple[int | float, Location]:
        found = _NUMBER.match(self.text, at)
        if found is None:
            return self._constant(at)
        whole, fraction, exponent = found.groups()
        try:
            number = float(found.group()) if fraction or exponent else int(whole)
        except ValueError:
            self.refuse(at, "this number has too many digits")
        return number, (at, found.end(), None)

    def _constant(self, at: int) -> tuple[Any, Location]:
        found = _WORD.match(self.text, at)
        word = found.group() if found else ""
        if word not in _CONSTANTS:
            self._expected(at, "a value")
        return _CONSTANTS[word], (at, at + len(word), None)

    def _expected(self, at: int, what: str) -> NoReturn:
        word = _WORD.match(self.text, at)
        shown = word.group() if word else self.text[at : at + 1]
        found = f"found '{shown}'" if shown else "the file ends"
        self.refuse(at, f"expected {what}, {found}", at + len(shown))

    def refuse(self, at: int, message: str, end: int | None = None, hint: str = "") -> NoReturn:
        raise Unreadable.one_flaw("syntax", f"not valid JSON: {message}", at, end or at + 1, hint)


_HEADER: Final = re.compile(r"^[ \t]*(\[\[?)([^\[\]\r\n]+)\]", re.M)
_KEY: Final = re.compile(r"^[ \t]*((?:[\w.-]|\"[^\"\r\n]*\"|'[^'\r\n]*')+)[ \t]*=[ \t]*([^\r\n]*)", re.M)
_PARTS: Final = re.compile(r"[\w-]+|\"[^\"]*\"|'[^']*'")
_COMMENT: Final = re.compile(r"[ \t]*(#[^\"']*)?$")
_POSITION: Final = re.compile(r"\(at line (\d+), column (\d+)\)$")
Steps = tuple[str | int, ...]
Extents = tuple[int, int, int, int]
"""The start and end offsets of a key, and those of its value."""


def load_toml(text: str) -> tuple[Any, Location]:
    """Parse `text` and return its value and location.

    Raises:
        Unreadable: the text is not valid TOML.
    """
    try:
        value = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        message, at = _POSITION.sub("", str(error)).strip(), len(text)
        if found := _POSITION.search(str(error)):
            lines = text.splitlines(keepends=True)
            at = sum(map(len, lines[: int(found[1]) - 1])) + int(found[2]) - 1
        message = f"not TOML: {message[:1].lower()}{message[1:]}"
        raise Unreadable.one_flaw("bad-toml", message, at, at + 1) from None
    return value, _toml_location(value, _extents(text), (), (0, 0, 0, len(text)))


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


def _toml_location(value: Any, known: dict[Steps, Extents], path: Steps, outer: Extents) -> Location:
    """Return the location of a value; without extents of its own, that of the value around it."""
    at = known.get(path, outer)
    start, end = at[2:]
    if isinstance(value, dict):
        entries: dict[str, Entry] = {}
        for key, item in value.items():
            below = (*path, key)
            key_start, key_end = known.get(below, at)[:2]
            entries[key] = (key_start, key_end, _toml_location(item, known, below, at))
        return start, end, entries
    if isinstance(value, list):
        return start, end, [_toml_location(item, known, (*path, n), at) for n, item in enumerate(value)]
    return start, end, None
