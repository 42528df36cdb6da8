"""The failures of a run grouped by cause, for the list that the page shows even without its script."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.report.verdicts import NOT_PASSED

Row = Mapping[str, Any]

_MAX_CHECKS: Final = 3
_MAX_MEMBERS: Final = 12


def by_cause(rows: Sequence[Row]) -> list[list[Row]]:
    """Group the scenarios that did not pass by their fault: new failures first, then the largest groups."""
    groups: dict[str, list[Row]] = {}
    for at, row in enumerate(rows):
        if row["verdict"] in NOT_PASSED:
            groups.setdefault(row["fault"] or str(at), []).append(row)
    return sorted(groups.values(), key=lambda group: (not _new(group), -len(group)))


def cause(group: Sequence[Row], texts: Mapping[int, str]) -> dict[str, Any]:
    """Return a cause in the form of the page.

    {rows: some of the scenarios, count, more, first, new: number of new failures, error, where, rerun, tell, checks,
    more_checks}. `texts` are the details of runs, as JSON.
    """
    first = group[0]
    number = next(run[0] for run in first["runs"] if run[2] in NOT_PASSED)
    found = json.loads(texts.get(number, "{}"))
    failed = [check for check in found.get("checks", ()) if not check["passed"]]
    checks = [] if first["fault"] else failed[:_MAX_CHECKS]
    return {
        "rows": group[:_MAX_MEMBERS],
        "count": len(group),
        "more": max(0, len(group) - _MAX_MEMBERS),
        "first": first,
        "new": _new(group),
        "error": found.get("error"),
        "where": found.get("where"),
        "rerun": found.get("rerun"),
        "tell": found.get("tell"),
        "checks": checks,
        "more_checks": 0 if first["fault"] else len(failed) - len(checks),
    }


def _new(group: Sequence[Row]) -> int:
    return sum(row.get("change") == "new" for row in group)
