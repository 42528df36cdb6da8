"""The rows of a table of cases, one after the other, with their places: CSV, JSON Lines, YAML, JSON, or a list."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from harness.errors import FormatError, Problem, Span
from harness.source.display import clip
from harness.source.document import Document, hint_for_missing, is_special, read, shown_path
from harness.source.models import describe

MAX_BYTES: Final = 256 * 1024 * 1024
MAX_LINE: Final = 1024 * 1024


class Row(NamedTuple):
    """The values of a row by column, and where it stands. `written`: all of them are texts, as CSV has them."""

    values: Mapping[str, Any]
    span: Span
    written: bool = False


def rows_of_csv(path: Path, named_at: Span) -> Iterator[Row]:
    """The rows below the first, which names the columns."""
    name = shown_path(path)
    rows = csv.reader(_lines(path, named_at), strict=True)
    csv.field_size_limit(MAX_LINE)
    columns: list[str] | None = None
    line = 1
    try:
        for cells in rows:
            span, line = Span(name, line, 1), rows.line_num + 1
            if cells and columns is None:
                columns = _columns(cells, span)
            elif cells and columns is not None:
                yield Row(_by_column(columns, cells, span), span, written=True)
    except csv.Error as error:
        text = f"cannot be read as CSV: {error}"
        raise FormatError(Problem("bad-case", text, Span(name, line, 1))) from None


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
        text = f"{len(cells)} cells, where the first line has {len(columns)} columns"
        hint = "a comma inside a cell needs quotes around the cell" if len(cells) > len(columns) else ""
        raise FormatError(Problem("bad-case", text, span, hint))
    return dict(zip(columns, cells, strict=True))


def rows_of_json_lines(path: Path, named_at: Span) -> Iterator[Row]:
    """The mapping of each line that is not empty."""
    name = shown_path(path)
    for number, text in enumerate(_lines(path, named_at), start=1):
        if not text.strip():
            continue
        try:
            value = json.loads(text, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            problem = Problem("bad-case", f"no JSON: {error.msg}", Span(name, number, error.colno))
            raise FormatError(problem) from None
        except (ValueError, RecursionError) as error:
            raise FormatError(Problem("bad-case", f"no JSON: {error}", Span(name, number, 1))) from None
        yield _row(value, Span(name, number, 1))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def rows_of_document(path: Path, named_at: Span) -> Iterator[Row]:
    """The mappings in the list that a YAML or JSON file is."""
    return rows_of_list(read(path, yaml="1.2", error=FormatError, named_at=named_at))


def rows_of_list(at: Document) -> Iterator[Row]:
    """The mappings in a list."""
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
    """The lines of a text file, one at a time.

    Raises:
        FormatError: it is not there, too large, or no text.
    """
    name = shown_path(path)
    try:
        if is_special(path) or path.is_dir():
            raise FormatError(Problem("not-a-file", f"{name}: this is no file", named_at))
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
            "not-text", "not UTF-8", Span(span.file, span.line, error.start + 1), "save it as UTF-8"
        )
        raise FormatError(problem) from None


READERS: Final[Mapping[str, Callable[[Path, Span], Iterator[Row]]]] = {
    ".csv": rows_of_csv,
    ".jsonl": rows_of_json_lines,
    ".yaml": rows_of_document,
    ".yml": rows_of_document,
    ".json": rows_of_document,
}
"""By the end of a file's name. Each raises a FormatError for a table that is not as it should be."""
