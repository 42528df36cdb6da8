"""The strings and numbers of a JSON text and where they stand, so that one can be edited and the rest left as it is.

Text that is not quite JSON, or ends in the middle, is read as far as it goes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[{}\[\],]|[^\s"{}\[\],:]++', re.DOTALL)
_COLON = re.compile(r"\s*:")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_INDEXES = ("index", "output_index", "content_index", "summary_index")


@dataclass
class Holder:
    """An object or array. `members` has the strings and numbers of an object, as text, and None for others.

    Of an array it has the first alone. `at` is where it stands in its parent, `now` where reading is.
    """

    kind: str
    parent: Holder | None
    at: str | int
    now: str | int
    members: dict[str | int, str | None] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many items an array has that has any."""
        return self.now + 1 if isinstance(self.now, int) else 0

    def identity(self) -> tuple[object, ...]:
        """Equal for the parts of one object in the events of a stream.

        Items of lists are told apart by the `index` they name: a chunk lists only the items it adds to.
        """
        indexes = tuple(self.members.get(name) for name in _INDEXES)
        if self.parent is None:
            return indexes, self.members.get("type")
        if isinstance(self.at, int) and indexes[0] is not None:
            return (indexes,)
        return self.at, indexes


@dataclass
class Literal:
    """A string, the name of a member or a number of a JSON text: `text[start:end]`."""

    kind: str
    start: int
    end: int
    raw: str
    value: str
    holder: Holder | None
    name: str | int

    def path(self) -> tuple[object, ...]:
        """Where it is, the same for all parts of a streamed text."""
        path: list[object] = [self.name]
        holder = self.holder
        while holder is not None:
            path.append(holder.identity())
            holder = holder.parent
        return tuple(path)

    def written(self, value: str) -> str:
        """Another string as this one is written: with escapes or without, closed or not."""
        ascii_only = self.raw.isascii() or any("\ud800" <= char <= "\udfff" for char in value)
        text = json.dumps(value, ensure_ascii=ascii_only)
        return text if self.kind == "number" or closed(self.raw) else text[:-1]


def literals(text: str) -> Iterator[Literal]:
    """The literals of a text, in order. What an object has is known when all have been read."""
    holder: Holder | None = None
    for token in _TOKEN.finditer(text):
        raw = token.group()
        if raw in "{[":
            holder = Holder(raw, holder, holder.now if holder else "", now="" if raw == "{" else 0)
            if holder.parent is not None and isinstance(holder.at, str):
                holder.parent.members[holder.at] = None
        elif raw in "}]":
            holder = holder.parent if holder else None
        elif raw == ",":
            if holder and holder.kind == "[" and isinstance(holder.now, int):
                holder.now += 1
        else:
            literal = _literal(text, token, holder)
            if literal is not None:
                yield literal


def _literal(text: str, token: re.Match[str], holder: Holder | None) -> Literal | None:
    raw = token.group()
    name = holder.now if holder else ""
    value: str | None = None
    kind = "string"
    if raw[0] == '"':
        value = decoded(raw)
        if holder and holder.kind == "{" and _COLON.match(text, token.end()):
            kind, holder.now = "name", value if value is not None else ""
    elif _NUMBER.fullmatch(raw):
        kind, value = "number", raw
    if kind != "name" and holder and (isinstance(name, str) or name == 0):
        holder.members[name] = value
    if value is None:
        return None
    return Literal(kind, token.start(), token.end(), raw, value, holder, name)


def closed(raw: str) -> bool:
    """Does a string of JSON end, with a quote that is not escaped?"""
    return len(raw) > 1 and raw[-1] == '"' and (len(raw) - len(raw[:-1].rstrip("\\"))) % 2 == 1


def decoded(raw: str) -> str | None:
    """What a string of JSON says; None when it is no such string. The closing quote may be missing."""
    if closed(raw) and "\\" not in raw:
        return raw[1:-1]
    try:
        value = json.loads(raw if closed(raw) else raw + '"', strict=False)
    except ValueError:
        return None
    return value if isinstance(value, str) else None
