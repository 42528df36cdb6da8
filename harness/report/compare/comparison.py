"""The scenarios of two runs, sorted by what became of them.

A scenario is held against itself by the repeats that both runs have (`harness.report.pairing`). It got worse or
better where fewer or more of them passed, more or fewer could not be judged, or their mean score moved. It changed
where none of that moved, and a run did something else all the same: its digest differs, or a figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from harness.report.baseline_file import is_baseline_file, read_baseline
from harness.report.pairing import Pair, pair
from harness.report.repeats import Key
from harness.report.scenario_runs import Repeat, Run, ScenarioRuns, read_run
from harness.report.summary import Summary

KINDS: Final = ("worse", "gone", "new", "changed", "better", "same")
"""What becomes of a scenario, in the order it is shown."""
_PRECISION: Final = 9
_NOT_KNOWN: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("pass_rate", "fitness", "cost")),
    "latency": dict.fromkeys(("p50", "p95")),
    "tokens": {"total": None},
}


@dataclass(frozen=True)
class Side:
    """One of the two runs.

    path   its folder, or the file of its results; None for a baseline file, which has neither results nor traces
    total  its figures: a group of summary.json; of a baseline file they are not known
    did    the digest of each repeat, by scenario and number
    """

    path: Path | None
    run: Run
    total: Mapping[str, Any]
    did: Mapping[tuple[Key, int], str]

    @property
    def folder(self) -> Path:
        """Where its traces are."""
        path = self.path or Path()
        return path if path.is_dir() else path.parent

    @classmethod
    def read(cls, path: Path) -> Side:
        """The run of a folder, of a file with its results, or of a baseline file.

        Raises:
            FormatError: it cannot be read.
        """
        if is_baseline_file(path):
            return cls(None, read_baseline(path), _NOT_KNOWN, {})
        sums, did = Summary(), {}

        def note(line: Mapping[str, Any]) -> None:
            sums.add(line)
            did[(line["id"], line["variant"] or ""), line["repeat"]] = line["digest"]

        run = read_run(path, [note])
        return cls(path, run, sums.as_json(run.incomplete)["total"], did)


@dataclass(frozen=True)
class Change:
    """What became of a scenario. `before` is None for one that is new, `after` for one that is gone.

    A scenario that was judged and is skipped now is gone, with `after`; the other way round it is new, with `before`.
    repeats  the numbers of the repeats that both runs have, which did something else
    paired   how many repeats both have; `unpaired` have only one
    twin     of one that is gone or new, the one that is new or gone and did just the same: it may have been renamed
    """

    kind: str
    before: ScenarioRuns | None
    after: ScenarioRuns | None
    repeats: Sequence[int] = ()
    paired: int = 0
    unpaired: int = 0
    twin: str = ""

    @property
    def scenario(self) -> ScenarioRuns:
        """The scenario as it is, or was."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def lost(self) -> float:
        """How much worse it is: the share of its repeats that pass no more, then the score that was lost."""
        if self.before is None or self.after is None:
            passed = (self.before or self.after or self.scenario).verdict == "passed"
            return 1.0 if passed == (self.kind == "gone") else 0.0
        one, other = (_standing([*side.repeats.values()]) for side in (self.before, self.after))
        return (one[0] - other[0]) * 10 + (one[2] - other[2])


@dataclass(frozen=True)
class Comparison:
    """Two runs compared: `changes` has each scenario of both, sorted by its kind, the worst of each kind first."""

    before: Side
    after: Side
    changes: Sequence[Change]

    @property
    def counts(self) -> dict[str, int]:
        """How many scenarios there are of each kind."""
        return {kind: sum(change.kind == kind for change in self.changes) for kind in KINDS}

    def of(self, kind: str) -> list[Change]:
        """The changes of this kind."""
        return [change for change in self.changes if change.kind == kind]


def compare(before: Side, after: Side) -> Comparison:
    """The scenarios of both runs, sorted."""
    pairing = pair(before.run, after.run)
    gone = {scenario.key for scenario in pairing.gone}
    changes = [_paired(each, before, after, is_gone=each.after.key in gone) for each in pairing.pairs]
    left = gone.difference(pairing.by_key)
    changes += [Change("gone", each, None) for each in pairing.gone if each.key in left]
    changes += [Change("new", None, each) for each in pairing.added]
    return Comparison(before, after, sorted(_with_twins(changes, before, after), key=_order))


def _with_twins(changes: Sequence[Change], before: Side, after: Side) -> list[Change]:
    """The changes; those that are gone, and those that are new, with the one of the others that did just the same."""
    by_digest: dict[str, dict[str, list[Change]]] = {"gone": {}, "new": {}}
    for change in changes:
        if change.kind in by_digest:
            by_digest[change.kind].setdefault(_digest(change, before, after), []).append(change)
    twins: dict[Key, str] = {}
    for digest, gone in by_digest["gone"].items():
        new = by_digest["new"].get(digest, [])
        if digest and len(gone) == len(new) == 1:
            twins |= {
                gone[0].scenario.key: new[0].scenario.label,
                new[0].scenario.key: gone[0].scenario.label,
            }
    return [replace(change, twin=twins.get(change.scenario.key, "")) for change in changes]


def _digest(change: Change, before: Side, after: Side) -> str:
    """What the first repeat of a scenario did that only one run has; "" where that is not known."""
    if change.before is not None and change.after is not None:
        return ""
    scenario, side = change.scenario, before if change.after is None else after
    return side.did.get((scenario.key, min(scenario.repeats)), "")


def _order(change: Change) -> tuple[Any, ...]:
    worst_first = change.lost if change.kind == "better" else -change.lost
    return KINDS.index(change.kind), worst_first, change.scenario.key


def _paired(found: Pair, before: Side, after: Side, *, is_gone: bool) -> Change:
    if is_gone:
        return Change("gone", found.before, found.after)
    if found.before.verdict == "skipped" != found.after.verdict:
        return Change("new", found.before, found.after)
    numbers = sorted(found.before.repeats.keys() & found.after.repeats.keys())
    differ = []
    for number in numbers:
        differs = found.before.repeats[number] != found.after.repeats[number]
        was, now = (side.did.get((found.after.key, number)) for side in (before, after))
        if differs or (was is not None and now is not None and was != now):
            differ.append(number)
    one, other = (
        _standing([side.repeats[number] for number in numbers]) for side in (found.before, found.after)
    )
    kind = "worse" if other < one else "better" if other > one else "changed" if differ else "same"
    if not numbers:
        kind = "changed"
    return Change(kind, found.before, found.after, differ, len(numbers), found.unpaired)


def _standing(repeats: Sequence[Repeat]) -> tuple[float, float, float]:
    """How good these repeats are: the larger the better."""
    judged = [repeat for repeat in repeats if repeat.verdict != "skipped"]
    if not judged:
        return 0.0, 0.0, 0.0
    verdicts = [repeat.verdict for repeat in judged]
    score = math.fsum(repeat.score for repeat in judged) / len(judged)
    shares = verdicts.count("passed") / len(judged), -verdicts.count("error") / len(judged)
    return (*shares, round(score, _PRECISION))


def figures_of(scenario: ScenarioRuns) -> dict[str, Any]:
    """The figures of a scenario: of its repeats the mean latency, and the sum of tokens and cost.

    A cost of None: a model that reported tokens has no price.
    """
    repeats = [*scenario.repeats.values()]
    latencies = [repeat.latency for repeat in repeats if repeat.latency is not None]
    costs = [repeat.cost for repeat in repeats]
    return {
        "verdict": scenario.verdict,
        "passed": sum(repeat.verdict == "passed" for repeat in repeats),
        "runs": len(repeats),
        "score": scenario.score,
        "latency": math.fsum(latencies) / len(latencies) if latencies else None,
        "tokens": sum(repeat.tokens for repeat in repeats),
        "cost": None if None in costs else math.fsum(cost for cost in costs if cost is not None),
    }


def sides(change: Change) -> Iterator[ScenarioRuns]:
    """The scenario in those of the runs that have it."""
    yield from (side for side in (change.before, change.after) if side is not None)
