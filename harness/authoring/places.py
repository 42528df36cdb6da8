"""The places where the values of a scenario are written, and the change of one of them in its file.

A value may be written in the scenario, in `defaults`, at the anchor of an alias, or in a cell of its `cases`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import FormatError, Span
from harness.graph.to_json import texts_in
from harness.scenario.case_table import NAME, Case, load_cases, with_cell
from harness.scenario.cases import CASES, REFERENCE
from harness.scenario.load import load_file, merged_scenarios
from harness.scenario.model import Scenario
from harness.settings import Settings
from harness.source.document import Document, DocumentPath, parse, read, real_path, shown_path
from harness.source.editing import replace_value


@dataclass(frozen=True)
class Place:
    """The place of a value in a file.

    Attributes:
        file: the real path of the file.
        path: the path in its document; in CSV and JSON lines, it begins with the number of the line.
        span: its location, for messages.
        offset: where its text begins; places of one offset are the same text.
        shared: what else reads this text, in words; "" if nothing does.
    """

    file: Path
    path: DocumentPath
    span: Span
    offset: int = -1
    shared: str = ""


class Refused(Exception):
    """An expectation that cannot be accepted; the message says why."""


class _Row(NamedTuple):
    scenario: int
    case: Case | None = None
    number: int = 0


class Source:
    """A scenario file, with the places of the values of its scenarios.

    Raises:
        FormatError: the file cannot be read.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        self._file = path
        self._document = read(path, yaml="1.2", error=FormatError)
        self._parts = merged_scenarios(self._document)
        self._scenarios = {each.name: each for each in load_file(path, settings).scenarios}
        self._rows: dict[str, _Row] = {}
        for index, part in enumerate(self._parts):
            name = part.value["name"]
            if part.value.get(CASES) is None:
                self._rows[name] = _Row(index)
                continue
            cases = load_cases(part.value[CASES], part.at((CASES,)), path.parent)
            self._rows |= {f"{name}[{case.name}]": _Row(index, case, at) for at, case in enumerate(cases)}

    def scenario(self, name: str) -> Scenario:
        """Return a scenario by its name.

        Raises:
            Refused: it is not written here.
        """
        if name not in self._rows:
            raise Refused("it is not written in this file")
        return self._scenarios[name].whole()

    def span(self, name: str, path: DocumentPath) -> Span:
        """Return the location of a value of a scenario."""
        return self._parts[self._rows[name].scenario].span(path)

    def place(self, name: str, path: DocumentPath) -> Place:
        """Return the place of a value of a scenario, of its keys merged with the defaults.

        Raises:
            Refused: it cannot be changed by itself.
        """
        row = self._rows[name]
        value = self._parts[row.scenario].value
        for size in range(len(path) + 1):
            if isinstance(value, str) and (found := REFERENCE.search(value)) and row.case is not None:
                if found[0] != value:
                    raise Refused(f"it is a text around `{found[0]}`")
                return self._cell(row, row.case, found[1], path[size:])
            try:
                value = value if size == len(path) else value[path[size]]
            except LookupError:  # as in a test scenario of a mesh, whose expectations are in its manifest
                raise Refused("it is not written in this file") from None
        return self._written(row.scenario, path)

    def _written(self, index: int, path: DocumentPath) -> Place:
        part = self._parts[index]
        offset, span = part.extent_of(path)[0], part.span(path)
        place = ("scenarios", index, *path)
        shared = ""
        if not _leads(self._document, place) or self._document.extent_of(place)[0] != offset:
            place = ("defaults", *path)
            users = sum(each.extent_of(path)[0] == offset for each in self._parts)
            shared = f"`defaults` of {users} scenarios" if users > 1 else ""
        return Place(real_path(self._file), place, span, offset, shared)

    def _cell(self, row: _Row, case: Case, column: str, rest: DocumentPath) -> Place:
        part = self._parts[row.scenario]
        uses = [path for path, text in texts_in(part.value) if column in REFERENCE.findall(text)]
        if len(uses) > 1:
            raise Refused(f"`${{case.{column}}}` is used {len(uses)} times")
        name, *steps = [column] if column in case.values else column.split(".")
        if name == (NAME if NAME in case.values else next(iter(case.values))):
            raise Refused(f"the column '{name}' names the cases")
        inside = (name, *steps, *rest)
        source = part.value[CASES]
        if not isinstance(source, str):
            return self._written(row.scenario, (CASES, row.number, *inside))
        users = sum(each.value.get(CASES) == source for each in self._parts)
        shared = f"a table of {users} scenarios" if users > 1 else ""
        file = real_path(self._file.parent / source)
        first = case.span.line if file.suffix.lower() in (".csv", ".jsonl") else row.number
        if file.suffix.lower() == ".csv" and inside[1:]:
            raise Refused("it is a part of a cell")
        return Place(file, (first, *inside), case.span, shared=shared)


def _leads(document: Document, path: DocumentPath) -> bool:
    value = document.value
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return False
    return True


@lru_cache(maxsize=4)
def _document(text: str, name: str, json: bool) -> Document:
    """Parse a text; the text of a file after an edit is that before the next one."""
    return parse(text, file=name, yaml="1.2", json=json, error=FormatError)


def edited(text: str, places: Sequence[Place], new: Any) -> str | None:
    """Return the text of a file with a new value at places that are the same text; None if it cannot be written."""
    (file, path), others = (places[0].file, places[0].path), [place.path for place in places[1:]]
    suffix = file.suffix.lower()
    if suffix == ".csv":
        return with_cell(text, int(path[0]), str(path[1]), new)
    as_read = partial(_document, name=shown_path(file), json=suffix in (".json", ".jsonl"))
    if suffix != ".jsonl":
        return replace_value(as_read(text), path, new, as_read, others)
    lines = text.split("\n")
    at = int(path[0]) - 1
    line = replace_value(as_read(lines[at]), path[1:], new, as_read)
    return None if line is None else "\n".join([*lines[:at], line, *lines[at + 1 :]])
