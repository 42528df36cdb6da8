"""What the runs of a history say together: their figures side by side, and which scenario changed when."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from harness.report.history.record import Entry, RunRecord

FORMAT: Final = "harness-trends/1"
STATES: Final = ("failing", "flaky", "fixed", "gone")
"""What a scenario is that is worth a look, the worst first; "" for one that always passed."""
FLAKY: Final = 3
"""Changes of the verdict from which on a scenario is flaky: one that broke and was mended has two."""
_RECENT: Final = 20
_MARKED: Final = ("last_passed", "first_failed", "last_failed", "fixed_in", "last_seen")


class Run(NamedTuple):
    """A run, without its scenarios. `name` is the folder it was read from, "" for one of the file."""

    number: int
    name: str
    time: str | None
    commit: str | None
    branch: str | None
    complete: bool
    reason: str | None
    total: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The run as data."""
        return {**self._asdict(), "name": self.name or None, "total": dict(self.total)}

    @property
    def mark(self) -> dict[str, Any]:
        """What tells it from the other runs, as data."""
        return {"number": self.number, "name": self.name or None, "time": self.time, "commit": self.commit}


@dataclass(slots=True)
class ScenarioTrend:
    """What became of a scenario, run by run.

    runs          how many of the runs had it; `passed`: in how many it passed
    changes       how often it passed after it had not, or the other way round; skipped runs count for nothing
    mixed         in how many of the runs its repeats had different verdicts
    last_passed   the last run in which it passed; `first_failed` the first of those in which it has failed since then
    fixed_in      the first run since which it passes, after it had failed
    last_seen     the last run that had it, and `recent` the verdicts of the last ones, the newest at the end
    """

    label: str
    runs: int = 0
    passed: int = 0
    changes: int = 0
    mixed: int = 0
    verdict: str = ""
    score: float = 0.0
    last_passed: Run | None = None
    first_failed: Run | None = None
    last_failed: Run | None = None
    fixed_in: Run | None = None
    last_seen: Run | None = None
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def add(self, run: Run, entry: Entry) -> None:
        """Count what became of it in a run."""
        self.runs += 1
        self.last_seen = run
        self.recent.append(entry.verdict)
        self.mixed += 0 < entry.passed < entry.runs
        if entry.verdict == "skipped":
            return
        passes, passed = entry.verdict == "passed", self.verdict == "passed"
        changed = bool(self.verdict) and passes != passed
        self.changes += changed
        if passes:
            self.passed += 1
            self.last_passed = run
            self.fixed_in = run if changed else self.fixed_in
            self.first_failed = None
        else:
            self.last_failed = run
            self.first_failed = run if self.first_failed is None else self.first_failed
        self.verdict, self.score = entry.verdict, entry.score

    def state(self, last_whole: int) -> str:
        """One of `STATES`, or "" for one that always passed; `last_whole` is the number of the last whole run."""
        if self.last_seen is None or self.last_seen.number < last_whole:
            return "gone"
        if self.changes >= FLAKY or self.mixed:
            return "flaky"
        if self.first_failed is not None:
            return "failing"
        return "fixed" if self.fixed_in is not None else ""

    def as_json(self, last_whole: int) -> dict[str, Any]:
        """The trend as data."""
        marks = {name: getattr(self, name) for name in _MARKED}
        return {
            "id": self.label,
            "state": self.state(last_whole) or "steady",
            "verdict": self.verdict or "skipped",
            "score": self.score,
            "runs": self.runs,
            "passed": self.passed,
            "changes": self.changes,
            "mixed": self.mixed,
            **{name: run.mark if run else None for name, run in marks.items()},
            "recent": list(self.recent),
        }


class Trends:
    """Adds up the runs of a history, in their order; `last`, if given, is how many of them are kept to be shown.

    All of them count for the scenarios. `left_out` runs are not kept, but for their part in that.
    """

    def __init__(self, last: int | None = None) -> None:
        self.runs: deque[Run] = deque(maxlen=last)
        self.scenarios: dict[str, ScenarioTrend] = {}
        self.count = 0
        self._last_whole = 0

    def add(self, record: RunRecord, name: str = "") -> None:
        """Add a run."""
        self.count += 1
        run = Run(self.count, name, *record[2:], record.total)
        self.runs.append(run)
        self._last_whole = run.number if run.complete else self._last_whole
        for label, entry in record.scenarios.items():
            trend = self.scenarios.get(label)
            if trend is None:
                trend = self.scenarios[label] = ScenarioTrend(label)
            trend.add(run, entry)

    def extend(self, records: Iterable[RunRecord]) -> None:
        """Add the runs of a history."""
        for record in records:
            self.add(record)

    @property
    def left_out(self) -> int:
        """How many runs are not kept."""
        return self.count - len(self.runs)

    def state(self, trend: ScenarioTrend) -> str:
        """What is worth to be said of a scenario, one of `STATES`, or ""."""
        return trend.state(self._last_whole)

    def notable(self) -> list[ScenarioTrend]:
        """The scenarios worth a look: the worst first, of those that which changed last."""
        found = [trend for trend in self.scenarios.values() if self.state(trend)]
        return sorted(found, key=self._order)

    def _order(self, trend: ScenarioTrend) -> tuple[Any, ...]:
        changed = trend.first_failed or trend.fixed_in or trend.last_seen
        return (
            STATES.index(self.state(trend)),
            -(changed.number if changed else 0),
            -trend.changes,
            trend.label,
        )

    def as_json(self) -> dict[str, Any]:
        """All of it as data."""
        return {
            "format": FORMAT,
            "count": self.count,
            "left_out": self.left_out,
            "runs": [run.as_json() for run in self.runs],
            "scenarios": [
                self.scenarios[label].as_json(self._last_whole) for label in sorted(self.scenarios)
            ],
        }
