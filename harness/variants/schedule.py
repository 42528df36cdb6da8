"""The order in which a scoring runs its scenarios, and the choice of those it does not run.

    taken over from an interrupted scoring ─┐
    scenarios, a block at a time ───────────┴▶ `Session` runs them ─▶ `add_outcome` ─▶ the race stops variants

Without a race and a budget, scenarios run variant by variant, as they were selected. Otherwise each scenario
runs with all variants before the next one, in the order of `harness.variants.race.random_blocks`: if the budget
runs out, the scenarios run so far are a random sample, and the same one for all variants.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.budget import Expense
from harness.errors import FormatError, Problem
from harness.recording.spending import Spending
from harness.report.encoding import encode, unwritable
from harness.report.encoding import replace as replace_file
from harness.report.formatting import plural
from harness.report.reading import RESULTS, read_lines
from harness.report.results import Record, open_locked
from harness.report.scenario_runs import is_unanswered
from harness.report.traces import FOLDER, move_traces
from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome
from harness.variants.estimate import Estimate
from harness.variants.race import Race, random_blocks

FORMAT: Final = "harness-unfinished/1"
UNFINISHED: Final = "unfinished.json"
TAKEN_OVER: Final = "taken-over"


class ResumedRun(NamedTuple):
    """A run of the interrupted scoring: its line of results, and its trace file."""

    line: Mapping[str, Any]
    trace: Path | None

    def read(self) -> tuple[Mapping[str, Any], Record]:
        """Return the line of results and the record to write."""
        try:
            content = self.trace.read_bytes() if self.trace is not None else b""
        except OSError:
            content = b""
        return self.line, Record(encode({**self.line, "trace": None}), content)


class ResumeState:
    """The state of a scoring in its folder, from which it can be continued.

    `fingerprints` are those of its runs, by key. `order` names the order of the runs beyond that of the
    scenarios.
    """

    def __init__(self, folder: Path, fingerprints: Mapping[str, str], order: str) -> None:
        self._folder, self._fingerprints, self._order = folder, fingerprints, order

    def taken_over(self, repeats: Mapping[str, int]) -> dict[str, list[ResumedRun]]:
        """Return the runs that need not be made again, by the key of the scenario (`run_key`).

        `repeats` is the number of runs of each scenario.

        Raises:
            FormatError: the results of the folder are damaged, are being written, or cannot be moved.
        """
        if (self._folder / RESULTS).is_file():
            try:
                open_locked(self._folder / RESULTS).close()
            except OSError as error:
                raise unwritable(self._folder, error) from error
        kept = self._folder / TAKEN_OVER
        before = self._read(kept if (kept / UNFINISHED).is_file() else self._folder)
        same = {key for key, made_of in self._fingerprints.items() if before.get(key) == made_of}
        if not same or (self._order and same != before.keys() | self._fingerprints.keys()):
            discard(self._folder)
            return {}
        self._move(kept)
        try:
            found = _runs_of(kept)
        except FormatError as error:
            raise FormatError([replace(one, hint="--fresh starts anew") for one in error.problems]) from None
        return {
            key: sorted(runs, key=lambda run: run.line["repeat"])
            for key, runs in found.items()
            if key in same and _is_whole(runs, repeats[key])
        }

    def begin(self) -> None:
        """Write the fingerprints of the runs that follow.

        Raises:
            FormatError: they cannot be written.
        """
        document = {"format": FORMAT, "order": self._order, "runs": dict(self._fingerprints)}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self._folder, error) from error
        replace_file(self._folder / UNFINISHED, json.dumps(document, indent=1).encode() + b"\n")

    def discard_old(self) -> None:
        """Remove the old results: the runs taken over are in the new results."""
        shutil.rmtree(self._folder / TAKEN_OVER, ignore_errors=True)

    def end(self) -> None:
        """Remove the state: the scoring has ended as planned."""
        discard(self._folder)

    def _read(self, folder: Path) -> dict[str, str]:
        """Return the fingerprints of an interrupted scoring in the folder; none if there is none."""
        try:
            found = json.loads((folder / UNFINISHED).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(found, dict) or (found.get("format"), found.get("order")) != (FORMAT, self._order):
            return {}
        runs = found.get("runs")
        return {str(key): str(of) for key, of in runs.items()} if isinstance(runs, dict) else {}

    def _move(self, kept: Path) -> None:
        """Move the results to `kept`. The fingerprints are moved last: if they are there, so is everything else."""
        if (kept / UNFINISHED).is_file():
            return
        try:
            kept.mkdir(exist_ok=True)
            move_traces(self._folder, kept)
            if (self._folder / RESULTS).is_file():
                os.replace(self._folder / RESULTS, kept / RESULTS)
            shutil.copyfile(self._folder / UNFINISHED, kept / UNFINISHED)
        except OSError as error:
            text = f"cannot move the results of {self._folder}: {error.strerror or error}"
            raise FormatError(Problem("report-folder", text)) from error


def discard(folder: Path) -> None:
    """Remove the state of an interrupted scoring."""
    with suppress(OSError):
        (folder / UNFINISHED).unlink(missing_ok=True)
    shutil.rmtree(folder / TAKEN_OVER, ignore_errors=True)


def run_key(variant: str | None, id_: str) -> str:
    """Return the key of a scenario with a variant."""
    return f"{variant or ''} {id_}"


def _runs_of(folder: Path) -> dict[str, list[ResumedRun]]:
    """Return the runs in a folder of results, by key."""
    found: dict[str, list[ResumedRun]] = {}
    with warnings.catch_warnings(action="ignore"):  # about a truncated last line: that run is made again
        for line in read_lines(folder) if (folder / RESULTS).is_file() else ():
            trace = line.get("trace")
            file = folder / FOLDER / Path(trace).name if isinstance(trace, str) else None
            found.setdefault(run_key(line["variant"], line["id"]), []).append(ResumedRun(line, file))
    return found


def _is_whole(runs: Sequence[ResumedRun], repeats: int) -> bool:
    verdicts = {run.line["verdict"] for run in runs}
    if verdicts == {"skipped"}:
        return len(runs) == 1
    return len(runs) == repeats and verdicts <= {"passed", "failed"}


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
