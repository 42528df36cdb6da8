"""Locations of values in a parsed text, and the errors of a text that cannot be parsed.

A location is `(start, end, children)`: the offsets of the value in the text, and for a list the locations of its
items, for a mapping `(start of the key, end of the key, location of the value)` by key. Offsets become lines and
columns only when a span is made, so that parsing stays fast.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, Self, TypeAlias

from harness.errors import Span

Location: TypeAlias = "tuple[int, int, Children]"
Entry: TypeAlias = "tuple[int, int, Location]"
Children: TypeAlias = "list[Location] | dict[Any, Entry] | None"

MAX_DEPTH: Final = 100
MAX_NODES: Final = 1_000_000

_LINE_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Flaw:
    """An error in a text. `start` and `end` are offsets, `code` is that of `Problem`.

    `first` is the offset of the first of two conflicting parts, if the message refers to it.
    """

    code: str
    message: str
    start: int
    end: int
    hint: str = ""
    first: int | None = None


class Unreadable(Exception):
    """A text that is not valid in its format. Never raised out of `harness.source`."""

    def __init__(self, flaws: Iterable[Flaw]) -> None:
        self.flaws = tuple(flaws)
        super().__init__("; ".join(flaw.message for flaw in self.flaws))

    @classmethod
    def one_flaw(cls, code: str, message: str, start: int, end: int, hint: str = "") -> Self:
        """Return the error for one flaw."""
        return cls([Flaw(code, message, start, end, hint)])


class Lines:
    r"""The lines of a text, which end at `\n`, `\r\n` or `\r`, as editors count them."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in _LINE_BREAK.finditer(self._text))]

    def span(self, file: str, start: int, end: int) -> Span:
        """Return the span of `text[start:end]`, cut at the end of its first line."""
        start = min(start, len(self._text))
        line = bisect_right(self._starts, start)
        if line < len(self._starts):
            end = min(end, self._starts[line])
        return Span(file, line, start - self._starts[line - 1] + 1, len(self._text[start:end].rstrip()))

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a character by its line and column (from 1), or -1 if there is no such line."""
        return self._starts[line - 1] + column - 1 if 0 < line <= len(self._starts) else -1

    def number(self, offset: int) -> int:
        """Return the number of the line at `offset`, from 1."""
        return bisect_right(self._starts, offset)


def line(text: str, number: int) -> str | None:
    """Return line `number` (from 1) without its line break, or None if the text is shorter."""
    lines = split_lines(text)
    return lines[number - 1] if 0 < number <= len(lines) else None


def split_lines(text: str) -> list[str]:
    """Return the lines of a text without their line breaks."""
    return _LINE_BREAK.split(text)


class Replacement(NamedTuple):
    """A text to put in place of `original[start:end]`."""

    start: int
    end: int
    text: str


class Rewritten:
    """A text with replacements, which are in order and do not overlap.

    Its methods map offsets in `text` to offsets in the original. Anything that begins or ends inside a replacement
    begins or ends where the replaced part does.
    """

    def __init__(self, original: str, replacements: Sequence[Replacement]) -> None:
        self._original, self._replacements = original, replacements
        self._begins: list[int] = []
        self._ends: list[int] = []
        shift = 0
        for start, end, new in replacements:
            self._begins.append(start + shift)
            self._ends.append(start + shift + len(new))
            shift += len(new) - (end - start)
        self.length = len(original) + shift
        self._children: dict[int, Children] = {}

    @cached_property
    def text(self) -> str:
        """The text after the replacements. Check its `length` first: it can be very large."""
        parts, at = [], 0
        for start, end, new in self._replacements:
            parts += [self._original[at:start], new]
            at = end
        return "".join([*parts, self._original[at:]])

    def start(self, offset: int) -> int:
        """Return the offset in the original of something that begins at `offset`."""
        at = bisect_right(self._begins, offset) - 1
        if at < 0:
            return offset
        if offset < self._ends[at] or offset == self._begins[at]:
            return self._replacements[at].start
        return self._replacements[at].end + offset - self._ends[at]

    def end(self, offset: int) -> int:
        """Return the offset in the original of something that ends at `offset`."""
        at = bisect_left(self._begins, offset) - 1
        if at < 0:
            return offset
        return self._replacements[at].end + max(offset - self._ends[at], 0)

    def location(self, location: Location) -> Location:
        """Return the location in the original. Shared parts stay shared."""
        if not self._replacements:
            return location
        start, end, children = location
        return self.start(start), self.end(end), self._moved(children)

    def _moved(self, children: Children) -> Children:
        if children is None:
            return None
        if id(children) not in self._children:
            self._children[id(children)] = (
                [self.location(item) for item in children]
                if isinstance(children, list)
                else {
                    key: (self.start(start), self.end(end), self.location(value))
                    for key, (start, end, value) in children.items()
                }
            )
        return self._children[id(children)]

    def flaw(self, flaw: Flaw) -> Flaw:
        """Return the flaw with its offsets in the original."""
        first = None if flaw.first is None else self.start(flaw.first)
        return replace(flaw, start=self.start(flaw.start), end=self.end(flaw.end), first=first)


Rewrite = Callable[[str], Rewritten]
