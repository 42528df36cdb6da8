"""The head of the page: the result in a sentence, and the main figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import FormatError, Problem
from harness.report.figures import FIGURES, LATENCIES, Figure
from harness.report.formatting import percent, plural, seconds, unpriced
from harness.report.html.scenarios import Row, Rows
from harness.report.reading import read_lines
from harness.report.repeats import NOT_PASSED, label
from harness.report.summary import Summary
from harness.source.display import printable
from harness.source.document import shown_path


@dataclass(frozen=True)
class Baseline:
    """An earlier run: its name, its total (a group of summary.json) and its scenarios."""

    name: str
    total: Mapping[str, Any]
    rows: Rows

    @classmethod
    def read(cls, run: Path) -> Baseline:
        """Read a run from its folder or its results.jsonl.

        Raises:
            FormatError: the run cannot be read, or is a baseline file, which lacks the paths and totals of a report.
        """
        from harness.report.baseline_file import is_baseline_file

        if is_baseline_file(run):
            message = f"{shown_path(run)} is a baseline file: it has no paths and no totals, which a report compares"
            hint = "name a folder of results; `harness gate` and `harness compare` take this file"
            raise FormatError(Problem("baseline-refused", message, None, hint))
        rows, sums = Rows(), Summary()
        for number, line in enumerate(read_lines(run)):
            rows.add(number, line)
            sums.add(line)
        return cls(shown_path(run), sums.as_json()["total"], rows)

    def change(self, row: Row) -> str:
        """Return the change of a scenario since this baseline as one word; "" for none.

        new     it does not pass, and passed before or did not exist
        still   it does not pass, and did not pass before
        fixed   it passes, and did not pass before
        added   it passes or is skipped, and did not exist
        moved   it has the same verdict and took another path
        """
        before = self.rows.get(row.key)
        fails = row.verdict in NOT_PASSED
        if before is None:
            return "new" if fails else "added"
        failed = before.verdict in NOT_PASSED
        if fails:
            return "still" if failed else "new"
        if failed:
            return "fixed"
        return "moved" if list(before.path) != list(row.path) and before.verdict == row.verdict else ""

    def before(self, row: Row) -> dict[str, Any] | None:
        """Return the earlier {verdict, score, latency, path} of a scenario; `path` is None where it is unchanged."""
        found = self.rows.get(row.key)
        if found is None:
            return None
        path = None if list(found.path) == list(row.path) else found.path
        return {"verdict": found.verdict, "score": found.score, "latency": found.latency, "path": path}

    def removed(self, rows: Rows) -> Iterator[str]:
        """Yield the names of the scenarios that `rows` no longer has."""
        for row in self.rows:
            if rows.get(row.key) is None:
                yield label(row.id, row.variant)


def headline(rows: Rows, baseline: Baseline | None) -> str:
    """Return the result in a sentence, with changes since the baseline: "3 of 288 scenarios fail, 2 of them new"."""
    verdicts = [row.verdict for row in rows]
    failed, errors, skipped = (verdicts.count(name) for name in ("failed", "error", "skipped"))
    judged = len(verdicts) - skipped
    parts = []
    if failed:
        parts.append(f"{failed} of {plural(judged, 'scenario')} {'fails' if failed == 1 else 'fail'}")
    if errors:
        of = "" if failed else f" of {plural(judged, 'scenario')}"
        parts.append(f"{errors}{of} could not be judged")
    if not parts:
        passed = "No scenario was judged" if not judged else f"All {judged} scenarios pass"
        parts = ["The scenario passes" if judged == 1 else passed]
    text = " and ".join(parts)
    if baseline is not None:
        changes = [baseline.change(row) for row in rows]
        new, fixed = changes.count("new"), changes.count("fixed")
        if failed + errors:
            text += f", {_of_them(new, failed + errors)} new"
        if fixed:
            text += f"; {plural(fixed, 'scenario')} fixed"
    return text + (f"; {skipped} skipped." if skipped else ".")


def _of_them(count: int, of: int) -> str:
    if of == 1:
        return "and it is" if count else "which is not"
    return "none of them" if not count else "all of them" if count == of else f"{count} of them"


def state(total: Mapping[str, Any]) -> str:
    """Return the state of the run: `failed`, `error`, `skipped` or `passed`."""
    if total["failed"]:
        return "failed"
    if total["errors"]:
        return "error"
    return "passed" if total["passed"] else "skipped"


def changes(rows: Rows, baseline: Baseline) -> list[dict[str, str]]:
    """Return the numbers of changes since the baseline: {name, text}; `name` is a filter of the table."""
    found = Counter(baseline.change(row) for row in rows)
    said = {
        "new": "newly failing",
        "still": "still failing",
        "fixed": "fixed",
        "moved": "on another path",
        "added": "added",
    }
    return [{"name": name, "text": f"{found[name]:,} {text}"} for name, text in said.items() if found[name]]


def tiles(total: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Return the figures of a total as tiles {name, value, note, change}; `change` is since the baseline.

    Percentiles of latency share the tile of the brief one.
    """
    notes = {
        "pass rate": _rate_note(total),
        "fitness": "mean score, by weight",
        "p95": _latency_note(total),
        "tokens": _tokens_note(total),
        "cost": unpriced(total) or "US dollars",
    }
    shown = [figure for figure in FIGURES if figure not in LATENCIES or figure.is_brief]
    found = [
        {
            "name": f"latency {figure.label}" if figure in LATENCIES else figure.label,
            "value": figure.unit.text(value := figure.of(total)),
            "note": notes.get(figure.label, ""),
            "change": figure.moved(figure.of(before or {}), None if _is_unknown(figure, total) else value),
        }
        for figure in shown
    ]
    real = {"name": "real time", "value": seconds(total["wall"]), "note": "summed over runs", "change": ""}
    return [*found, real]


def _is_unknown(figure: Figure, total: Mapping[str, Any]) -> bool:
    """True if models without a price count as 0 in a cost."""
    return figure.label == "cost" and bool(unpriced(total))


def _rate_note(total: Mapping[str, Any]) -> str:
    low, high = total["pass_rate_interval"]
    note = f"95 % interval {percent(low)} to {percent(high)}" if total["pass_rate"] is not None else ""
    if total["distinct_runs"] != total["runs"]:
        note += f", of {plural(total['distinct_runs'], 'distinct run')}"
    return note


def _latency_note(total: Mapping[str, Any]) -> str:
    others = [f"{each.label} {each.text(each.of(total))}, " for each in LATENCIES if not each.is_brief]
    return f"virtual; {''.join(others)}longest {seconds(total['latency']['max'])}"


def _tokens_note(total: Mapping[str, Any]) -> str:
    tokens = total["tokens"]
    return f"{tokens['input']:,} in, {tokens['output']:,} out; {plural(total['llm_calls'], 'model call')}"


def shown(text: Any) -> str:
    """Return any text without control characters and characters that change the writing direction."""
    return printable(str(text), keep_newlines=True)
