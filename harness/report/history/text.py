"""The trends of a history: for a terminal, a line for each run, a curve for each figure, and notable scenarios; for
report.html, the same as data.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from harness.errors import FormatError
from harness.report.figures import FIGURES
from harness.report.formatting import hanging, plural, some_of
from harness.report.history.file import read_history
from harness.report.history.trends import Run, ScenarioTrend, Trends
from harness.source.display import clip, columns, printable
from harness.source.document import shown_path

_MAX_SCENARIOS: Final = 20
_GAP: Final = "  "
_MIN_WIDTH: Final = 30
_COMMIT: Final = 7
_BARS: Final = "▁▂▃▄▅▆▇█"
_ASCII_BARS: Final = "_.-:=+*#"
_MARKS: Final = {"passed": "✓", "failed": "✗", "error": "!", "skipped": "·"}
_ASCII_MARKS: Final = {"passed": ".", "failed": "F", "error": "E", "skipped": "-"}


_STAY: Final = ("pass rate", "p95", "commit", "cost", "fitness", "runs", "tokens", "p50", "branch")
"""Columns that stay on a narrow terminal, the most important first; any other figure is dropped before them."""


def history_lines(trends: Trends, width: int | None, *, ascii_only: bool = False) -> Iterator[str]:
    """Yield the lines of a history, to fit a terminal of this width; None is no terminal."""
    yield from _table(trends, width)
    yield from _notes(trends, width)
    yield ""
    yield from _curves([run for run in trends.runs if run.complete] or [*trends.runs], width, ascii_only)
    yield from _scenarios(trends, width, ascii_only)


def _table(trends: Trends, width: int | None) -> Iterator[str]:
    if trends.left_out:
        yield f"… {plural(trends.left_out, 'earlier run')} (--last {trends.count} shows all)"
    head = ["run", "commit", "branch", "runs", *(figure.label for figure in FIGURES), "change"]
    rows = [*_rows(trends.runs)]
    shown = [at for at, name in enumerate(head) if name in ("run", "change") or any(row[at] for row in rows)]
    leave = [head.index(figure.label) for figure in FIGURES if figure.label not in _STAY]
    leave += [head.index(name) for name in reversed(_STAY[1:])]
    while True:
        widths = {at: max(columns(row[at]) for row in (head, *rows)) for at in shown}
        room = sum(widths.values()) + len(_GAP) * (len(shown) - 1)
        if width is None or room <= width:
            break
        without = next((at for at in leave if at in shown), None)
        if without is None:
            break
        shown.remove(without)
    for row in (head, *rows):
        cells = [_cell(row[at], widths[at], at in (0, 1, 2, len(head) - 1)) for at in shown]
        line = _GAP.join(cells).rstrip()
        yield line if width is None else clip(line, width)


def _cell(text: str, width: int, left: bool) -> str:
    blanks = " " * (width - columns(text))
    return text + blanks if left else blanks + text


def _rows(runs: Sequence[Run]) -> Iterator[list[str]]:
    before: Run | None = None
    for run in runs:
        total = run.total
        cells = [run_name(run), (run.commit or "")[:_COMMIT], printable(clip(run.branch or "", 20))]
        cells.append(str(total["runs"]))
        for figure in FIGURES:
            cells.append(figure.text(figure.of(total)))
        if total.get("unpriced"):
            cells[-1] += "*"
        cells.append(describe_change(before, run) if run.complete else "part")
        yield cells
        before = run if run.complete else before


def describe_change(before: Run | None, run: Run) -> str:
    """Describe the change since the last complete run: of the pass rate, or else of the next figure; "" for none."""
    if before is None:
        return ""
    for figure in FIGURES:
        old, new = figure.of(before.total), figure.of(run.total)
        if old is None or new is None or figure.text(old) == figure.text(new):
            continue
        word = "better" if figure.is_better(old, new) else "worse"
        return f"{figure.label} {word}" if figure.label != "pass rate" else f"{(new - old) * 100:+.1f} points"
    return ""


def run_name(run: Run) -> str:
    """Return a name for a run: its time, or else its folder or its number."""
    if run.time:
        return printable(clip(run.time, 30)).replace("T", " ").removesuffix("Z")[:16]
    return printable(run.name) if run.name else f"#{run.number}"


def _notes(trends: Trends, width: int | None) -> Iterator[str]:
    """Explain incomplete runs and the mark `*` of costs."""
    parts = [run for run in trends.runs if not run.complete]
    for run in parts[-3:]:
        yield from _hanging(
            f"part: {run_name(run)}: {printable(clip(run.reason or 'no reason is given', 200))}", width
        )
    if len(parts) > 3:
        yield f"      and {plural(len(parts) - 3, 'earlier part')}"
    unpriced = dict.fromkeys(str(name) for run in trends.runs for name in run.total.get("unpriced") or ())
    if unpriced:
        names = some_of([printable(clip(name, 60)) for name in unpriced], 5)
        yield from _hanging(f"*     no price of {names}", width)


def _curves(runs: Sequence[Run], width: int | None, ascii_only: bool) -> Iterator[str]:
    """Yield a curve for each figure that changed, with its first and last value."""
    if len(runs) < 2:
        return
    moved = False
    label = max(len(figure.label) for figure in FIGURES)
    room = 40 if width is None else max(5, min(40, width - label - 2 * len(_GAP) - 22))
    for figure in FIGURES:
        values = [value for run in runs[-room:] if (value := figure.of(run.total)) is not None]
        if len({*map(figure.text, values)}) < 2:
            continue
        moved = True
        drawn = sparkline(values, ascii_only=ascii_only)
        line = (
            f"{figure.label:<{label}}{_GAP}{drawn}{_GAP}{figure.text(values[0])} -> {figure.text(values[-1])}"
        )
        yield line if width is None else clip(line, width)
    if not moved:
        yield from _hanging("no figure moved from run to run", width)


def sparkline(values: Sequence[float], *, ascii_only: bool = False) -> str:
    """Return a character for each value, scaled from the lowest to the highest; equal values have the same height.

    >>> sparkline([0, 1, 2, 7]), sparkline([0, 1, 2, 7], ascii_only=True), sparkline([3, 3])
    ('▁▂▃█', '_.-#', '▄▄')
    """
    bars = _ASCII_BARS if ascii_only else _BARS
    low, high = min(values), max(values)
    if low == high:
        return bars[3] * len(values)
    return "".join(bars[round((value - low) / (high - low) * (len(bars) - 1))] for value in values)


def _scenarios(trends: Trends, width: int | None, ascii_only: bool) -> Iterator[str]:
    found = trends.notable()
    if not found:
        yield ""
        yield f"{plural(len(trends.scenarios), 'scenario')}: each passed in every run that had it"
        return
    state = ""
    for trend in found[:_MAX_SCENARIOS]:
        if trends.state(trend) != state:
            state = trends.state(trend)
            count = sum(trends.state(each) == state for each in found)
            yield ""
            yield f"{state}: {plural(count, 'scenario')}"
        yield from _hanging(f"  {printable(trend.label)}", width)
        marks = _ASCII_MARKS if ascii_only else _MARKS
        drawn = "".join(marks[each.verdict] for each in trend.recent)
        yield from _hanging(f"    {drawn}  {describe_trend(trend, state)}", width)
    if len(found) > _MAX_SCENARIOS:
        yield f"… and {plural(len(found) - _MAX_SCENARIOS, 'more scenario')} (--json has them)"


def describe_trend(trend: ScenarioTrend, state: str) -> str:
    """Describe the runs in which a scenario changed."""
    facts = []
    if state == "gone":
        facts.append(f"last run at {_at(trend.last_seen)} ({trend.verdict or 'skipped'})")
    elif trend.first_failed is not None:
        since = f"first failed at {_at(trend.first_failed)}"
        facts += [f"last passed at {_at(trend.last_passed)}" if trend.last_passed else "never passed", since]
    elif trend.fixed_in is not None:
        facts += [f"last failed at {_at(trend.last_failed)}", f"passes since {_at(trend.fixed_in)}"]
    if trend.changes > 1:
        facts.append(f"changed {trend.changes} times in {plural(trend.runs, 'run')}")
    if state == "failing" and trend.is_flaky:
        facts.append("flaky before, with the same agent")
    if trend.mixed:
        facts.append(f"its repeats disagreed in {plural(trend.mixed, 'run')}")
    return ", ".join(facts)


def _at(run: Run | None) -> str:
    if run is None:
        return "–"
    return run_name(run) + (f" ({run.commit[:_COMMIT]})" if run.commit else "")


def _hanging(text: str, width: int | None) -> Iterator[str]:
    """Wrap a text with hanging indentation."""
    yield from [text] if width is None else hanging(text, max(width, _MIN_WIDTH))


_MAX_PAGE_RUNS: Final = 100
_MAX_PAGE_SCENARIOS: Final = 200


def page_data(file: Path) -> dict[str, Any]:
    """Return the data of the history for report.html; for a file that cannot be read only the reason, as `problem`.

    figures    names of the figures, in the order of those of each run
    runs       the last runs, the newest last; a figure is [number, text], or null if the run lacks it
    scenarios  notable ones, the worst first: {id, state, recent: verdicts, when: a description of its changes}
    """
    trends = Trends(_MAX_PAGE_RUNS)
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
        "runs": [_page_run(run) for run in trends.runs],
        "steady": len(trends.scenarios) - len(found),
        "more": max(0, len(found) - _MAX_PAGE_SCENARIOS),
        "scenarios": [
            {
                "id": trend.label,
                "state": (state := trends.state(trend)),
                "recent": [each.verdict for each in trend.recent],
                "when": describe_trend(trend, state),
            }
            for trend in found[:_MAX_PAGE_SCENARIOS]
        ],
    }


def _page_run(run: Run) -> dict[str, Any]:
    values = [(figure, figure.of(run.total)) for figure in FIGURES]
    return {
        "name": run_name(run),
        **{key: getattr(run, key) for key in ("commit", "branch", "complete", "reason")},
        "count": run.total["runs"],
        "unpriced": bool(run.total.get("unpriced")),
        "figures": [None if value is None else [value, figure.text(value)] for figure, value in values],
    }
