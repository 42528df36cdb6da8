"""The order in which a scoring runs its scenarios, and the choice of those it does not run.

    taken over from an interrupted scoring ─┐
    scenarios, a block at a time ───────────┴▶ `Session` runs them ─▶ `add_outcome` ─▶ the race stops variants

Without a race and a budget, scenarios run variant by variant, as they were selected. Otherwise each scenario
runs with all variants before the next one, in the order of `harness.variants.race.random_blocks`: if the budget
runs out, the scenarios run so far are a random sample, and the same one for all variants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from harness.budget import Expense
from harness.recording.spending import Spending
from harness.report.formatting import plural
from harness.report.results import Record
from harness.report.scenario_runs import is_unanswered
from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome
from harness.variants.estimate import Estimate
from harness.variants.race import Race, random_blocks
from harness.variants.resume import ResumedRun


@dataclass
class Schedule:
    """The order of `scenarios`, each with one variant; numbers are indices into them.

    estimate       the expected calls of each
    taken          the runs taken over from an interrupted scoring, by number
    on_taken_over  called when these are written to the new results
    """

    scenarios: Sequence[Scenario]
    estimate: Estimate
    spending: Spending
    race: Race | None = None
    taken: Mapping[int, Sequence[ResumedRun]] = field(default_factory=dict)
    on_taken_over: Callable[[], object] = lambda: None
    over_budget: bool = False
    """True if scenarios were not run because the budget is spent."""
    _scores: dict[int, list[float | None]] = field(default_factory=dict)
    """The scores of the runs of each scenario; None for those that could not be judged."""

    def taken_over(self) -> Iterator[tuple[int, Mapping[str, Any], Record]]:
        """Yield the runs that are taken over, each with its number, line and record."""
        for number, runs in self.taken.items():
            for run in runs:
                line, record = run.read()
                self._add_score(number, line["verdict"], line["score"], line["error"])
                yield number, line, record
        self.on_taken_over()

    def batches(self) -> Iterator[Sequence[int]]:
        """Yield the numbers to run next. All runs of a batch must have ended before the next one is requested."""
        bounded = self.spending.budget.is_limited
        if self.race is None and not bounded:
            yield [number for number in range(len(self.scenarios)) if number not in self.taken]
            return
        for block in random_blocks(self._by_scenario()):
            running = set(self.race.running) if self.race is not None else None
            numbers = [
                n for each in block for n in each if running is None or self.scenarios[n].variant in running
            ]
            missing = [number for number in numbers if number not in self.taken]
            for batch in [[number] for number in missing] if bounded else [missing]:
                if bounded and not self._affords(batch[0]):
                    self.over_budget = True
                    return
                yield batch
            if self.race is not None:
                self._run_race(block, self.race)

    def is_kept(self, outcome: Outcome) -> bool:
        """False for a run that was cut off because the budget is spent: it is treated as not started."""
        if self.spending.refused and (outcome.observed.error or {}).get("code") == "budget":
            self.over_budget = True
            return False
        return True

    def add_outcome(self, number: int, outcome: Outcome) -> None:
        """Add the outcome of a run."""
        self._add_score(number, outcome.verdict, outcome.score, outcome.observed.error)

    def why_incomplete(self, runs: int, of: int) -> str:
        """Return the reason why not all runs were made; "" if it is neither budget nor race."""
        if self.over_budget:
            return f"the budget of {self.spending.budget} was spent after {runs} of {plural(of, 'run')}"
        if self.race is not None and self.race.stopped:
            return f"variants that were beaten were stopped (--race): {runs} of {plural(of, 'run')}"
        return ""

    def _affords(self, number: int) -> bool:
        spending, known = self.spending, self.estimate.expected(number)
        if spending.refused:
            return False
        if known is None:  # unknown: start it while any budget is left
            return not spending.is_spent
        if known.calls and spending.is_spent:
            return False
        return spending.allows(Expense(ceil(known.calls), known.cost))

    def _by_scenario(self) -> list[list[int]]:
        """Return the numbers of each scenario, one for each variant that it runs with."""
        found: dict[tuple[object, str], list[int]] = {}
        for number, scenario in enumerate(self.scenarios):
            found.setdefault((scenario.file, scenario.name), []).append(number)
        return list(found.values())

    def _add_score(
        self, number: int, verdict: str, score: float | None, error: Mapping[str, Any] | None
    ) -> None:
        if verdict == "skipped" or is_unanswered(verdict, error):
            return
        found = None if verdict == "error" else min(score or 0.0, 1.0)
        self._scores.setdefault(number, []).append(found)

    def _run_race(self, block: Sequence[Sequence[int]], race: Race) -> None:
        for numbers in block:
            scores = {
                self.scenarios[number].variant: (
                    None if set(of) == {None} else sum(each or 0.0 for each in of) / len(of)
                )
                for number in numbers
                if (of := self._scores.get(number))
            }
            race.add(scores, self.scenarios[numbers[0]].weight)
        race.stop_beaten()
