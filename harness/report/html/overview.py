"""The head of the page: the result in a sentence, and the main figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import FormatError, Problem
from harness.report.formatting import cost, percent, plural, score, seconds, unpriced
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
    """Return the figures of a total as tiles {name, value, note, change}; `change` is since the baseline."""
    low, high = total["pass_rate_interval"]
    latency, old = total["latency"], before or {"latency": {}, "tokens": {}}
    tokens = total["tokens"]
    rate_note = f"95 % interval {percent(low)} to {percent(high)}" if total["pass_rate"] is not None else ""
    if total["distinct_runs"] != total["runs"]:
        rate_note += f", of {plural(total['distinct_runs'], 'distinct run')}"
    calls = plural(total["llm_calls"], "model call")
    notes = {
        "pass rate": (percent(total["pass_rate"]), rate_note),
        "fitness": (score(total["fitness"]), "mean score, by weight"),
        "latency p95": (
            seconds(latency["p95"]),
            f"virtual; p50 {seconds(latency['p50'])}, longest {seconds(latency['max'])}",
        ),
        "tokens": (f"{tokens['total']:,}", f"{tokens['input']:,} in, {tokens['output']:,} out; {calls}"),
        "cost": (dollars(total["cost"]), unpriced(total) or "US dollars"),
        "real time": (seconds(total["wall"]), "summed over runs"),
    }
    moved = {
        "pass rate": _moved(total, old, "pass_rate", _points, "better", "worse"),
        "fitness": _moved(total, old, "fitness", score, "better", "worse"),
        "latency p95": _moved(latency, old["latency"], "p95", seconds, "slower", "faster"),
        "tokens": _moved(tokens, old["tokens"], "total", "{:,}".format, "more", "fewer"),
        "cost": "" if unpriced(total) else _moved(total, old, "cost", dollars, "dearer", "cheaper"),
    }
    return [
        {"name": name, "value": value, "note": note, "change": moved.get(name, "")}
        for name, (value, note) in notes.items()
    ]


def dollars(value: float) -> str:
    """Format a cost with its unit."""
    return f"${cost(value)}"


def _moved(
    now: Mapping[str, Any], before: Mapping[str, Any], name: str, shown: Any, up: str, down: str
) -> str:
    """Return the change of a figure with its meaning; "" if either value is missing."""
    new, old = now.get(name), before.get(name)
    if new is None or old is None:
        return ""
    if shown(abs(new - old)) == shown(0 * new):
        return "as before"
    return f"{'▲' if new > old else '▼'} {shown(abs(new - old))} {up if new > old else down}"


def _points(share: float) -> str:
    return f"{share * 100:.1f} points"


def folded(text: Any, most: int) -> str:
    """Return the first `most` characters of a text, and the number of the others."""
    whole = str(text)
    return whole if len(whole) <= most else f"{whole[:most]} … {len(whole) - most:,} more characters"


def shown(text: Any) -> str:
    """Return any text without control characters and characters that change the writing direction."""
    return printable(str(text), keep_newlines=True)
