"""Detects what is written and not read: columns of cases, references of another form, repeated scenarios and rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from harness.errors import Problem, Span
from harness.scenario.case_table import NAME, WEIGHT, Case
from harness.scenario.model import Scenario
from harness.source.display import clip
from harness.source.document import Document, DocumentPath

_REMARK: Final = "_"
"""The beginning of the name of a column for people."""
_OTHER_FORM: Final = re.compile(r"\$?\{+ *cases?\.([\w.]+) *\}+|\$case\.([\w.]*\w)")
_OF_PEOPLE: Final = ("name", "description", "tags")
"""Keys of a scenario that its run does not read."""


def unread_columns(rows: Sequence[Case], used: Iterable[str], span: Span) -> Iterator[Problem]:
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
        yield _warning(f"{noun} not used", span, hint)


def repeated_rows(rows: Sequence[Case], used: Iterable[str], span: Span) -> Iterator[Problem]:
    """Yield a warning of the first row that has the values of an earlier one in all columns that are named."""
    columns = sorted({path.partition(".")[0] for path in used})
    first: dict[str, Case] = {}
    for row in rows:
        twin = first.setdefault(repr([row.values.get(column) for column in columns]), row)
        if twin is not row:
            text = f"case '{clip(row.name, 60)}' runs the same as '{clip(twin.name, 60)}'"
            yield _warning(text, span, "for several runs of the same, write `repeat`")
            return


def other_references(at: Document, rows: Sequence[Case]) -> Iterator[Problem]:
    """Yield a warning for each text that names a column in a form which is not filled, such as `{{case.x}}`."""
    for path, text in texts_with("case", at.value):
        for found in _OTHER_FORM.finditer(text):
            column = found[1] or found[2]
            if found[0] != (right := f"${{case.{column}}}") and rows[0].has(column):
                yield _warning(
                    f"'{found[0]}' is not filled: it stays as it is", at.span(path), f"write {right}"
                )


def texts_with(part: str, value: Any, path: DocumentPath = ()) -> Iterator[tuple[DocumentPath, str]]:
    """Yield each text below a value that contains `part`, with its path."""
    if isinstance(value, str):
        if part in value:
            yield path, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts_with(part, item, (*path, key))


def with_twins(scenarios: Sequence[Scenario], documents: Mapping[str, Document]) -> list[Scenario]:
    """Return scenarios, with a warning for each that an earlier one repeats but for its name.

    `documents` are those of the scenarios without `cases`, by name.
    """
    first: dict[str, Scenario] = {}
    result = []
    for scenario in scenarios:
        at = documents.get(scenario.name)
        twin = None if at is None else first.setdefault(_content(at), scenario)
        if twin is not None and twin is not scenario:
            text = f"this scenario runs the same as '{twin.name}' ({twin.span})"
            told = _warning(text, scenario.span, "for several runs of the same, write `repeat`")
            scenario = replace(scenario, warnings=(*scenario.warnings, told))
        result.append(scenario)
    return result


def _content(at: Document) -> str:
    return repr({key: value for key, value in at.value.items() if key not in _OF_PEOPLE})


def _warning(text: str, span: Span, hint: str = "") -> Problem:
    return Problem("unread", text, span, hint, severity="warning")
