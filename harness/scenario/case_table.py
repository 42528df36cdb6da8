"""The cases of a scenario: the rows of a table, each with a name and values.

A row is named by its column `name`, or else by the value of its first column, or, if that is neither a number
nor a short text, by its number. The rows of a file are read once and kept as written; the scenario of a row is
built when it runs (`harness.scenario.cases`).
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from harness.errors import FormatError, Problem, Span
from harness.source.display import clip, did_you_mean
from harness.source.document import Document, hint_for_missing, is_special, parse, read, shown_path
from harness.source.json import load as load_located
from harness.source.location import Unreadable
from harness.source.models import describe
from harness.units import LARGEST_FIGURE, is_number

MAX_BYTES: Final = 256 * 1024 * 1024
MAX_LINE: Final = 1024 * 1024
_QUOTED: Final = re.compile(r'"[^"]*(?:""[^"]*)*"')
_PLAIN: Final = re.compile(r"[^,\r\n]*")
_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")


class Row(NamedTuple):
    """A row of a table: its values by column, and its location.

    `is_text` is true if all values are text, as in CSV.
    """

    values: Mapping[str, Any]
    span: Span
    is_text: bool = False


def read_csv(path: Path, named_at: Span) -> Iterator[Row]:
    """Yield the rows of a CSV file; its first line names the columns."""
    name = shown_path(path)
    row: list[str] = []  # the lines of the row that is being read
    rows = csv.reader(_remember_lines(_lines(path, named_at), row), strict=True)
    csv.field_size_limit(MAX_LINE)
    columns: list[str] | None = None
    line = 1
    try:
        for cells in rows:
            span, line = Span(name, line, 1), rows.line_num + 1
            row.clear()
            if cells and columns is None:
                columns = _columns(cells, span)
            elif cells and columns is not None:
                yield Row(_by_column(columns, cells, span), span, is_text=True)
    except csv.Error:
        raise FormatError(_csv_problem("".join(row), Span(name, line, 1))) from None


def _remember_lines(lines: Iterator[str], row: list[str]) -> Iterator[str]:
    """Yield the lines, and append each to `row`."""
    for line in lines:
        row.append(line)
        yield line


def _csv_problem(row: str, start: Span) -> Problem:
    """Return the problem for a row, starting at `start`, that cannot be parsed."""
    at, text, hint = 0, "this row cannot be read", ""
    if len(row) > MAX_LINE:
        text, hint = "a cell of more than 1 MiB", 'perhaps its " is never closed'
    while at < len(row):
        quoted = row[at] == '"'
        cell = (_QUOTED if quoted else _PLAIN).match(row, at)
        if cell is None:
            if len(row) <= MAX_LINE:
                text, hint = 'this " is never closed', 'end the cell with "; inside it a " is written ""'
            break
        at = cell.end()
        if quoted and row[at : at + 1] not in ("", ",", "\r", "\n"):
            text, hint = 'text after the " that ends a cell', 'inside a cell in quotes a " is written ""'
            break
        if row[at : at + 1] == "\r":
            text, hint = "a carriage return without a line feed", "save the table with line ends LF or CRLF"
        if row[at : at + 1] != ",":
            break
        at += 1
    line, column = row.count("\n", 0, at), at - (row.rfind("\n", 0, at) + 1)
    return Problem("bad-case", text, Span(start.file, start.line + line, column + 1), hint)


def with_cell(text: str, line: int, column: str, new: Any) -> str | None:
    """Return the text of a CSV file with another value in a row, given by its first line; None if impossible."""
    lines = _LINES.findall(text)
    rows = list(csv.reader(lines))
    index = [name.strip() for name in next(filter(None, rows))].index(column)
    begin = end = sum(map(len, lines[: line - 1]))
    for number in range(index + 1):
        begin = end + (number > 0)
        cell = (_QUOTED if text[begin : begin + 1] == '"' else _PLAIN).match(text, begin)
        end = cell.end() if cell else begin
    shown = new if isinstance(new, str) and _typed(new) == new else json.dumps(new, ensure_ascii=False)
    written = shown
    if text[begin:end].startswith('"') or re.search(r'["\r\n,]', shown):
        written = '"' + shown.replace('"', '""') + '"'
    changed = text[:begin] + written + text[end:]
    after = list(csv.reader(_LINES.findall(changed)))
    differ = [row for row, other in zip(rows, after, strict=False) if row != other]
    held = [[*row[:index], shown, *row[index + 1 :]] in after for row in differ]
    return changed if len(rows) == len(after) and held == [True] else None


def _columns(cells: list[str], span: Span) -> list[str]:
    columns = [column.strip() for column in cells]
    for column in columns:
        if not column:
            raise FormatError(Problem("bad-case", "a column without a name", span))
        if columns.count(column) > 1:
            raise FormatError(Problem("duplicate-name", f"a second column '{clip(column, 60)}'", span))
    if len(columns) == 1 and (";" in cells[0] or "\t" in cells[0]):
        text = "one column only: columns are separated by commas"
        raise FormatError(Problem("bad-case", text, span, "save the table as CSV with commas"))
    return columns


def _by_column(columns: list[str], cells: list[str], span: Span) -> dict[str, str]:
    if len(cells) != len(columns):
        text = f"{_counted(cells, 'cell')}, where the first line has {_counted(columns, 'column')}"
        hint = "each row has a cell for each column, be it empty"
        if len(cells) > len(columns):
            hint = "a comma inside a cell needs quotes around the cell"
        raise FormatError(Problem("bad-case", text, span, hint))
    return dict(zip(columns, cells, strict=True))


def _counted(items: list[str], noun: str) -> str:
    return f"{len(items)} {noun}" if len(items) == 1 else f"{len(items)} {noun}s"


def read_json_lines(path: Path, named_at: Span) -> Iterator[Row]:
    """Yield the mapping on each line that is not empty."""
    name = shown_path(path)
    for number, text in enumerate(_lines(path, named_at), start=1):
        if not text.strip():
            continue
        try:
            value = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise FormatError(_json_problem(text.rstrip(), Span(name, number, 1))) from None
        yield _row(value, Span(name, number, 1))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _json_problem(line: str, start: Span) -> Problem:
    """Return the problem for a line that is not JSON.

    The line is parsed again with the slower reader of documents, which knows the location and the reason.
    """
    try:
        load_located(line)
    except Unreadable as unreadable:
        flaw = unreadable.flaws[0]
        text = flaw.message.replace("the file ends", "the line ends")
        span = Span(start.file, start.line, flaw.start + 1, flaw.end - flaw.start)
        return Problem("bad-case", text, span, flaw.hint)
    return Problem("bad-case", "not valid JSON", start)


def read_document(path: Path, named_at: Span) -> Iterator[Row]:
    """Yield the mappings of the list in a YAML or JSON file."""
    return read_list(read(path, yaml="1.2", error=FormatError, named_at=named_at))


def read_list(at: Document) -> Iterator[Row]:
    """Yield the mappings of a list."""
    if not isinstance(at.value, list):
        text = f"expected a list of cases, each a mapping, found {describe(at.value)}"
        raise FormatError(Problem("wrong-type", text, at.span()))
    for index, value in enumerate(at.value):
        yield _row(value, at.span((index,)))


def _row(value: Any, span: Span) -> Row:
    if not isinstance(value, dict) or not value:
        text = f"a case is a mapping of columns, found {describe(value)}"
        raise FormatError(Problem("bad-case", text, span))
    return Row(value, span)


def _lines(path: Path, named_at: Span) -> Iterator[str]:
    """Yield the lines of a text file.

    Raises:
        FormatError: the file does not exist, is too large, or is not text.
    """
    name = shown_path(path)
    try:
        if is_special(path) or path.is_dir():
            raise FormatError(Problem("not-a-file", f"{name}: this is not a file", named_at))
        if path.stat().st_size > MAX_BYTES:
            text = f"{name}: larger than {MAX_BYTES // 1024**2} MiB"
            raise FormatError(Problem("too-large", text, named_at))
        with path.open("rb") as stream:
            number = 0
            while data := stream.readline(MAX_LINE + 1):
                number += 1
                yield _text(data, Span(name, number, 1))
    except FileNotFoundError:
        problem = Problem("missing-file", f"{name}: no such file", named_at, hint_for_missing(path))
        raise FormatError(problem) from None
    except OSError as error:
        text = f"{name}: cannot be read: {error.strerror or error}"
        raise FormatError(Problem("unreadable-file", text, named_at)) from None


def _text(data: bytes, span: Span) -> str:
    if len(data) > MAX_LINE:
        raise FormatError(Problem("too-large", "a line of more than 1 MiB", span))
    if b"\0" in data:
        text = "not a text file: it contains zero bytes"
        raise FormatError(Problem("not-text", text, Span(span.file, span.line, data.index(0) + 1)))
    try:
        return data.decode("utf-8-sig" if span.line == 1 else "utf-8")
    except UnicodeDecodeError as error:
        problem = Problem(
            "not-text",
            f"not UTF-8: the byte 0x{data[error.start]:02x}",
            Span(span.file, span.line, error.start + 1),
            "save it as UTF-8",
        )
        raise FormatError(problem) from None


READERS: Final[Mapping[str, Callable[[Path, Span], Iterator[Row]]]] = {
    ".csv": read_csv,
    ".jsonl": read_json_lines,
    ".yaml": read_document,
    ".yml": read_document,
    ".json": read_document,
}
"""The reader for each file name suffix. It is given the path, and the location in the scenario that names it."""


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
