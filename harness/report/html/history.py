"""The history for the page: the figures of its runs, and the scenarios that changed."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError
from harness.report.headline_figures import FIGURES
from harness.report.history.file import read_history
from harness.report.history.text import describe_trend, run_name
from harness.report.history.trends import Run, Trends
from harness.source.document import shown_path

MAX_RUNS: Final = 100
MAX_SCENARIOS: Final = 200


def history_data(file: Path) -> dict[str, Any]:
    """Return the data of the history view; for a file that cannot be read only the reason, as `problem`.

    figures    names of the figures, in the order of those of each run
    runs       the last runs, the newest last; a figure is [number, text], or null if the run lacks it
    scenarios  notable ones, the worst first: {id, state, recent: verdicts, when: a description of its changes}
    """
    trends = Trends(MAX_RUNS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            trends.extend(read_history(file))
        except FormatError as error:
            return {"name": shown_path(file), "problem": str(error)}
    found = trends.notable()
    return {
        "name": shown_path(file),
        "problem": "; ".join(str(each.message) for each in caught) or None,
        "count": trends.count,
        "left_out": trends.left_out,
        "figures": [figure.label for figure in FIGURES],
        "runs": [_run(run) for run in trends.runs],
        "steady": len(trends.scenarios) - len(found),
        "more": max(0, len(found) - MAX_SCENARIOS),
        "scenarios": [
            {
                "id": trend.label,
                "state": (state := trends.state(trend)),
                "recent": [each.verdict for each in trend.recent],
                "when": describe_trend(trend, state),
            }
            for trend in found[:MAX_SCENARIOS]
        ],
    }


def _run(run: Run) -> dict[str, Any]:
    values = [(figure, figure.of(run.total)) for figure in FIGURES]
    return {
        "name": run_name(run),
        "commit": run.commit,
        "branch": run.branch,
        "complete": run.complete,
        "reason": run.reason,
        "count": run.total["runs"],
        "unpriced": bool(run.total.get("unpriced")),
        "figures": [None if value is None else [value, figure.text(value)] for figure, value in values],
    }
