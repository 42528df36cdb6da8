"""Expressions over the keywords of a scenario, for `-k`: the language of pytest, extended by phrases.

    expression = or, to the end
    or         = and ("or" and)*
    and        = not ("and" not)*
    not        = "not" not | "(" or ")" | phrase
    phrase     = word+

A phrase holds for a scenario if one of its keywords contains it, ignoring case. The keywords are those of pytest: the
names of folders, file and scenario, and the tags. In pytest a phrase is a single word, of fewer characters.
Source: https://docs.pytest.org/en/stable/how-to/usage.html
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, Self

from harness.errors import FormatError, Problem, Span
from harness.scenario.model import Scenario
from harness.source.display import nearest
from harness.source.document import shown_path

_TOKEN: Final = re.compile(r"[()]|[^\s()]+")
_WORDS: Final = ("and", "or", "not")
_OPTION: Final = "-k"

Keywords = Collection[str]
_Holds = Callable[[Keywords], bool]


@dataclass(frozen=True)
class Expression:
    """A parsed expression, with its phrases in order."""

    text: str
    phrases: tuple[str, ...]
    _holds: _Holds

    def holds(self, keywords: Keywords) -> bool:
        """True if the expression holds for a scenario with these keywords."""
        return self._holds([keyword.lower() for keyword in keywords])


def parse(text: str) -> Expression:
    """Parse an expression.

    Raises:
        FormatError: the syntax is wrong (code `bad-selection`). The location is a column of the text.
    """
    parser = _Parser(text)
    holds = parser.expression()
    return Expression(text, tuple(parser.phrases), holds)


def keywords_of(scenario: Scenario, project: Path) -> set[str]:
    """Return the keywords of a scenario: those of pytest, with the project as its root folder, and `FILE::NAME`."""
    file = Path(os.path.relpath(scenario.file.absolute(), project))
    shown = shown_path(scenario.file)
    files = {file.as_posix()} if os.path.isabs(shown) else {file.as_posix(), shown}
    ids = {f"{name}::{scenario.name}" for name in files}
    marks = {mark for mark in ("skip", "xfail") if getattr(scenario, mark) is not None}
    return {*file.parts, scenario.name, *scenario.tags, *marks, *ids}


class _Parser:
    """A recursive-descent parser. Each method is a rule of the grammar."""

    def __init__(self, text: str) -> None:
        self.phrases: list[str] = []
        self._text = text
        self._tokens = [(found[0], found.start()) for found in _TOKEN.finditer(text)]
        self._at = 0

    def expression(self) -> _Holds:
        holds = self._or()
        if self._next == ")":
            self._refuse("nothing opens this ')'")
        if self._next is not None:
            self._refuse("expected 'and' or 'or' before this")
        return holds

    def _or(self) -> _Holds:
        parts = list(self._joined("or", self._and))
        return lambda keywords: any(part(keywords) for part in parts)

    def _and(self) -> _Holds:
        parts = list(self._joined("and", self._not))
        return lambda keywords: all(part(keywords) for part in parts)

    def _joined(self, word: str, part: Callable[[], _Holds]) -> Iterator[_Holds]:
        yield part()
        while self._next == word:
            self._at += 1
            yield part()

    def _not(self) -> _Holds:
        if self._next == "not":
            self._at += 1
            negated = self._not()
            return lambda keywords: not negated(keywords)
        if self._next == "(":
            opened = self._at
            self._at += 1
            inner = self._or()
            if self._next != ")":
                if self._next is None:
                    self._at = opened
                    self._refuse("this '(' is never closed")
                self._refuse("expected 'and', 'or' or ')' before this")
            self._at += 1
            return inner
        return self._phrase()

    def _phrase(self) -> _Holds:
        first = self._at
        while self._next not in (None, "(", ")", *_WORDS):
            self._at += 1
        if self._at == first:
            after = f" after '{self._tokens[first - 1][0]}'" if first else ""
            found = f", found '{self._next}'" if self._next is not None else ""
            self._refuse(f"expected a part of a name or a tag{after}{found}")
        last, start = self._tokens[self._at - 1]
        phrase = self._text[self._tokens[first][1] : start + len(last)]
        self.phrases.append(phrase)
        lower = phrase.lower()
        return lambda keywords: any(lower in keyword for keyword in keywords)

    @property
    def _next(self) -> str | None:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else None

    def _refuse(self, message: str) -> NoReturn:
        end = len(self._text.rstrip())
        token, start = self._tokens[self._at] if self._at < len(self._tokens) else ("", end)
        before = self._tokens[self._at - 1][0] if self._at else ""
        near = nearest(before.lower(), _WORDS) if before not in _WORDS else None
        meant = f"  did you mean '{near}' before it?" if near else ""
        hint = f"{self._text}\n    {' ' * start}^{meant}"
        raise FormatError(Problem("bad-selection", message, Span(_OPTION, 1, start + 1, len(token)), hint))


@dataclass(frozen=True)
class Shard:
    """Shard `number` of `count`, both from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a shard, such as `2/5`.

        Raises:
            ValueError: the text is not valid; the message says why.
        """
        found = re.fullmatch(r"\s*(\d{1,6})\s*([/:,-]|of)\s*(\d{1,6})\s*", text, re.ASCII)
        if found is None:
            raise ValueError(f"'{text}' is not NUMBER/COUNT, such as 2/5")
        number, count = int(found[1]), int(found[3])
        if count < 1:
            raise ValueError(f"'{text}': there is at least one shard")
        if not 1 <= number <= count:
            raise ValueError(f"'{text}': the shards of {count} are 1/{count} to {count}/{count}")
        if found[2] != "/":
            raise ValueError(f"'{text}' is not NUMBER/COUNT; did you mean {number}/{count}?")
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def members(self, ids: Sequence[str]) -> list[int]:
        """Return the indices of the scenarios in this shard, in order, given the ids of all scenarios."""
        by_id = sorted(range(len(ids)), key=lambda index: (ids[index], index))
        return sorted(by_id[self.number - 1 :: self.count])
