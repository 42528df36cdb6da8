"""Parsed files, with the location of each key and value.

`read` and `parse` make documents of YAML, JSON and TOML. All problems of a text are raised as one `SourceError`, each
with its span. The methods of `Document` that change data (`under`, `without`, `moved`, …) keep the locations.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NoReturn

from harness.errors import ManifestError, Problem, SourceError, Span
from harness.source.display import nearest
from harness.source.json import load as load_json
from harness.source.json import load_toml
from harness.source.location import Flaw, Lines, Location, Rewrite, Rewritten, Unreadable, split_lines
from harness.source.yaml import Version
from harness.source.yaml import load as load_yaml

DocumentPath = tuple[str | int, ...]

MAX_BYTES: Final = 10 * 1024 * 1024
_DOCUMENTS: Final = frozenset({".yaml", ".yml", ".json", ".toml"})
_LISTED: Final = 3
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Document:
    """The data of a file, or of a part of it, with its locations.

    Attributes:
        file: the name of the file in messages.
        value: the data: dict, list, str, int, float, bool, None; dates in YAML 1.1. Keys are text, unless the version
            of YAML allows others. Treat it as read-only: aliases of one YAML anchor share one object.
        text: the text of the whole file, which the locations point into.
    """

    __slots__ = ("_lines", "_location", "file", "text", "value")  # a scenario file makes thousands of these

    def __init__(
        self, file: str, value: Any, text: str, location: Location, lines: Lines | None = None
    ) -> None:
        self.file, self.value, self.text = file, value, text
        self._location = location
        self._lines = lines or Lines(text)

    def span(self, path: Sequence[str | int] = ()) -> Span:
        """Return the span of the value at `path`; if there is none, that of its nearest ancestor."""
        start, end, _ = self._walk(path)[0]
        return self._lines.span(self.file, start, end)

    def key_span(self, path: Sequence[str | int]) -> Span:
        """Return the span of the key at the end of `path`; for a list item, that of the item."""
        location, complete = self._walk(path[:-1])
        children = location[2]
        if complete and path and isinstance(children, dict) and path[-1] in children:
            start, end, _ = children[path[-1]]
            return self._lines.span(self.file, start, end)
        return self.span(path)

    def holds(self, path: Sequence[str | int]) -> bool:
        """True if the value at `path` is written inside this document's text, and not merged from elsewhere."""
        (start, end, _), (found, _, _) = self._location, self._walk(path)[0]
        return start <= found < end

    def span_within(self, path: Sequence[str | int], line: int, column: int) -> Span:
        """Return the span of a character in the text value at `path`, by its line and column there (from 1).

        If the file does not contain the text literally (escapes, folded lines), return the span of the value.
        """
        start, end, _ = self._walk(path)[0]
        lines = split_lines(str(self.at(path).value).rstrip())
        if line > len(lines):
            line, column = len(lines), len(lines[-1]) + 1
        bare = lines[line - 1].strip()
        offset = self.text.find(bare, start, end)
        if not bare or offset < 0:
            return self.span(path)
        offset += max(column - 1 - lines[line - 1].index(bare), 0)
        return self._lines.span(self.file, offset, offset + 1)

    def span_in_text(self, path: Sequence[str | int], offset: int, length: int = 1) -> Span:
        """Return the span of a part of the text value at `path`, by its offset; see `span_within`."""
        before = str(self.at(path).value)[:offset]
        found = self.span_within(path, before.count("\n") + 1, offset - before.rfind("\n"))
        return found if found == self.span(path) else replace(found, length=length)

    def extent_of(self, path: Sequence[str | int]) -> tuple[int, int]:
        """Return the start and end offsets in `text` of the value at `path`, which must exist."""
        start, end, _ = self._walk(path)[0]
        return start, end

    def key_start(self, path: Sequence[str | int]) -> int:
        """Return the offset in `text` of the key at the end of `path`, which must exist; of a list item, its own."""
        children = self._walk(path[:-1])[0][2]
        return children[path[-1]][0] if isinstance(children, dict) else self.extent_of(path)[0]

    def extent(self, line: int, column: int) -> tuple[int, int] | None:
        """Return the start and end offsets in `text` of the scalar that begins at a line and column, or None."""
        return _extent(self._location, self._lines.offset(line, column))

    def at(self, path: Sequence[str | int]) -> Document:
        """Return the part of the document at `path`, which must exist, as a document of the same file."""
        value = self.value
        for step in path:
            value = value[step]
        return self._with(value, self._walk(path)[0])

    def with_value(self, value: Any) -> Document:
        """Return this document with other data of the same shape, and the same locations."""
        return self._with(value, self._location)

    def without(self, *keys: str) -> Document:
        """Return this document's mapping without these keys."""
        start, end, children = self._location
        entries = children if isinstance(children, dict) else {}
        value = {key: item for key, item in self.value.items() if key not in keys}
        return self._with(value, (start, end, {key: entries[key] for key in value}))

    def moved(self, key: str, *path: str) -> Document:
        """Return this document's mapping with the entry at `key`, if any, moved to `path`, a chain of new keys."""
        start, end, children = self._location
        if key not in self.value or not isinstance(children, dict):
            return self
        value, (key_start, key_end, location) = self.value[key], children[key]
        for step in reversed(path[1:]):
            value = {step: value}
            location = (*location[:2], {step: (key_start, key_end, location)})
        rest = self.without(key)
        entries = rest._location[2]
        assert isinstance(entries, dict)
        moved = {**entries, path[0]: (key_start, key_end, location)}
        return self._with({**rest.value, path[0]: value}, (start, end, moved))

    def under(self, over: Document, replaces: Callable[[DocumentPath, Any], bool] | None = None) -> Document:
        """Return this document's mapping with that of `over` (a part of the same file) merged over it.

        Mappings are merged key by key at every depth, and other values are replaced. So is a mapping for which
        `replaces(path, value)` is true, with the value in `over`.
        """
        replaces_at = replaces or (lambda _path, _value: False)
        value, location = _merged((self.value, self._location), (over.value, over._location), (), replaces_at)
        return over._with(value, location)

    def with_texts(self, texts: Mapping[tuple[int, int], str]) -> Document:
        """Return this document with other texts, by line and column of the old ones. Aliases change, too."""
        by_offset = {self._lines.offset(*place): text for place, text in texts.items()}
        return self.with_value(_with_texts(self.value, self._location, by_offset))

    def replaced(self, value: Any) -> Document:
        """Return this document with other data. New values have the location of their nearest known ancestor."""
        return self._with(value, _aligned(value, self._location))

    def _with(self, value: Any, location: Location) -> Document:
        return Document(self.file, value, self.text, location, self._lines)

    def _walk(self, path: Sequence[str | int]) -> tuple[Location, bool]:
        """Return the location at `path` or of its nearest ancestor, and True if `path` exists."""
        location = self._location
        for step in path:
            children: Any = location[2]
            try:
                found = children[step]
                location = found if isinstance(children, list) else found[2]
            except (LookupError, TypeError):  # TypeError: there is nothing below, or a key where an index is
                return location, False
        return location, True


def _extent(location: Location, offset: int) -> tuple[int, int] | None:
    start, end, children = location
    if children is None:
        return (start, end) if start == offset else None
    below = children if isinstance(children, list) else [value for _, _, value in children.values()]
    return next((found for each in below if (found := _extent(each, offset)) is not None), None)


_Located = tuple[Any, Location]


def _with_texts(value: Any, location: Location, texts: Mapping[int, str]) -> Any:
    start, _, children = location
    if isinstance(value, str):
        return texts.get(start, value)
    if isinstance(value, dict) and isinstance(children, dict):
        return {key: _with_texts(item, children[key][2], texts) for key, item in value.items()}
    if isinstance(value, list) and isinstance(children, list):
        return [_with_texts(item, children[index], texts) for index, item in enumerate(value)]
    return value


def _aligned(value: Any, location: Location) -> Location:
    """Return the locations for new data in place of old data with this location."""
    start, end, children = location
    if isinstance(value, dict):
        known = children if isinstance(children, dict) else {}
        entries = {}
        for key, item in value.items():
            key_start, key_end, below = known.get(key, (start, end, (start, end, None)))
            entries[key] = (key_start, key_end, _aligned(item, below))
        return start, end, entries
    if isinstance(value, list):
        items = children if isinstance(children, list) else []
        places = [*items, *[(start, end, None)] * (len(value) - len(items))]
        return start, end, [_aligned(item, place) for item, place in zip(value, places, strict=False)]
    return start, end, None


def _merged(
    base: _Located, over: _Located, path: DocumentPath, replaces: Callable[[DocumentPath, Any], bool]
) -> _Located:
    below, above = base[1][2], over[1][2]
    if not (isinstance(below, dict) and isinstance(above, dict)) or replaces(path, over[0]):
        return over
    values, locations = {**base[0], **over[0]}, {**below, **above}
    for key in base[0].keys() & over[0].keys():
        key_start, key_end, location = above[key]
        lower = (base[0][key], below[key][2])
        values[key], location = _merged(lower, (over[0][key], location), (*path, key), replaces)
        locations[key] = (key_start, key_end, location)
    return values, (over[1][0], over[1][1], locations)


def parse(
    text: str,
    *,
    file: str,
    yaml: Version = "1.1",
    json: bool = False,
    toml: bool = False,
    error: type[SourceError] = ManifestError,
    max_bytes: int = MAX_BYTES,
    rewrite: Rewrite | None = None,
) -> Document:
    """Parse a text as JSON, TOML, or YAML of a version, and return it as a document.

    Args:
        text: the text.
        file: the name of the file in messages.
        yaml: the version of YAML, unless `json` or `toml`.
        json: parse it as JSON.
        toml: parse it as TOML.
        error: the class of the error to raise.
        max_bytes: the largest text that is accepted.
        rewrite: changes the text before it is parsed. Locations are those in the original text.

    Raises:
        error: with all problems of the text, each at its line and column.
    """
    text = text.removeprefix("\ufeff")
    read_as = rewrite(text) if rewrite else Rewritten(text, ())
    try:
        if read_as.length > max_bytes:
            raise Unreadable.one_flaw("too-large", f"larger than {max_bytes // 1024**2} MiB", 0, 0)
        if found := _SURROGATE.search(read_as.text):
            raise Unreadable.one_flaw("bad-surrogate", "half of a surrogate pair", *found.span())
        if toml:
            value, location = load_toml(read_as.text)
        else:
            value, location = load_json(read_as.text) if json else load_yaml(read_as.text, yaml)
    except Unreadable as unreadable:
        raise error(_problems(map(read_as.flaw, unreadable.flaws), file, text)) from None
    return Document(file, value, text, read_as.location(location))


def unwritten(value: Any, *, file: str) -> Document:
    """Return a document of values that are written nowhere: each is in an empty line of its own.

    Raises:
        TypeError: they are no data.
        UnicodeEncodeError: a text has half of a surrogate pair.
    """
    data = _data(value)
    location = _line_each(data, 0)
    return Document(file, data, "\n" * location[1], location)


def _line_each(value: Any, start: int) -> Location:
    """Return the locations of values, each one character behind the one before it, and inside of what holds it."""
    end = start + 1
    if isinstance(value, dict):
        entries = {}
        for key, item in value.items():
            below = _line_each(item, end)
            entries[key] = (end, below[1], below)
            end = below[1]
        return start, end, entries
    if isinstance(value, list):
        items = []
        for item in value:
            items.append(_line_each(item, end))
            end = items[-1][1]
        return start, end, items
    return start, end, None


def _data(value: Any) -> Any:
    """Return a copy of values as a file would have them."""
    if isinstance(value, str):
        value.encode()
        return str.__str__(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_data(item) for item in value]
    raise TypeError(f"an object of type {type(value).__name__}")


def read(
    path: str | Path,
    *,
    yaml: Version = "1.1",
    error: type[SourceError] = ManifestError,
    named_at: Span | None = None,
    max_bytes: int = MAX_BYTES,
    rewrite: Rewrite | None = None,
) -> Document:
    """Read a file and return it as a document: JSON or TOML by its suffix (`.json`, `.toml`), else YAML.

    Args:
        path: the file.
        yaml: the version of YAML.
        error: the class of the error to raise.
        named_at: the location in another file that names this one. A problem with the file as a whole points there.
        max_bytes: the largest file that is accepted.
        rewrite: see `parse`.

    Raises:
        error: the file cannot be read or parsed.
    """
    path = Path(path)
    name = shown_path(path)

    def refuse(code: str, message: str, hint: str = "") -> NoReturn:
        raise error(Problem(code, f"{name}: {message}", named_at, hint))

    def refuse_byte(at: int, message: str, hint: str) -> NoReturn:
        column = at - (data.rfind(b"\n", 0, at) + 1) + 1
        raise error(Problem("not-text", message, Span(name, data.count(b"\n", 0, at) + 1, column), hint))

    try:
        if is_special(path):  # opening a pipe may block for ever
            refuse("not-a-file", "this is a pipe, a socket or a device, not a file")
        with path.open("rb") as stream:
            data = stream.read(max_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        refuse("missing-file", "no such file", hint_for_missing(path, named_at))
    except IsADirectoryError:
        refuse("not-a-file", "this is a folder, not a file", _hint_for_folder(path))
    except (OSError, ValueError) as failure:
        refuse("unreadable-file", f"cannot be read: {getattr(failure, 'strerror', None) or failure}")
    if len(data) > max_bytes:
        refuse("too-large", f"larger than {max_bytes // 1024**2} MiB")
    if b"\0" in data:
        hint = "save it as UTF-8" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        refuse_byte(data.index(b"\0"), "not a text file: it contains zero bytes", hint)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        refuse_byte(failure.start, f"not UTF-8: the byte 0x{data[failure.start]:02x}", "save it as UTF-8")
    json, toml = (path.suffix.lower() == suffix for suffix in (".json", ".toml"))
    return parse(
        text, file=name, yaml=yaml, json=json, toml=toml, error=error, max_bytes=max_bytes, rewrite=rewrite
    )


def is_special(path: Path) -> bool:
    """True if a path is a pipe, a socket or a device.

    Raises:
        OSError, ValueError: the path does not exist.
    """
    mode = path.stat().st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def real_path(path: Path) -> Path:
    """Return the absolute path without links. Circular links stay, so that reading the path fails."""
    return Path(os.path.realpath(path))


def relative_path(path: Path, folder: Path) -> str:
    """Return the path relative to a folder, with `..` if needed, in the same form on every system."""
    return Path(os.path.relpath(path, folder)).as_posix()


def shown_path(path: str | Path) -> str:
    """Return the path for messages: relative to the current folder if it is inside, else as given."""
    return _below(os.fspath(path), os.getcwd()) if os.path.isabs(path) else Path(path).as_posix()


@lru_cache(maxsize=1024)
def _below(path: str, current: str) -> str:
    try:
        return Path(path).relative_to(current).as_posix()
    except ValueError:
        return Path(path).as_posix()


def hint_for_missing(path: Path, named_at: Span | None = None) -> str:
    """Return a hint for a path that does not exist: the reason, or an existing file with a similar name; or "".

    `named_at` is the location that names the path, which may have been meant relative to the current folder.
    """
    try:
        return _why_missing(path, named_at)
    except OSError:  # a folder that may not be listed, or a name that is too long
        return ""


def _why_missing(path: Path, named_at: Span | None) -> str:
    if path.is_symlink():
        return f"it is a link to '{os.readlink(path)}', which does not exist"
    if named_at is not None:
        folder = os.path.dirname(named_at.file)
        written = os.path.relpath(path, folder or os.curdir)
        if os.path.isfile(written):
            meant = Path(os.path.relpath(written, folder or os.curdir)).as_posix()
            return f"paths are relative to the file that contains them: write '{meant}'"
    if not path.parent.is_dir():
        return f"the folder {shown_path(path.parent)} does not exist"
    found = nearest(path.name, (entry.name for entry in path.parent.iterdir()))
    return f"did you mean '{shown_path(path.parent / found)}'?" if found else ""


def _hint_for_folder(folder: Path) -> str:
    """Return a hint with the first few documents in a folder, or ""."""
    try:
        files = sorted(entry for entry in folder.iterdir() if entry.suffix in _DOCUMENTS and entry.is_file())
    except OSError:  # a folder that may not be listed
        return ""
    listed = ", ".join(shown_path(file) for file in files[:_LISTED]) + (", …" if len(files) > _LISTED else "")
    return f"name a file: {listed}" if files else ""


def _problems(flaws: Iterable[Flaw], file: str, text: str) -> list[Problem]:
    lines = Lines(text)
    problems = []
    for flaw in flaws:
        first = "" if flaw.first is None else f" (first in line {lines.number(flaw.first)})"
        span = lines.span(file, flaw.start, flaw.end)
        problems.append(Problem(flaw.code, flaw.message + first, span, flaw.hint))
    return problems
