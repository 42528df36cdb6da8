"""Change of a value in the text of a YAML, JSON or TOML document, which keeps every other byte of the text.

Several ways to write the new value are tried, beginning with the style of the old one: its quotes, its kind of block,
the way in which the items of its list are joined. The first whose text parses as the document with exactly that
change is used, so that no way has to know all rules of YAML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from harness.errors import SourceError
from harness.source.document import Document, DocumentPath
from harness.source.location import Replacement

Parse = Callable[[str], Document]

_PROPERTIES: Final = re.compile(r"(?:[&!][^\s,\[\]{}]*\s+)*")
"""Anchor and tag of a value, which are part of its extent."""
_ANCHOR: Final = re.compile(r"&([^\s,\[\]{}]+)\s+")
_TAG: Final = re.compile(r"!\S*\s+")
_HEADER: Final = re.compile(r"([|>])([-+1-9]*)(.*)")
_DASH: Final = re.compile(r"^[ \t]*(-)(?=\s)", re.MULTILINE)
_COMMENT: Final = re.compile(r"[ \t]*#[^\n]*")


def replace_text(document: Document, line: int, column: int, new: str, parse: Parse) -> str | None:
    """Return the text of a document with `new` as the text value at a line and column; None if impossible."""
    extent = document.extent(line, column)
    if extent is None:
        return None
    wanted = document.with_texts({(line, column): new}).value
    return _first(document, parse, wanted, _scalars(document.text, *extent, new))


def replace_value(
    document: Document, path: DocumentPath, new: Any, parse: Parse, also: Collection[DocumentPath] = ()
) -> str | None:
    """Return the text of a document with another value at `path`, whose last step may be a new key of a mapping.

    Where other places rely on the same text, they keep their value: an alias at `path` is replaced by the new one,
    and an anchor there moves to the first of its aliases, with the old value.

    Args:
        document: the document.
        path: the place of the value.
        new: the value, of JSON types.
        parse: parses a text as the document was parsed.
        also: further places that are the same text, by an alias, and get the new value, too.

    Returns:
        The text; None if no way to write it parses as wanted.
    """
    parent = document.at(path[:-1]).value
    if isinstance(parent, dict) and path[-1] not in parent:
        return _first(
            document, parse, changed(document.value, path, new), _insertions(document, path, new, parse)
        )
    return (
        _inside(document, path, new, parse, also)
        or _set(document, path, new, parse, also)
        or _apart(document, path, new, parse)
        or _handed_on(document, path, new, parse)
    )


def remove_value(document: Document, path: DocumentPath, parse: Parse) -> str | None:
    """Return the text of a document without the key or the list item at `path`.

    Returns:
        The text; None if no way to write it parses as wanted.
    """
    above, last = path[:-1], path[-1]
    parent = document.at(above).value
    if isinstance(parent, dict):
        left: Any = {key: value for key, value in parent.items() if key != last}
        ways = _key_removals(document, path, [*parent])
    else:
        at = int(last)
        left, ways = [*parent[:at], *parent[at + 1 :]], _removals(document, above, at)
    wanted = changed(document.value, above, left)
    return _first(document, parse, wanted, ways) or replace_value(document, above, left, parse)


def rename_key(document: Document, path: DocumentPath, name: str, parse: Parse) -> str | None:
    """Return the text of a document in which the key at the end of `path` has another name.

    Returns:
        The text; None if it does not parse as wanted.
    """
    old, start = str(path[-1]), document.key_start(path)
    begin = document.text.find(old, start)
    items = document.at(path[:-1]).value.items()
    wanted = changed(document.value, path[:-1], {name if key == path[-1] else key: of for key, of in items})
    return _first(document, parse, wanted, [Replacement(begin, begin + len(old), name)])


def changed(value: Any, path: DocumentPath, new: Any) -> Any:
    """Return a value with `new` at a path inside it, whose last step may be a new key."""
    if not path:
        return new
    if isinstance(value, dict):
        return {**value, path[0]: changed(value.get(str(path[0])), path[1:], new)}
    return [changed(item, path[1:], new) if at == path[0] else item for at, item in enumerate(value)]


def _first(document: Document, parse: Parse, wanted: Any, replacements: Iterable[Replacement]) -> str | None:
    for start, end, replacement in replacements:
        text = document.text[:start] + replacement + document.text[end:]
        if _reads(parse, text, wanted):
            return text
    return None


def _reads(parse: Parse, text: str, wanted: Any) -> bool:
    try:
        return bool(parse(text).value == wanted)
    except SourceError:
        return False


def _wanted(document: Document, path: DocumentPath, new: Any, also: Iterable[DocumentPath]) -> Any:
    value = document.value
    for place in (path, *also):
        value = changed(value, place, new)
    return value


# ---------------------------------------------------------------- where the value is


def _set(
    document: Document, path: DocumentPath, new: Any, parse: Parse, also: Collection[DocumentPath] = ()
) -> str | None:
    wanted = _wanted(document, path, new, also)
    return _first(document, parse, wanted, _values(document, path, new, parse))


def _inside(
    document: Document, path: DocumentPath, new: Any, parse: Parse, also: Collection[DocumentPath]
) -> str | None:
    """Change only those items and entries of a list or mapping that differ."""
    old = document.at(path).value
    if not old or not new or type(old) is not type(new) or not isinstance(new, list | dict):
        return None

    text = document.text
    for kind, key, value in _steps(old, new):
        at = parse(text)
        if kind == "change":
            beside = [(*place, key) for place in also]
            made = replace_value(at, (*path, key), value, parse, beside)
        else:
            items = at.at(path).value
            left = [*items[:key], *([value] if kind == "add" else ()), *items[key + (kind == "drop") :]]
            ways = _additions(at, path, key, value, parse) if kind == "add" else _removals(at, path, key)
            made = _first(at, parse, _wanted(at, path, left, also), ways)
        if made is None:
            return None
        text = made
    return text if _reads(parse, text, _wanted(document, path, new, also)) else None


def _steps(old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the changes that lead from one list or mapping to another: those of a list from its end on."""
    if isinstance(old, dict):
        same_keys = new if old.keys() == new.keys() else ()
        yield from (("change", key, new[key]) for key in same_keys if _key(old[key]) != _key(new[key]))
        return
    aligned = SequenceMatcher(None, [*map(_key, old)], [*map(_key, new)], autojunk=False).get_opcodes()
    for kind, start, end, first, last in reversed(aligned):
        if kind != "equal":
            both = min(end - start, last - first)
            yield from (("drop", at, None) for at in reversed(range(start + both, end)))
            yield from (("add", start + both, new[at]) for at in reversed(range(first + both, last)))
            yield from (("change", start + at, new[first + at]) for at in range(both))


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _apart(document: Document, path: DocumentPath, new: Any, parse: Parse) -> str | None:
    """Write the value in place of the alias, or beside the merged mapping, that leads to a text others rely on."""
    for size in range(1, len(path) + 1):
        at = path[:size]
        start, end = document.extent_of(at[:-1])
        own, _ = document.extent_of(at)
        value = changed(document.at(at).value, path[size:], new)
        if document.text[own : own + 1] == "*":
            return _set(document, at, value, parse)
        if not start <= own < max(end, start + 1) and size > 1:  # merged by `<<`
            wanted = changed(document.value, at, value)
            return _first(document, parse, wanted, _insertions(document, at, value, parse))
    return None


def _handed_on(document: Document, path: DocumentPath, new: Any, parse: Parse) -> str | None:
    """Move the anchor of a value, or of one around it, to its first alias, and write the new value after that."""
    text = document.text
    for size in range(len(path), 0, -1):
        start, end = document.extent_of(path[:size])
        anchor = _ANCHOR.match(text, start, end)
        alias = anchor and re.compile(rf"\*{re.escape(anchor[1])}(?![^\s,\]}}])").search(text, end)
        if anchor and alias:
            old = text[start:end].rstrip()
            moved = text[:start] + text[anchor.end() : alias.start()] + old + text[alias.end() :]
            if _reads(parse, moved, document.value):
                return replace_value(parse(moved), path, new, parse)
    return None


def content_end(document: Document, path: DocumentPath) -> int:
    """Return the end of a value, without the blank lines and comments that a parser counts as parts of it."""
    start, end = document.extent_of(path)
    text, value = document.text, document.at(path).value
    first = _after_properties(text, start, end)
    if isinstance(value, list | dict) and text[first] not in "[{*":
        steps = range(len(value)) if isinstance(value, list) else value
        below = [(*path, step) for step in steps if start <= document.extent_of((*path, step))[0] < end]
        return max((content_end(document, place) for place in below), default=end)
    return start + len(text[start:end].rstrip())


def _after_properties(text: str, start: int, end: int) -> int:
    found = _PROPERTIES.match(text, start, end)
    return found.end() if found else start


def _key_removals(document: Document, path: DocumentPath, keys: Sequence[str]) -> Iterator[Replacement]:
    text, at = document.text, keys.index(str(path[-1])) if path[-1] in keys else 0
    key, stop = document.key_start(path), content_end(document, path)
    begin, end = text.rfind("\n", 0, key) + 1, text.find("\n", stop) + 1
    yield Replacement(begin, end or len(text), "")
    if at + 1 < len(keys):
        yield Replacement(key, document.key_start((*path[:-1], keys[at + 1])), "")
    if at:
        yield Replacement(content_end(document, (*path[:-1], keys[at - 1])), stop, "")
    yield Replacement(key, stop, "")


# ---------------------------------------------------------------- items of lists


def _removals(document: Document, path: DocumentPath, at: int) -> Iterator[Replacement]:
    places = [document.extent_of((*path, index)) for index in range(len(document.at(path).value))]
    text, is_last = document.text, at == len(places) - 1
    if not _is_block(document, path):
        if is_last and at:
            yield Replacement(places[at - 1][1], places[at][1], "")
        elif not is_last:
            yield Replacement(places[at][0], places[at + 1][0], "")
        return
    dash, stop = _dash(document, path, at), content_end(document, (*path, at))
    begin, end = text.rfind("\n", 0, dash) + 1, text.find("\n", stop) + 1
    yield Replacement(begin, end, "") if end else Replacement(max(begin - 1, 0), len(text), "")
    yield Replacement(begin, places[at][1], "")
    if not is_last:
        yield Replacement(dash, _dash(document, path, at + 1), "")


def _additions(
    document: Document, path: DocumentPath, at: int, new: Any, parse: Parse
) -> Iterator[Replacement]:
    text = document.text
    before = max(at - 1, 0)  # the item that it is written beside, in the same quotes
    start, end = document.extent_of((*path, before))
    quote = text[start : start + 1]
    if not _is_block(document, path):
        item, joint = _flow(new, parse, quote), ", "
        if len(document.at(path).value) > 1:
            pair = [document.extent_of((*path, index)) for index in (0, 1)]
            joint = _COMMENT.sub("", text[pair[0][1] : pair[1][0]])
        yield Replacement(end, end, joint + item) if at else Replacement(start, start, item + joint)
        yield Replacement(end, end, ", " + item) if at else Replacement(start, start, item + ", ")
        return
    item, dash = _flow(new, parse, quote, "- {}\n"), _dash(document, path, before)
    line = text.rfind("\n", 0, dash) + 1
    margin = text[line:dash] if text[line:dash].isspace() or line == dash else " " * (dash - line)
    gap = text[dash + 1 : start]
    item = f"-{gap if gap.strip(' ') == '' and gap else ' '}{item}"
    if at:
        stop = text.find("\n", content_end(document, (*path, before)))
        stop = len(text) if stop < 0 else stop
        yield Replacement(stop, stop, f"\n{margin}{item}")
        yield Replacement(end, end, f"{margin}{item}\n")
    else:
        yield Replacement(dash, dash, f"{item}\n{margin}")


def _is_block(document: Document, path: DocumentPath) -> bool:
    start, end = document.extent_of(path)
    return document.text[_after_properties(document.text, start, end)] == "-"


def _dash(document: Document, path: DocumentPath, at: int) -> int:
    """Return the offset of the dash of an item of a block list."""
    start, end = document.extent_of(path)
    if at == 0:
        return _after_properties(document.text, start, end)
    above = document.text.find("\n", content_end(document, (*path, at - 1)))
    found = _DASH.search(document.text, above + 1)
    return found.start(1) if found else start


# ---------------------------------------------------------------- ways to write a value


def _values(document: Document, path: DocumentPath, new: Any, parse: Parse) -> Iterator[Replacement]:
    """Yield ways to write a value in place of another."""
    start, end = document.extent_of(path)
    text, old = document.text, document.at(path).value
    if not isinstance(new, list | dict) and (
        not isinstance(old, list | dict) or text[start : start + 1] == "*"
    ):
        yield from _scalars(text, start, end, new)
    begin, stop = _after_properties(text, start, end), content_end(document, path)
    key = len(text[:begin].rstrip())
    for written in (_flow(new, parse), _json(new)):
        yield Replacement(begin, max(begin, stop), written)
        yield Replacement(key, max(begin, stop), f" {written}")
        yield Replacement(begin, max(begin, stop), f"  {written}")  # below its key, not beside it
        yield Replacement(start, max(begin, stop), _TAG.sub("", text[start:begin]) + written)


def _scalars(text: str, start: int, end: int, new: Any) -> Iterator[Replacement]:
    """Yield ways to write a scalar: in the style of the old one, as a literal block, in double quotes."""
    start = _after_properties(text, start, end)
    old = text[start:end]
    tail = old[len(old.rstrip()) :]
    ways: Iterable[str] = ()
    if not isinstance(new, str):
        ways = (_json(new) + tail,)
    elif old.startswith("'"):
        ways = ("'" + new.replace("'", "''") + "'",)
    elif old[:1] in ("|", ">") or ("\n" in new and not old.startswith('"')):
        ways = _blocks(text, start, end, new)
    elif not old.startswith('"'):
        ways = (new,)
    for written in (*ways, _double(new) + tail, _json(new) + tail):
        yield Replacement(start, end, written if old else f" {written}")


def _blocks(text: str, start: int, end: int, new: str) -> Iterator[str]:
    """Yield a text as a block: in the kind of the old one, with its chomping, or what the text needs instead."""
    old, body = text[start:end], new.rstrip("\n")
    breaks = len(new) - len(body)
    first, *rest = old.split("\n")
    header = _HEADER.fullmatch(first)
    sign, marks, comment = header.groups() if header else ("|", "", "")
    written = [line for line in rest if line.strip()] if header else []
    margin = " " * _margin(text, start, written)
    needed = "-" if not breaks else "" if breaks == 1 else "+"
    indicated = str(len(margin) - _margin(text, start, []) + 2)
    width = max(map(len, written), default=0) - len(margin) if len(written) > 1 else 10**6
    ways = ((sign, marks), (sign, needed), ("|", needed), ("|", indicated + needed))
    for kind, given in dict.fromkeys(ways):
        lines = (_folded(body, width) if kind == ">" else body).split("\n")
        block = "\n".join([f"{kind}{given}{comment}", *(f"{margin}{line}" if line else "" for line in lines)])
        if "+" in marks:  # the blank lines behind it are a part of it
            yield block + "\n" * breaks
        yield block + (old[len(old.rstrip()) :] if header else "")
        if not header:
            yield block + "\n" * max(breaks, 1)


def _folded(body: str, width: int) -> str:
    """Return a text as the lines of a folded block, of about this many characters."""
    apart = re.sub(r"\n+", lambda found: "\n" + found[0], body)
    return re.sub(rf"(\S.{{0,{min(width, 9999)}}}(?<=\S)) (?=\S)", r"\1\n", apart)


def _margin(text: str, start: int, written: list[str]) -> int:
    """Return the indentation for the lines of a block: as in the old block, or two more than its first line."""
    if written:
        return len(written[0]) - len(written[0].lstrip(" "))
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return len(line) - len(line.lstrip(" -")) + 2


def _insertions(document: Document, path: DocumentPath, new: Any, parse: Parse) -> Iterator[Replacement]:
    """Yield ways to insert a new key before the others of its mapping."""
    start, end = document.extent_of(path[:-1])
    start = _after_properties(document.text, start, end)
    text, column = document.text, start - (document.text.rfind("\n", 0, start) + 1)
    if text[start : start + 1] == "{":
        yield Replacement(start + 1, start + 1, f"{path[-1]}: {_flow(new, parse)}, ")
        yield Replacement(start + 1, start + 1, f'"{path[-1]}": {_json(new)}, ')
        yield Replacement(start + 1, start + 1, f'"{path[-1]}": {_json(new)}')
    else:
        yield Replacement(start, start, f"{path[-1]}: {_flow(new, parse)}\n{' ' * column}")


def _flow(value: Any, parse: Parse, quote: str = "", around: str = "[{}]") -> str:
    """Return a value on one line as people write it: texts without quotes, or in those of their neighbours."""
    if isinstance(value, list):
        return f"[{', '.join(_flow(item, parse) for item in value)}]"
    if isinstance(value, dict):
        entries = (f"{_flow(key, parse)}: {_flow(item, parse)}" for key, item in value.items())
        return f"{{{', '.join(entries)}}}"
    if not isinstance(value, str):
        return _json(value)
    text = "'" + value.replace("'", "''") + "'" if quote == "'" else value
    plain = quote != '"' and "\n" not in value and _reads(parse, around.format(text), [value])
    return text if plain else _double(value)


def _double(value: Any) -> str:
    """Return a text in double quotes, with escapes of YAML for characters that are not printable."""
    return "".join(map(_escaped, _json(value)))


def _escaped(character: str) -> str:
    code = ord(character)
    return character if character.isprintable() else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
