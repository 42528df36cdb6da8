"""Change of a single value in the text of a YAML, JSON or TOML document, which keeps the rest of the text.

Several ways to write the new value are tried, beginning with the style of the old one. The first whose text parses as
the document with exactly that change is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harness.errors import SourceError
from harness.source.document import Document, DocumentPath
from harness.source.location import Replacement

Parse = Callable[[str], Document]


def replace_text(document: Document, line: int, column: int, new: str, parse: Parse) -> str | None:
    """Return the text of a document with `new` as the text value at a line and column; None if impossible."""
    extent = document.extent(line, column)
    if extent is None:
        return None
    wanted = document.with_texts({(line, column): new}).value
    start, end = extent
    old = document.text[start:end]
    indent = " " * _indent_of_block(document.text, start, end)
    return _first(
        document, parse, wanted, (Replacement(start, end, text) for text in _texts(old, new, indent))
    )


def replace_value(document: Document, path: DocumentPath, new: Any, parse: Parse) -> str | None:
    """Return the text of a document with another value at `path`, whose last step may be a new key of a mapping.

    None if no way to write it parses as wanted.
    """
    parent = document.at(path[:-1])
    wanted = _set(document.value, path, new)
    if path[-1] in parent.value if isinstance(parent.value, dict) else True:
        start, end = document.extent_of(path)
        replacements = [Replacement(start, end, text) for text in _values(document, path, new, start, end)]
    else:
        replacements = list(_insertions(document, path, new))
    return _first(document, parse, wanted, replacements)


def _first(document: Document, parse: Parse, wanted: Any, replacements: Iterable[Replacement]) -> str | None:
    for start, end, replacement in replacements:
        text = document.text[:start] + replacement + document.text[end:]
        try:
            if parse(text).value == wanted:
                return text
        except SourceError:
            continue
    return None


def _texts(old: str, new: str, indent: str) -> Iterator[str]:
    """Yield ways to write a text: in the style of the old one, as a literal block, in double quotes."""
    if old.startswith("'"):
        yield "'" + new.replace("'", "''") + "'"
    elif old[:1] in ("|", ">") or "\n" in new:
        yield from _blocks(old, new, indent)
    elif not old.startswith('"'):
        yield new
    yield json.dumps(new, ensure_ascii=False) + ("\n" if old.endswith("\n") else "")


def _blocks(old: str, new: str, indent: str) -> Iterator[str]:
    chomping = "" if new.endswith("\n") and not new.endswith("\n\n") else "+" if new.endswith("\n") else "-"
    lines = [f"{indent}{line}" if line.strip() else "" for line in new.rstrip("\n").split("\n")]
    ending = "\n" if old.endswith("\n") else ""
    yield f"|{chomping}\n" + "\n".join(lines) + ending
    yield f"|{chomping}\n" + "\n".join(lines) + "\n" + ending


def _indent_of_block(text: str, start: int, end: int) -> int:
    """Return the indentation for the lines of a block: as in the old block, or two more than its first line."""
    first, *rest = text[start:end].split("\n")
    written = [line for line in rest if line.strip()]
    if first[:1] in ("|", ">") and written:
        return len(written[0]) - len(written[0].lstrip(" "))
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return len(line) - len(line.lstrip(" -")) + 2


def _values(document: Document, path: DocumentPath, new: Any, start: int, end: int) -> Iterator[str]:
    old = document.text[start:end]
    tail = old[len(old.rstrip()) :]
    value = document.at(path).value
    if isinstance(new, list) and isinstance(value, list):
        known = {
            json.dumps(item, sort_keys=True, default=str): document.text[
                slice(*document.extent_of((*path, at)))
            ]
            for at, item in enumerate(value)
        }
        items = [known.get(json.dumps(item, sort_keys=True, default=str), _json(item)) for item in new]
        column = start - (document.text.rfind("\n", 0, start) + 1)
        if old.startswith("- ") and items:
            yield ("\n" + " " * column).join(f"- {item.rstrip()}" for item in items) + tail
        if old.startswith("["):
            yield "[" + ", ".join(item.strip() for item in items) + "]" + tail
    yield _json(new) + tail


def _insertions(document: Document, path: DocumentPath, new: Any) -> Iterator[Replacement]:
    """Yield ways to insert a new key before the others of its mapping."""
    start, _ = document.extent_of(path[:-1])
    text, column = document.text, start - (document.text.rfind("\n", 0, start) + 1)
    if text[start : start + 1] == "{":
        yield Replacement(start + 1, start + 1, f"{path[-1]}: {_json(new)}, ")
        yield Replacement(start + 1, start + 1, f'"{path[-1]}": {_json(new)}, ')
        yield Replacement(start + 1, start + 1, f'"{path[-1]}": {_json(new)}')
    else:
        yield Replacement(start, start, f"{path[-1]}: {_json(new)}\n{' ' * column}")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _set(value: Any, path: DocumentPath, new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, dict):
        return {**value, path[0]: _set(value.get(str(path[0])), path[1:], new)}
    return [_set(item, path[1:], new) if at == path[0] else item for at, item in enumerate(value)]
