"""The runs of a history side by side, and how each scenario changed from run to run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from harness.report.history.record import Entry, RunRecord

FORMAT: Final = "harness-trends/1"
CHANGED: Final = "changed with the agent"
STATES: Final = ("failing", "flaky", CHANGED, "fixed", "gone")
"""States of notable scenarios, the worst first. A scenario that always passed has the state ""."""
FLAKY: Final = 3
"""Number of recent verdict changes that make a scenario flaky. One that broke and was fixed has two."""
RECENT: Final = 20
"""Number of runs that are recent."""
_MARKED: Final = ("last_passed", "first_failed", "last_failed", "fixed_in", "last_seen")


class RecentRun(NamedTuple):
    """A recent run of a scenario.

    changed    True if it passed and did not before, or the other way round
    same_agent True if nothing that the scenario depends on is known to differ from the run before
    mixed      True if its repeats had different verdicts
    """

    verdict: str
    changed: bool
    same_agent: bool
    mixed: bool


class Run(NamedTuple):
    """A run without its scenarios. `name` is the folder it was read from; "" for a run of the history file."""

    number: int
    name: str
    time: str | None
    commit: str | None
    branch: str | None
    complete: bool
    reason: str | None
    total: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the run as JSON data."""
        return {**self._asdict(), "name": self.name or None, "total": dict(self.total)}

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that identify the run, as JSON data."""
        return {"number": self.number, "name": self.name or None, "time": self.time, "commit": self.commit}


@dataclass(slots=True)
class ScenarioTrend:
    """The results of a scenario over the runs.

    runs          number of runs that had it; `passed` is the number in which it passed
    changes       number of changes between passing and not passing; skipped runs are ignored
    mixed         number of runs in which its repeats had different verdicts
    last_passed   the last run in which it passed
    first_failed  the first run since then in which it failed; None if it passes
    last_failed   the last run in which it failed
    fixed_in      the first run in which it passed again after a failure
    last_seen     the last run that had it
    recent        the last runs, the newest last
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
    recent: deque[RecentRun] = field(default_factory=lambda: deque(maxlen=RECENT))
    _agent: tuple[str, str | None] = ("", None)

    def add(self, run: Run, entry: Entry, inputs: str = "") -> None:
        """Add its result in a run. `inputs` is the digest of the files that it depends on; "" if unknown."""
        self.runs += 1
        self.last_seen = run
        mixed = 0 < entry.passed < entry.runs
        self.mixed += mixed
        passes, passed = entry.verdict == "passed", self.verdict == "passed"
        changed = bool(self.verdict) and entry.verdict != "skipped" and passes != passed
        same_agent = _is_same(self._agent, (inputs, run.commit))
        self.recent.append(RecentRun(entry.verdict, changed, same_agent, mixed))
        if entry.verdict == "skipped":
            return
        self._agent = (inputs, run.commit)
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
        """Return one of `STATES`, or "" if it always passed. `last_whole` is the number of the last complete run."""
        if self.last_seen is None or self.last_seen.number < last_whole:
            return "gone"
        if self.first_failed is not None and not self._is_mixed:
            return "failing"
        if self.is_flaky:
            return "flaky"
        if sum(each.changed for each in self.recent) >= FLAKY:
            return CHANGED
        return "fixed" if self.fixed_in is not None else ""

    @property
    def _is_mixed(self) -> bool:
        """True if the repeats of the last run that judged it had different verdicts."""
        judged = [each for each in self.recent if each.verdict != "skipped"]
        return bool(judged) and judged[-1].mixed

    @property
    def is_flaky(self) -> bool:
        """True if its recent verdicts changed often although nothing else did, or differed between repeats."""
        changes = sum(each.changed and each.same_agent for each in self.recent)
        return changes >= FLAKY or any(each.mixed for each in self.recent)

    def as_json(self, last_whole: int) -> dict[str, Any]:
        """Return the trend as JSON data."""
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
            **{name: run.identity if run else None for name, run in marks.items()},
            "flaky": self.is_flaky,
            "recent": [each.verdict for each in self.recent],
        }


def _is_same(before: tuple[str, str | None], after: tuple[str, str | None]) -> bool:
    """True if the inputs are equal or, where they are not known, the commits."""
    (inputs, commit), (inputs_now, commit_now) = before, after
    return inputs == inputs_now if inputs and inputs_now else commit == commit_now


class Trends:
    """Collects the runs of a history, in order. `last` limits the number of runs that are kept for display.

    All runs count for the scenarios, including the `left_out` ones that are not kept.
    """

    def __init__(self, last: int | None = None) -> None:
        self.runs: deque[Run] = deque(maxlen=last)
        self.scenarios: dict[str, ScenarioTrend] = {}
        self.count = 0
        self._last_whole = 0

    def add(self, record: RunRecord, name: str = "") -> None:
        """Add a run."""
        self.count += 1
        run = Run(self.count, name, *(getattr(record, field) for field in Run._fields[2:]))
        self.runs.append(run)
        self._last_whole = run.number if run.complete else self._last_whole
        for label, entry in record.scenarios.items():
            trend = self.scenarios.get(label)
            if trend is None:
                trend = self.scenarios[label] = ScenarioTrend(label)
            trend.add(run, entry, record.inputs.get(label, ""))

    def extend(self, records: Iterable[RunRecord]) -> None:
        """Add the runs of a history."""
        for record in records:
            self.add(record)

    @property
    def left_out(self) -> int:
        """The number of runs that are not kept."""
        return self.count - len(self.runs)

    def state(self, trend: ScenarioTrend) -> str:
        """Return the state of a scenario, one of `STATES` or ""."""
        return trend.state(self._last_whole)

    def notable(self) -> list[ScenarioTrend]:
        """Return the notable scenarios: by state, the worst first, then by their last change, the latest first."""
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
        """Return all trends as JSON data."""
        return {
            "format": FORMAT,
            "count": self.count,
            "left_out": self.left_out,
            "runs": [run.as_json() for run in self.runs],
            "scenarios": [
                self.scenarios[label].as_json(self._last_whole) for label in sorted(self.scenarios)
            ],
        }
