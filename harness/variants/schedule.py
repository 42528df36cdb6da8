"""The order in which a scoring runs its scenarios, and the choice of those it does not run.

    taken over from an earlier scoring ─────┐
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from harness.report.folder_check import refuse_foreign
from harness.report.formatting import plural
from harness.report.reading import RESULTS, read_lines
from harness.report.results import Record, open_locked
from harness.report.scenario_runs import is_unanswered
from harness.report.traces import FOLDER, move_traces
from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome
from harness.source.document import shown_path
from harness.variants.estimate import Estimate
from harness.variants.race import Race, random_blocks

FORMAT: Final = "harness-scoring/1"
STATE: Final = "scoring.json"
TAKEN_OVER: Final = "taken-over"


class ResumedRun(NamedTuple):
    """A run of an earlier scoring: its line of results, and its trace file once `ResumeState.begin` was called."""

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
    """The state of a scoring in its folder, from which it can be continued, or repeated in part.

    Until `begin`, no file is changed: the user may yet refuse.

    `inputs` are the fingerprints of the scenarios. `order` names the order of the runs beyond that of the scenarios.
    """

    def __init__(
        self, folder: Path, scenarios: Sequence[Scenario], inputs: Sequence[str], order: str = ""
    ) -> None:
        self._keys = [_run_key(each.variant, each.id) for each in scenarios]
        self._repeats = [each.repeat for each in scenarios]
        self._folder, self._order = folder, order
        self._fingerprints = dict(zip(self._keys, inputs, strict=True))
        self._aside = folder / TAKEN_OVER
        self._continues = False

    def taken_over(self) -> dict[int, list[ResumedRun]]:
        """Return the runs of an interrupted scoring that need not be made again, by the number of the scenario.

        Raises:
            FormatError: the results of the folder are damaged, or are being written.
        """
        same = self._same(self._before(finished=False))
        return self._kept(same, lambda runs: True) if same else {}

    def last_judged(self) -> dict[int, list[ResumedRun]]:
        """Return the runs of the last scoring that were judged and that no error ended, as `taken_over` does.

        Failed checks are no reason to run again: to repeat only these would give luck a second chance.

        Raises:
            FormatError: there is no last scoring (`no-last-run`), or all of it has changed (`changed-since`); or as
                `taken_over` does.
        """
        before, where = self._before(finished=True), shown_path(self._folder)
        if not before:
            text = f"--last-failed: there is no last scoring in {where}"
            raise FormatError(Problem("no-last-run", text, hint="score once without --last-failed"))
        same = self._same(before)
        if not same:
            text = f"--last-failed: files or options have changed since the last scoring in {where}"
            raise FormatError(Problem("changed-since", text, hint="score without --last-failed"))

        return self._kept(
            same, lambda runs: not any(run.line["error"] and not run.line["passed"] for run in runs)
        )

    def begin(self) -> None:
        """Move the results that runs are taken over from aside, and write the fingerprints of the runs that follow.

        Raises:
            FormatError: they cannot be written, or moved, or the folder has other files.
        """
        refuse_foreign(self._folder)
        if self._continues:
            self._move()
        else:
            _discard(self._folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self._folder, error) from error
        self._write(finished=False)

    def discard_old(self) -> None:
        """Remove the old results: the runs taken over are in the new results."""
        shutil.rmtree(self._aside, ignore_errors=True)

    def end(self) -> None:
        """Note that the scoring has ended as planned.

        Raises:
            FormatError: it cannot be written.
        """
        self._write(finished=True)

    def _before(self, *, finished: bool) -> Mapping[str, str]:
        """Return the fingerprints of the scoring in the folder; none if there is none.

        A finished one counts only with `finished`.

        Raises:
            FormatError: its results are being written.
        """
        if (self._folder / RESULTS).is_file():
            try:
                open_locked(self._folder / RESULTS).close()
            except OSError as error:
                raise unwritable(self._folder, error) from error
        state = self._read(self._place())
        return {} if state.get("finished") and not finished else state.get("runs", {})

    def _place(self) -> Path:
        """Return the folder of the earlier runs. Those that were moved aside may not be in the results yet."""
        return self._aside if (self._aside / STATE).is_file() else self._folder

    def _same(self, before: Mapping[str, str]) -> set[str]:
        """Return the keys of the runs with the same inputs; none if the order of the runs would need all of them."""
        same = {key for key, made_of in self._fingerprints.items() if before.get(key) == made_of}
        return set() if self._order and same != before.keys() | self._fingerprints.keys() else same

    def _kept(
        self, same: set[str], is_kept: Callable[[Sequence[ResumedRun]], bool]
    ) -> dict[int, list[ResumedRun]]:
        self._continues = True
        try:
            found = _runs_of(self._place(), self._aside)
        except FormatError as error:
            raise FormatError([replace(one, hint="--fresh starts anew") for one in error.problems]) from None
        return {
            number: sorted(runs, key=lambda run: run.line["repeat"])
            for number, (key, repeats) in enumerate(zip(self._keys, self._repeats, strict=True))
            if key in same and _is_whole(runs := found.get(key, []), repeats) and is_kept(runs)
        }

    def _write(self, *, finished: bool) -> None:
        document = {
            "format": FORMAT,
            "finished": finished,
            "order": self._order,
            "runs": dict(self._fingerprints),
        }
        replace_file(self._folder / STATE, json.dumps(document, indent=1).encode() + b"\n")

    def _read(self, folder: Path) -> dict[str, Any]:
        """Return the state in a folder; empty if there is none, or it is damaged or of another order."""
        try:
            found = json.loads((folder / STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(found, dict) or (found.get("format"), found.get("order")) != (FORMAT, self._order):
            return {}
        return found if isinstance(found.get("runs"), dict) else {}

    def _move(self) -> None:
        """Move the results aside. The state is moved last: if it is there, so is everything else."""
        if (self._aside / STATE).is_file():
            return
        try:
            self._aside.mkdir(exist_ok=True)
            move_traces(self._folder, self._aside)
            if (self._folder / RESULTS).is_file():
                os.replace(self._folder / RESULTS, self._aside / RESULTS)
            state = {**self._read(self._folder), "finished": False}  # what follows may be interrupted
            replace_file(self._aside / STATE, json.dumps(state).encode())
        except OSError as error:
            text = f"cannot move the results of {self._folder}: {error.strerror or error}"
            raise FormatError(Problem("report-folder", text)) from error


def _discard(folder: Path) -> None:
    """Remove the state of a scoring."""
    with suppress(OSError):
        (folder / STATE).unlink(missing_ok=True)
    shutil.rmtree(folder / TAKEN_OVER, ignore_errors=True)


def _run_key(variant: str | None, id_: str) -> str:
    """Return the key of a scenario with a variant."""
    return f"{variant or ''} {id_}"


def _runs_of(folder: Path, aside: Path) -> dict[str, list[ResumedRun]]:
    """Return the runs in a folder of results, by key, with the paths of traces that have been moved to `aside`."""
    found: dict[str, list[ResumedRun]] = {}
    with warnings.catch_warnings(action="ignore"):  # about a truncated last line: that run is made again
        for line in read_lines(folder) if (folder / RESULTS).is_file() else ():
            trace = line.get("trace")
            file = aside / FOLDER / Path(trace).name if isinstance(trace, str) else None
            found.setdefault(_run_key(line["variant"], line["id"]), []).append(ResumedRun(line, file))
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
    taken          the runs taken over from an earlier scoring, by number
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
    _running: set[int] = field(default_factory=set)
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

    def batches(self) -> Iterator[Iterator[int | None]]:
        """Yield the numbers to run, in batches: all runs of one must have ended before the next one is requested.

        Numbers are to be taken one by one, when there is room for another run: None says that one must end first.
        """
        bounded = self.spending.budget.is_limited
        if self.race is None and not bounded:
            yield iter([number for number in range(len(self.scenarios)) if number not in self.taken])
            return
        blocks = random_blocks(self._by_scenario())
        if self.race is None:
            yield self._affordable(n for block in blocks for each in block for n in each)
            return
        for block in blocks:
            running = set(self.race.running)
            numbers = (n for each in block for n in each if self.scenarios[n].variant in running)
            yield self._affordable(numbers)
            if self.over_budget:
                return
            self._run_race(block, self.race)

    def _affordable(self, numbers: Iterable[int]) -> Iterator[int | None]:
        """Yield the numbers that are not taken over, as long as the budget allows it."""
        for number in numbers:
            if number in self.taken:
                continue
            while self.spending.budget.is_limited and not self._affords(number):
                if not self._running or self.spending.refused:
                    self.over_budget = True
                    return
                yield None
            self._running.add(number)
            yield number

    def ended(self, number: int) -> None:
        """Note that all runs of a scenario have ended."""
        self._running.discard(number)

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
        """True if the budget allows a run beside those that are under way, as far as these are expected to go."""
        spending = self.spending
        if spending.refused:
            return False
        known = self.estimate.expected(number)
        if known is not None and not known.calls:
            return True
        if spending.is_spent:
            return False
        running = [self.estimate.expected(each) for each in self._running]
        # Of an unknown one, no more is known than that it makes a call.
        expected = [Expense(1) if each is None else Expense(ceil(each.calls), each.cost) for each in running]
        if known is not None:
            expected.append(Expense(ceil(known.calls), known.cost))
        elif expected:
            expected.append(Expense(1))
        return spending.allows(sum(expected, Expense()))

    def _by_scenario(self) -> list[list[int]]:
        """Return the numbers of each scenario, one for each variant that it runs with."""
        found: dict[tuple[object, str], list[int]] = {}
        for number, scenario in enumerate(self.scenarios):
            found.setdefault((scenario.file, scenario.name), []).append(number)
        return list(found.values())

    def _add_score(
        self, number: int, verdict: str, score: float | None, error: Mapping[str, Any] | None
    ) -> None:
        if self.race is None or verdict == "skipped" or is_unanswered(verdict, error):
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
