"""The cases of a scenario: the rows of a table, each with a name and values.

A row is named by its column `name`, or else by the value of its first column, or, if that is neither a number
nor a short text, by its number. The rows of a file are read once and kept as written; the scenario of a row is
built when it runs (`harness.scenario.cases`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError, Problem, Span
from harness.scenario.case_rows import READERS, Row, read_list
from harness.source.display import clip, did_you_mean
from harness.source.document import Document, parse, shown_path
from harness.source.models import describe
from harness.units import LARGEST_FIGURE, is_number

NAME, WEIGHT = "name", "weight"
"""Columns with a predefined meaning."""
_SHOWN: Final = 20
"""Maximum number of problems that are reported for one table."""
_LONGEST_NAME: Final = 100
_LONGEST_NUMBER: Final = 300
"""In characters; anything longer is text."""
_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_WORDS: Final = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Case:
    """A row of a table, and its location.

    `is_text` is true if the values are text whose type has to be inferred from its form (CSV).
    """

    name: str
    values: Mapping[str, Any]
    span: Span
    is_text: bool = False

    def value(self, column: str) -> Any:
        """Return the typed value of a column.

        In CSV, the text is read as a number, `true`, `false`, `null`, `[a list]` or `{a: mapping}` if it has
        that form.
        """
        value = self._at(column)
        return _typed(value) if self.is_text else value

    def text(self, column: str) -> str:
        """Return the value of a column as text, to be inserted into longer text."""
        value = self._at(column)
        if self.is_text and column in self.values and isinstance(typed := _typed(value), str):
            return typed  # without the quotes that mark a number as text
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def has(self, column: str) -> bool:
        """True if the column exists, or the part of it that is meant: `a.b` is the entry `b` of the column `a`."""
        try:
            self._at(column)
        except LookupError:
            return False
        return True

    def weight(self) -> Any:
        """Return the value of the column `weight`, which replaces the scenario's, or None if there is none."""
        value = self.value(WEIGHT) if WEIGHT in self.values else ""
        return None if isinstance(value, str) and not value else value

    def _at(self, column: str) -> Any:
        if column in self.values:
            return self.values[column]
        first, *steps = column.split(".")
        value = self.value(first) if steps else self.values[first]
        for step in steps:
            if not isinstance(value, Mapping):
                raise LookupError(column)
            value = value[step]
        return value


def load_cases(source: Any, at: Document, folder: Path) -> list[Case]:
    """Return the cases that the key `cases` of a scenario defines.

    Args:
        source: the value of the key: a path relative to `folder`, or a list of mappings.
        at: the location of the value.
        folder: the folder of the scenario file.

    Raises:
        FormatError: with all problems of the table: it does not exist, cannot be read, has no rows, has columns or
            rows that do not fit, or has two rows of the same name.
    """
    if isinstance(source, str):
        path = Path(folder, source)
        reader = READERS.get(path.suffix.lower())
        if reader is None:
            text = f"'{source}' cannot be a table of cases: its name must end in one of {', '.join(READERS)}"
            raise FormatError(Problem("bad-value", text, at.span()))
        rows, name = reader(path, at.span()), shown_path(path)
    else:
        rows, name = read_list(at), "the list"
    cases = _checked(_case(row, number) for number, row in enumerate(rows, start=1))
    if not cases and isinstance(source, str):
        raise FormatError(Problem("no-cases", f"no cases in {name}", Span(name, 1, 1), _why_none(path)))
    if not cases:
        raise FormatError(Problem("no-cases", f"no cases in {name}", at.span()))
    return cases


def _why_none(path: Path) -> str:
    """Return the reason why a file has no cases."""
    if not path.read_bytes().strip():
        return "the file is empty"
    if path.suffix.lower() == ".csv":
        return "its first line names the columns, and no case is below it"
    return "a table needs a row for each case"


def unknown_column(column: str, case: Case) -> tuple[str, str]:
    """Return the message and the hint for a column that does not exist."""
    return f"no column '{clip(column, 60)}' in {case.span.file}", did_you_mean(column, case.values)


def _case(row: Row, number: int) -> Case:
    values = row.values
    named = values.get(NAME, next(iter(values.values()), None))
    if isinstance(named, bool) or not isinstance(named, str | int | float):
        named = number
    name = str(named)
    if NAME not in values and (not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME):
        name = str(number)
    return Case(name, *row)


def _checked(cases: Iterator[Case]) -> list[Case]:
    first: dict[str, Case] = {}
    problems: list[Problem] = []
    for case in cases:
        problems += _case_problems(case, first)
        first.setdefault(case.name, case)
        if len(problems) >= _SHOWN:
            break
    if problems:
        raise FormatError(problems)
    return list(first.values())


def _case_problems(case: Case, earlier: Mapping[str, Case]) -> Iterator[Problem]:
    if not case.name.strip() or not case.name.isprintable():
        yield Problem("bad-value", "the name of a case is one line of text", case.span)
    elif case.name in earlier:
        text = f"a second case '{clip(case.name, 60)}' (first in line {earlier[case.name].span.line})"
        hint = "" if NAME in case.values else f"cases are named by their first column: add a column '{NAME}'"
        yield Problem("duplicate-name", text, case.span, hint)
    weight = case.weight()
    if weight is not None and not (is_number(weight) and 0 < weight <= LARGEST_FIGURE):
        text = f"a weight is a number above 0, and at most {LARGEST_FIGURE:g}, found {describe(weight)}"
        yield Problem("bad-value", text, case.span)


def _typed(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text):
        number = json.loads(text)
        return number if math.isfinite(number) else text
    if text[:1] in ('"', "[", "{"):
        try:
            return parse(text, file="", yaml="1.2", error=FormatError).value
        except FormatError:
            return text
    return text
