"""Replacement of parts of a text before it is parsed, with a mapping back to offsets in the original."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from harness.source.location import Children, Flaw, Location


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
