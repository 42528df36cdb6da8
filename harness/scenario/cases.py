"""Expansion of a scenario with `cases` into one scenario per row, with `${case.x}` replaced by the row's value.

    document of the scenario ─┬─▶ expand_cases ─▶ one Scenario per row
    rows of the table ────────┘

The first row is built completely, so that mistakes are found when the file is read. Of the other rows, only the keys
that select and report them are built at first, and the rest when they run (`Scenario.whole`), since a table may have
100,000 rows.

A text that consists only of `${case.x}` becomes the typed value; within longer text the value is inserted as
text. Source: docs/scenario-format.md, "Cases".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError, Problem, Span
from harness.graph.to_json import texts_in
from harness.scenario.case_table import NAME, WEIGHT, Case, load_cases, unknown_column
from harness.scenario.cassette import cassette_of_case
from harness.scenario.model import Scenario
from harness.source.display import clip
from harness.source.document import Document, DocumentPath, unwritten
from harness.world.spec import WorldSpec

CASES: Final = "cases"
_MARK: Final = "${case."
REFERENCE: Final = re.compile(r"\$\{case\.([^{}]+)\}")
"""A reference to a column; its group is the name."""
_LATE: Final = ("input", "turns", "expect", *WorldSpec.model_fields)
"""Keys that are read when a scenario runs; the others are needed to select and report it."""

Build = Callable[[Document], Scenario]
"""Builds the scenario of a document without `cases`, or raises a FormatError."""


def expand_cases(at: Document, build: Build, folder: Path) -> Iterator[Scenario]:
    """Yield the scenario of each row, in order.

    Args:
        at: the scenario with its `cases`.
        build: builds the scenario of one row.
        folder: the folder of the scenario file.

    Raises:
        FormatError: with the problems of the table, or of the scenario of its first row.
    """
    rows = load_cases(at.value[CASES], at.at((CASES,)), folder)
    whole = _Template(at.without(CASES), build)
    early = _Template(at.without(CASES, *_LATE), build)
    first = whole.scenario(rows[0])
    told = list(_other_references(whole.document, rows))
    if whole.refers:
        told += _unread_columns(rows, whole.columns, at.key_span((CASES,)))
        told += _repeated_rows(rows, whole.columns, at.key_span((CASES,)))
    elif len(rows) > 1:
        text = "no column of these cases is used: each of them runs the same"
        told.append(
            Problem("cannot-fail", text, at.key_span((CASES,)), "`${case.NAME}` is filled", "warning")
        )
    first = replace(first, warnings=(*first.warnings, *told))
    yield first
    alike = replace(
        first,
        name=at.value["name"],
        cassette=at.value.get("cassette"),
        weight=float(at.value.get("weight", 1)),
    )
    for case in rows[1:]:
        light = early.scenario(case) if early.refers else _of_row(alike, case, shares=True)
        yield replace(light, mentions=first.mentions, pending=partial(whole.scenario, case))


def stray_references(at: Document) -> list[Problem]:
    """Return a problem for each `${case.x}` in a scenario without `cases`."""
    hint = "the scenario needs `cases`: a table, or a list of rows"
    return [
        Problem("no-cases", f"there are no cases to take '{clip(found[0], 60)}' from", at.span(path), hint)
        for path, text in texts_in(at.value)
        if (found := REFERENCE.search(text))
    ]


def filled(value: Any, case: Case) -> Any:
    """Return a value with `${case.x}` replaced by those of a row.

    Raises:
        FormatError: the row lacks a column.
    """
    return _RowFiller(unwritten(value, file=""), case).filled().value


@dataclass(frozen=True, eq=False)
class _Template:
    """A scenario document without its table, to be filled with one row at a time."""

    document: Document
    build: Build

    @property
    def refers(self) -> bool:
        """True if the document contains a reference to the row."""
        return bool(self.columns)

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that the document refers to."""
        return frozenset(
            column for _, text in texts_in(self.document.value) for column in REFERENCE.findall(text)
        )

    def scenario(self, case: Case) -> Scenario:
        """Return the scenario of a row.

        Raises:
            FormatError: a column does not exist, or a value is invalid in its place.
        """
        try:
            built = self._built(case)
        except FormatError as error:
            raise FormatError([_of_case(problem, case) for problem in error.problems]) from None
        return _of_row(built, case, shares=self.shares_cassette)

    @property
    def shares_cassette(self) -> bool:
        """True if the rows name the same cassette, so that each needs a part of it."""
        return not REFERENCE.search(str(self.document.value.get("cassette")))

    def _built(self, case: Case) -> Scenario:
        try:
            return self.build(_RowFiller(self.document, case).filled())
        except FormatError as error:
            # A CSV cell that looks like a number may stand where only text is valid: retry with text there.
            misfits = {problem.span for problem in error.problems if problem.span is not None}
            if not case.is_text or not misfits:
                raise
            return self.build(_RowFiller(self.document, case, misfits).filled())


def _of_row(scenario: Scenario, case: Case, *, shares: bool) -> Scenario:
    """Return the scenario with what a row gives it; `shares` is true if its cassette is that of all rows."""
    weight, cassette = case.weight(), scenario.cassette
    if cassette is not None and shares:
        cassette = cassette_of_case(cassette, case.name)
    return replace(
        scenario,
        name=f"{scenario.name}[{case.name}]",
        cassette=cassette,
        weight=scenario.weight if weight is None else float(weight),
    )


def _of_case(problem: Problem, case: Case) -> Problem:
    return replace(problem, message=f"{problem.message}, in case '{clip(case.name, 60)}' ({case.span})")


@dataclass
class _RowFiller:
    """Inserts the values of a row into a document, as text at the locations in `as_text`."""

    document: Document
    case: Case
    as_text: Collection[Span] = ()

    def filled(self) -> Document:
        """Return the document with the row's values.

        Raises:
            FormatError: the row lacks a column.
        """
        self.problems: list[Problem] = []
        value = self._value(self.document.value, ())
        if self.problems:
            raise FormatError(self.problems)
        return self.document.with_value(value)

    def _value(self, value: Any, path: DocumentPath) -> Any:
        if isinstance(value, str):
            return self._text(value, path) if _MARK in value else value
        if isinstance(value, dict):
            return {self._key(key, path): self._value(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._value(item, (*path, index)) for index, item in enumerate(value)]
        return value

    def _text(self, text: str, path: DocumentPath) -> Any:
        for column in REFERENCE.findall(text):
            if not self.case.has(column):
                message, hint = unknown_column(column, self.case)
                self.problems.append(Problem("unknown-column", message, self.document.span(path), hint))
                return text
        whole = REFERENCE.fullmatch(text)
        if whole and self.document.span(path) not in self.as_text:
            return self.case.value(whole[1])
        return REFERENCE.sub(lambda found: self.case.text(found[1]), text)

    def _key(self, key: str, path: DocumentPath) -> str:
        if isinstance(key, str) and REFERENCE.search(key):
            message = "keys are not filled from cases, only values are"
            self.problems.append(Problem("bad-value", message, self.document.key_span((*path, key))))
        return key


# ---------------------------------------------------------------- what is written and not read

_REMARK: Final = "_"
"""The beginning of the name of a column for people."""
_OTHER_FORM: Final = re.compile(r"\$?\{+ *cases?\.([\w.]+) *\}+|\$case\.([\w.]*\w)")


def _unread_columns(rows: Sequence[Case], used: Iterable[str], span: Span) -> Iterator[Problem]:
    """Yield a warning if no `${case.x}` names some columns of a table at `span`; `used` are those that are named."""
    known = dict.fromkeys(column for row in rows for column in row.values)
    first = () if NAME in known else list(known)[:1]  # it names the cases
    read = {NAME, WEIGHT, *first, *used, *(path.partition(".")[0] for path in used)}
    unread = [column for column in known if column not in read and not column.startswith(_REMARK)]
    if unread:
        names = ", ".join(f"'{clip(column, 60)}'" for column in unread)
        noun = (
            f"column {names} of these cases is" if len(unread) == 1 else f"columns {names} of these cases are"
        )
        hint = f"write ${{case.{unread[0]}}} where it is meant, or call a remark {_REMARK}{unread[0]}"
        yield _unread(f"{noun} not used", span, hint)


def _repeated_rows(rows: Sequence[Case], used: Iterable[str], span: Span) -> Iterator[Problem]:
    """Yield a warning of the first row that has the values of an earlier one in all columns that are named."""
    columns = sorted({path.partition(".")[0] for path in used})
    first: dict[str, Case] = {}
    for row in rows:
        twin = first.setdefault(repr([row.values.get(column) for column in columns]), row)
        if twin is not row:
            text = f"case '{clip(row.name, 60)}' runs the same as '{clip(twin.name, 60)}'"
            yield _unread(text, span, "for several runs of the same, write `repeat`")
            return


def _other_references(at: Document, rows: Sequence[Case]) -> Iterator[Problem]:
    """Yield a warning for each text that names a column in a form which is not filled, such as `{{case.x}}`."""
    for path, text in texts_in(at.value):
        for found in _OTHER_FORM.finditer(text):
            column = found[1] or found[2]
            if found[0] != (right := f"${{case.{column}}}") and rows[0].has(column):
                yield _unread(
                    f"'{found[0]}' is not filled: it stays as it is", at.span(path), f"write {right}"
                )


def _unread(text: str, span: Span, hint: str = "") -> Problem:
    return Problem("unread", text, span, hint, severity="warning")
