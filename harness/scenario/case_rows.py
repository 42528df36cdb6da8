"""Readers for tables of cases in CSV, JSON Lines, YAML, JSON, or a list in the scenario itself.

Each yields one `Row` after the other, with its location, and raises a FormatError for a malformed table.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from harness.errors import FormatError, Problem, Span
from harness.source.display import clip
from harness.source.document import Document, hint_for_missing, is_special, read, shown_path
from harness.source.json import load as load_located
from harness.source.location import Unreadable
from harness.source.models import describe

MAX_BYTES: Final = 256 * 1024 * 1024
MAX_LINE: Final = 1024 * 1024
_QUOTED: Final = re.compile(r'"[^"]*(?:""[^"]*)*"')
_PLAIN: Final = re.compile(r"[^,\r\n]*")


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
