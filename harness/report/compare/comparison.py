"""Sort the scenarios of two runs by how they changed.

The repeats that both runs have are compared (`harness.report.scenario_runs`). A scenario got worse or better if fewer
or more of them passed, more or fewer could not be judged, or their mean score changed. It is `changed` if none of
that changed, but the digest or a figure of a repeat did.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from harness.report.baseline_file import is_baseline_file, read_baseline
from harness.report.repeats import Key
from harness.report.scenario_runs import Pair, Repeat, Run, ScenarioRuns, pair, read_run
from harness.report.summary import Summary

KINDS: Final = ("worse", "gone", "new", "changed", "better", "same")
"""Kinds of changes, in the order they are shown."""
_PRECISION: Final = 9


@dataclass(frozen=True)
class Side:
    """One of the two runs.

    path     its folder or results file; None for a baseline file, which has neither results nor traces
    total    its figures, a group of summary.json; empty for a baseline file
    digests  the digest of each repeat, by scenario and repeat number
    """

    path: Path | None
    run: Run
    total: Mapping[str, Any]
    digests: Mapping[tuple[Key, int], str]

    @property
    def folder(self) -> Path:
        """The folder with its traces."""
        path = self.path or Path()
        return path if path.is_dir() else path.parent

    @classmethod
    def read(cls, path: Path) -> Side:
        """Read a run from its folder, its results file, or a baseline file.

        Raises:
            FormatError: it cannot be read.
        """
        if is_baseline_file(path):
            return cls(None, read_baseline(path), {}, {})
        sums, digests = Summary(), {}

        def note(line: Mapping[str, Any]) -> None:
            sums.add(line)
            digests[(line["id"], line["variant"] or ""), line["repeat"]] = line["digest"]

        run = read_run(path, [note])
        return cls(path, run, sums.as_json(run.incomplete)["total"], digests)


@dataclass(frozen=True)
class Change:
    """The change of a scenario.

    before   the scenario in the earlier run; None if it is new there
    after    the scenario in the later run; None if it is gone
    repeats  the numbers of the repeats that both runs have and that differ
    paired   number of repeats that both runs have; `unpaired` is the number that only one has
    twin     for a scenario that is gone or new: the label of the only new or gone one with the same digest, which
             may be the same scenario under a new name

    A scenario that was judged before and is skipped now is gone, with both `before` and `after`; the reverse is new.
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
        """The scenario of the later run, or else of the earlier one."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def loss(self) -> float:
        """The size of the loss, as a sort key: the share of repeats that stopped passing, then the lost score."""
        if self.before is None or self.after is None:
            passed = (self.before or self.after or self.scenario).verdict == "passed"
            return 1.0 if passed == (self.kind == "gone") else 0.0
        one, other = (_quality([*side.repeats.values()]) for side in (self.before, self.after))
        return (one[0] - other[0]) * 10 + (one[2] - other[2])


@dataclass(frozen=True)
class Comparison:
    """The comparison of two runs. `changes` has each scenario, sorted by kind, the worst of each kind first."""

    before: Side
    after: Side
    changes: Sequence[Change]

    @property
    def counts(self) -> dict[str, int]:
        """The number of scenarios of each kind."""
        return {kind: sum(change.kind == kind for change in self.changes) for kind in KINDS}

    def of(self, kind: str) -> list[Change]:
        """Return the changes of a kind."""
        return [change for change in self.changes if change.kind == kind]


def compare(before: Side, after: Side) -> Comparison:
    """Compare the scenarios of two runs."""
    pairing = pair(before.run, after.run)
    gone = {scenario.key for scenario in pairing.gone}
    changes = [_compare_pair(each, before, after, is_gone=each.after.key in gone) for each in pairing.pairs]
    left = gone.difference(pairing.by_key)
    changes += [Change("gone", each, None) for each in pairing.gone if each.key in left]
    changes += [Change("new", None, each) for each in pairing.added]
    return Comparison(before, after, sorted(_with_twins(changes, before, after), key=_order))


def _with_twins(changes: Sequence[Change], before: Side, after: Side) -> list[Change]:
    """Return the changes, with `twin` set for a scenario that is gone and the only new one with the same digest."""
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
    """Return the digest of the first repeat of a scenario that only one run has; "" if unknown."""
    if change.before is not None and change.after is not None:
        return ""
    scenario, side = change.scenario, before if change.after is None else after
    return side.digests.get((scenario.key, min(scenario.repeats)), "")


def _order(change: Change) -> tuple[Any, ...]:
    worst_first = change.loss if change.kind == "better" else -change.loss
    return KINDS.index(change.kind), worst_first, change.scenario.key


def _compare_pair(found: Pair, before: Side, after: Side, *, is_gone: bool) -> Change:
    if is_gone:
        return Change("gone", found.before, found.after)
    if found.before.verdict == "skipped" != found.after.verdict:
        return Change("new", found.before, found.after)
    numbers = sorted(found.before.repeats.keys() & found.after.repeats.keys())
    differ = []
    for number in numbers:
        differs = found.before.repeats[number] != found.after.repeats[number]
        was, now = (side.digests.get((found.after.key, number)) for side in (before, after))
        if differs or (was is not None and now is not None and was != now):
            differ.append(number)
    one, other = (
        _quality([side.repeats[number] for number in numbers]) for side in (found.before, found.after)
    )
    kind = "worse" if other < one else "better" if other > one else "changed" if differ else "same"
    if not numbers:
        kind = "changed"
    return Change(kind, found.before, found.after, differ, len(numbers), found.unpaired)


def _quality(repeats: Sequence[Repeat]) -> tuple[float, float, float]:
    """Return a sort key for how good the repeats are: the larger, the better."""
    judged = [repeat for repeat in repeats if repeat.verdict != "skipped"]
    if not judged:
        return 0.0, 0.0, 0.0
    verdicts = [repeat.verdict for repeat in judged]
    score = math.fsum(repeat.score for repeat in judged) / len(judged)
    shares = verdicts.count("passed") / len(judged), -verdicts.count("error") / len(judged)
    return (*shares, round(score, _PRECISION))


def figures_of(scenario: ScenarioRuns) -> dict[str, Any]:
    """Return the figures of a scenario: the mean latency of its repeats, and the sums of tokens and cost.

    The cost is None if a model that reported tokens has no price.
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
