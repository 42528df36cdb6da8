"""Expectations of scenarios that are rows of a table: what holds in one row, written for all of them.

A value that is in a column becomes `${case.COLUMN}`; everything else must hold in every row as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import FormatError, SourceError
from harness.report.encoding import encode
from harness.scenario import SUFFIXES
from harness.scenario.case_table import Case, load_cases
from harness.scenario.cases import CASES
from harness.scenario.load import merged_scenarios
from harness.scenario.model import Scenario
from harness.source.document import read


class Written(NamedTuple):
    """A scenario as its file has it: its name there, and the rows of its table by their names in results."""

    name: str
    rows: Mapping[str, Case]


def written(scenario: Scenario) -> Written | None:
    """Return a scenario as its file has it; None if it is none of a scenario file."""
    file = scenario.file
    try:
        if file.name.endswith(SUFFIXES):
            return _written(file, file.stat().st_mtime_ns).get(scenario.name)
    except (SourceError, OSError):
        pass
    return None


@lru_cache(maxsize=256)
def _written(file: Path, _modified_ns: int) -> Mapping[str, Written]:
    found: dict[str, Written] = {}
    for part in merged_scenarios(read(file, yaml="1.2", error=FormatError)):
        name, source = part.value["name"], part.value.get(CASES)
        cases = load_cases(source, part.at((CASES,)), file.parent) if source is not None else ()
        rows = {f"{name}[{case.name}]": case for case in cases}
        found |= dict.fromkeys(rows or (name,), Written(name, rows))
    return found


def for_all_rows(expect: Any, case: Case, rows: Sequence[Case]) -> Iterator[Any]:
    """Yield expectations of a row as all rows may have them: with its columns in place of values, and as they are."""
    columns: dict[str, str] = {}
    for name in _names(case.values, case):
        values = [encode(row.value(name)) if row.has(name) else None for row in rows]
        if None not in values and (len({*values}) > 1 or len(rows) == 1):
            columns.setdefault(encode(case.value(name)), f"${{case.{name}}}")
    referring = {key: _referring(value, columns) for key, value in expect.items()}
    yield from [referring, expect] if referring != expect else [expect]


def _names(value: Any, case: Case, above: str = "") -> Iterator[str]:
    for key in value if isinstance(value, Mapping) else ():
        yield f"{above}{key}"
        yield from _names(case.value(f"{above}{key}"), case, f"{above}{key}.")


def _referring(value: Any, columns: Mapping[str, str]) -> Any:
    if not isinstance(value, bool | None) and (known := columns.get(encode(value))) is not None:
        return known
    if isinstance(value, Mapping):
        return {key: _referring(item, columns) for key, item in value.items()}
    return [_referring(item, columns) for item in value] if isinstance(value, list) else value
