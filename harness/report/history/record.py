"""A run as a line of the history: when it was, of which commit, its figures, and the verdict of each scenario.

format     "harness-history/1"
time       when it ended, in UTC: "2026-11-22T17:27:56Z"; null where that is not known
commit     what was checked out, or null; `branch`, too
complete   False when scenarios were left out or the run was ended early; `reason`: why, or null
total      the figures: those of `_FIGURES`, of a group of summary.json; `latency` {p50, p95} and `tokens`
           {input, output, total} of it; `unpriced`, the models that count as 0 in `cost`
scenarios  by id (and variant, in brackets): [verdict, score], with [passed, runs] after them where it was repeated.
           The verdict is the worst of the repeats, the score their mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from harness.report.history.revision import Revision
from harness.report.repeats import label as label_of
from harness.report.verdicts import WORST_FIRST, worst
from harness.units import is_number

FORMAT: Final = "harness-history/1"
_FIGURES: Final = ("runs", "distinct_runs", "scenarios", "passed", "failed", "errors", "skipped", "llm_calls")
_SHARES: Final = ("pass_rate", "fitness")
_LATENCIES: Final = ("p50", "p95")
_TOKENS: Final = ("input", "output", "total")


class Entry(NamedTuple):
    """What became of a scenario in a run. `passed` and `runs` count its repeats; skipped ones are none."""

    verdict: str
    score: float
    passed: int
    runs: int

    def written(self) -> list[Any]:
        """The entry as a line has it."""
        repeats = [self.passed, self.runs] if self.runs > 1 else []
        return [self.verdict, round(self.score, 6), *repeats]


def read_entry(written: Any) -> Entry:
    """The entry that a line has.

    Raises:
        ValueError: it is none.
    """
    try:
        return _entry_of(*written)
    except TypeError:  # no list, or values in it that are no texts and numbers
        raise ValueError(_no_entry(written)) from None


@lru_cache(maxsize=10_000, typed=True)  # most entries of a history are the same
def _entry_of(*written: Any) -> Entry:
    if len(written) not in (2, 4) or written[0] not in WORST_FIRST:
        raise ValueError(_no_entry(written))
    verdict, score, *repeats = written
    counted = repeats or [int(verdict == "passed"), int(verdict != "skipped")]
    if not _is_number(score) or not all(isinstance(count, int) and count >= 0 for count in counted):
        raise ValueError(_no_entry(written))
    return Entry(verdict, float(score), *counted)


def _no_entry(written: Any) -> str:
    return f"not [verdict, score] or [verdict, score, passed, runs]: {written!s:.60}"


class Verdicts:
    """Collects what became of each scenario, from the lines of a run's results."""

    def __init__(self) -> None:
        self._runs: dict[str, list[tuple[str, float]]] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Count a line of results.jsonl."""
        self._runs.setdefault(label_of(line["id"], line["variant"]), []).append(
            (line["verdict"], line["score"] or 0.0)
        )

    def entries(self) -> dict[str, Entry]:
        """By scenario, in the order they came."""
        return {label: _entry(runs) for label, runs in self._runs.items()}


def _entry(runs: Iterable[tuple[str, float]]) -> Entry:
    found = [run for run in runs if run[0] != "skipped"]
    verdicts = [verdict for verdict, _ in found]
    score = math.fsum(score for _, score in found) / len(found) if found else 0.0
    return Entry(worst(verdicts or ["skipped"]), score, verdicts.count("passed"), len(found))


class RunRecord(NamedTuple):
    """A run of the history; the fields are those of its line."""

    total: Mapping[str, Any]
    scenarios: Mapping[str, Entry]
    time: str | None = None
    commit: str | None = None
    branch: str | None = None
    complete: bool = True
    reason: str | None = None

    @classmethod
    def of(
        cls, summary: Mapping[str, Any], verdicts: Verdicts, time: str | None, revision: Revision
    ) -> RunRecord:
        """The record of a run, from its summary and what became of its scenarios."""
        total = summary["total"]
        figures = {name: total[name] for name in (*_FIGURES, *_SHARES, "pass_rate_interval")} | {
            "latency": {name: total["latency"][name] for name in _LATENCIES},
            "tokens": {name: total["tokens"][name] for name in _TOKENS},
            "cost": total["cost"],
            "unpriced": [
                name for name, model in total.get("models", {}).items() if model.get("cost", 0) is None
            ],
        }
        complete, reason = summary["complete"], summary["reason"]
        return cls(
            figures, verdicts.entries(), time, revision.commit, revision.branch, complete, reason or None
        )

    def written(self) -> dict[str, Any]:
        """The line of the history, as a mapping."""
        return {
            "format": FORMAT,
            "time": self.time,
            "commit": self.commit,
            "branch": self.branch,
            "complete": self.complete,
            "reason": self.reason,
            "total": self.total,
            "scenarios": {label: entry.written() for label, entry in self.scenarios.items()},
        }

    @classmethod
    def read(cls, line: Any) -> RunRecord:
        """The record that a line has.

        Raises:
            ValueError: the line is of another format, or lacks something.
        """
        if not isinstance(line, dict) or line.get("format") != FORMAT:
            found = line.get("format") if isinstance(line, dict) else line
            raise ValueError(f"not a line of the format {FORMAT}: found {str(found)[:60]!r}")
        texts = {name: line.get(name) for name in ("time", "commit", "branch", "reason")}
        for name, text in texts.items():
            if text is not None and not isinstance(text, str):
                raise ValueError(f"'{name}' is no text: {text!r:.60}")
        if not isinstance(line.get("complete"), bool):
            raise ValueError(f"'complete' is neither true nor false: {line.get('complete')!r:.60}")
        scenarios = line.get("scenarios")
        if not isinstance(scenarios, dict):
            raise ValueError(f"'scenarios' is no mapping: {scenarios!r:.60}")
        return cls(
            _total(line.get("total")),
            {label: _read_entry(label, entry) for label, entry in scenarios.items()},
            complete=line["complete"],
            **texts,
        )


def _read_entry(label: str, entry: Any) -> Entry:
    try:
        return read_entry(entry)
    except ValueError as error:
        raise ValueError(f"scenario {label[:100]!r}: {error}") from None


def _total(total: Any) -> Mapping[str, Any]:
    """The figures, of which each is there.

    Raises:
        ValueError: one is missing, or no number.
    """
    if not isinstance(total, dict):
        raise ValueError(f"'total' is no mapping: {total!r:.60}")
    parts: dict[str, dict[str, Any]] = {}
    for name in ("latency", "tokens"):
        part = total.get(name)
        if not isinstance(part, dict):
            raise ValueError(f"'total.{name}' is no mapping: {part!r:.60}")
        parts[name] = part
    figures = {name: total.get(name) for name in (*_FIGURES, "cost")}
    figures |= {f"tokens.{name}": parts["tokens"].get(name) for name in _TOKENS}
    may_lack = {name: total.get(name) for name in _SHARES}
    may_lack |= {f"latency.{name}": parts["latency"].get(name) for name in _LATENCIES}
    for name, figure in (figures | may_lack).items():
        if not _is_number(figure) and not (figure is None and name in may_lack):
            raise ValueError(f"'total.{name}' is no number: {figure!r:.60}")
    return total


def _is_number(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)
