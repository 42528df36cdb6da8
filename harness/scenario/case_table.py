"""The rows of a table, for each of which a scenario runs once: CSV, JSON Lines, YAML, JSON, or a list in its file.

A row is named by its column `name`; without one, by the value of its first column; where that is no short text or
number, by its number. Rows of a file are read once, and kept as they are written: what they make of the scenario is
built when it runs (`harness.scenario.cases`).
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from harness.errors import FormatError, Problem, Span
from harness.source.display import clip
from harness.source.document import Document, hint_for_missing, is_special, parse, read, shown_path
from harness.source.models import describe
from harness.source.suggest import did_you_mean

SUFFIXES: Final = (".csv", ".jsonl", ".yaml", ".yml", ".json")
NAME, WEIGHT = "name", "weight"
"""The columns with a meaning of their own."""
MAX_BYTES: Final = 256 * 1024 * 1024
MAX_ROW: Final = 1024 * 1024
_SHOWN: Final = 20
"""Problems of one table that are listed."""
_LONGEST_NAME: Final = 100
_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_WORDS: Final = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Case:
    """A row of a table, and where it stands.

    `written` is true where the values are texts whose types can only be seen by what they look like (CSV).
    """

    name: str
    values: Mapping[str, Any]
    span: Span
    written: bool = False

    def value(self, column: str) -> Any:
        """The value with its type. In CSV: a number, `true`, `false`, `null`, `[a list]`, `{a: mapping}`, or text."""
        value = self._at(column)
        return _typed(value) if self.written else value

    def text(self, column: str) -> str:
        """The value as it is written inside a text."""
        value = self._at(column)
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def has(self, column: str) -> bool:
        """True if there is such a column, or such a part of one: `a.b` is the entry `b` of the column `a`."""
        try:
            self._at(column)
        except LookupError:
            return False
        return True

    def weight(self) -> Any:
        """The value of the column `weight`, which replaces the scenario's; None if it has none."""
        value: float | str = self.value(WEIGHT) if WEIGHT in self.values else ""
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


def cases_of(source: Any, at: Document, folder: Path) -> list[Case]:
    """The rows that `cases` in a scenario means: a path from `folder`, or a list of mappings that stands at `at`.

    Raises:
        FormatError: with what is wrong with the table: it is not there, cannot be read, has no rows, columns or rows
            that do not fit, two rows of one name.
    """
    if isinstance(source, str):
        path = Path(folder, source)
        reader = _READERS.get(path.suffix.lower())
        if reader is None:
            text = f"'{source}' cannot be a table of cases: its name ends in none of {', '.join(SUFFIXES)}"
            raise FormatError(Problem("bad-value", text, at.span()))
        rows = reader(path, at.span())
        name = shown_path(path)
    else:
        rows, name = _listed(at), "the list"
    cases = _checked(rows)
    if not cases:
        hint = "a table needs a row for each case" if name != "the list" else ""
        raise FormatError(Problem("no-cases", f"no cases in {name}", at.span(), hint))
    return cases


def _checked(rows: Iterator[Case]) -> list[Case]:
    first: dict[str, Case] = {}
    problems: list[Problem] = []
    for case in rows:
        problems += _flaws(case, first)
        first.setdefault(case.name, case)
        if len(problems) >= _SHOWN:
            break
    if problems:
        raise FormatError(problems)
    return list(first.values())


def _flaws(case: Case, earlier: Mapping[str, Case]) -> Iterator[Problem]:
    if not case.name.strip() or not case.name.isprintable():
        yield Problem("bad-value", "the name of a case is one line of text", case.span)
    elif case.name in earlier:
        text = f"a second case '{clip(case.name, 60)}' (first in line {earlier[case.name].span.line})"
        hint = "" if NAME in case.values else f"cases are named by their first column: add a column '{NAME}'"
        yield Problem("duplicate-name", text, case.span, hint)
    weight = case.weight()
    sound = isinstance(weight, int | float) and not isinstance(weight, bool) and 0 < weight < math.inf
    if weight is not None and not sound:
        yield Problem("bad-value", f"a weight is a number above 0, found {describe(weight)}", case.span)


def _case(values: Mapping[str, Any], number: int, span: Span, written: bool = False) -> Case:
    named = values.get(NAME, next(iter(values.values()), None))
    if isinstance(named, bool) or not isinstance(named, str | int | float):
        named = number
    name = str(named)
    if NAME not in values and (not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME):
        name = str(number)
    return Case(name, values, span, written)


def _typed(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return json.loads(text)
    if text[:1] in ('"', "[", "{"):
        try:
            return parse(text, file="", yaml="1.2", error=FormatError).value
        except FormatError:
            return text
    return text


# ---------------------------------------------------------------- tables in files


def _csv(path: Path, named_at: Span) -> Iterator[Case]:
    name = shown_path(path)
    lines = _Lines(path, named_at)
    rows = csv.reader(iter(lines), strict=True)
    csv.field_size_limit(MAX_ROW)
    header: list[str] | None = None
    number, line = 0, 1
    try:
        for row in rows:
            span, line = Span(name, line, 1), rows.line_num + 1
            if not row:
                continue
            if header is None:
                header = _header(row, span)
                continue
            number += 1
            if len(row) != len(header):
                text = f"{len(row)} cells, where the first line has {len(header)} columns"
                hint = "a comma inside a cell needs quotes around the cell" if len(row) > len(header) else ""
                raise FormatError(Problem("bad-case", text, span, hint))
            yield _case(dict(zip(header, row, strict=True)), number, span, written=True)
    except csv.Error as error:
        raise FormatError(
            Problem("bad-case", f"cannot be read as CSV: {error}", Span(name, line, 1))
        ) from None


def _header(row: list[str], span: Span) -> list[str]:
    columns = [column.strip() for column in row]
    for column in columns:
        if not column:
            raise FormatError(Problem("bad-case", "a column without a name", span))
        if columns.count(column) > 1:
            raise FormatError(Problem("duplicate-name", f"a second column '{clip(column, 60)}'", span))
    if len(columns) == 1 and (";" in row[0] or "\t" in row[0]):
        text = "one column only: columns are separated by commas"
        raise FormatError(Problem("bad-case", text, span, "save the table as CSV with commas"))
    return columns


def _json_lines(path: Path, named_at: Span) -> Iterator[Case]:
    name = shown_path(path)
    number = 0
    for line, text in enumerate(_Lines(path, named_at), 1):
        if not text.strip():
            continue
        number += 1
        span = Span(name, line, 1)
        try:
            value = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            column = error.colno if isinstance(error, json.JSONDecodeError) else 1
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            raise FormatError(Problem("bad-case", f"no JSON: {reason}", Span(name, line, column))) from None
        yield _case(_row(value, span), number, span)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _document(path: Path, named_at: Span) -> Iterator[Case]:
    return _listed(read(path, yaml="1.2", error=FormatError, named_at=named_at))


def _listed(at: Document) -> Iterator[Case]:
    if not isinstance(at.value, list):
        text = f"expected a list of cases, each a mapping, found {describe(at.value)}"
        raise FormatError(Problem("wrong-type", text, at.span()))
    for index, value in enumerate(at.value):
        yield _case(_row(value, at.span((index,))), index + 1, at.span((index,)))


def _row(value: Any, span: Span) -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        text = f"a case is a mapping of columns, found {describe(value)}"
        raise FormatError(Problem("bad-case", text, span))
    return value


_READERS: Final = {
    ".csv": _csv,
    ".jsonl": _json_lines,
    ".yaml": _document,
    ".yml": _document,
    ".json": _document,
}


@dataclass
class _Lines:
    """The lines of a text file, one at a time.

    Iterating raises a FormatError where it is not there, too large, or no text.
    """

    path: Path
    named_at: Span

    def __iter__(self) -> Iterator[str]:
        name = shown_path(self.path)
        number = 0
        try:
            if is_special(self.path) or self.path.is_dir():
                raise FormatError(Problem("not-a-file", f"{name}: this is no file", self.named_at))
            if self.path.stat().st_size > MAX_BYTES:
                text = f"{name}: larger than {MAX_BYTES // 1024**2} MiB"
                raise FormatError(Problem("too-large", text, self.named_at))
            with self.path.open("rb") as stream:
                while data := stream.readline(MAX_ROW + 1):
                    number += 1
                    if len(data) > MAX_ROW:
                        raise FormatError(
                            Problem("too-large", "a line of more than 1 MiB", Span(name, number, 1))
                        )
                    if b"\0" in data:
                        text = "not a text file: it contains zero bytes"
                        raise FormatError(Problem("not-text", text, Span(name, number, data.index(0) + 1)))
                    yield data.decode("utf-8-sig" if number == 1 else "utf-8")
        except FileNotFoundError:
            text = f"{name}: no such file"
            raise FormatError(
                Problem("missing-file", text, self.named_at, hint_for_missing(self.path))
            ) from None
        except UnicodeDecodeError:
            text = "not UTF-8"
            raise FormatError(Problem("not-text", text, Span(name, number, 1), "save it as UTF-8")) from None
        except OSError as error:
            text = f"{name}: cannot be read: {error.strerror or error}"
            raise FormatError(Problem("unreadable-file", text, self.named_at)) from None


def unknown_column(column: str, case: Case) -> tuple[str, str]:
    """The message and the hint for a column that a table does not have."""
    return f"no column '{clip(column, 60)}' in {case.span.file}", did_you_mean(column, case.values)
