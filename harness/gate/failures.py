"""The rule `no_new_failures`: scenarios that passed in the baseline and fail now.

A scenario whose runs do not vary fails if it passed before and does not now. One whose runs vary, as with a
model that answers at random, now and then fails although nothing changed. So the numbers of passes before and
after are tested, of each such scenario (`harness.statistics.pass_counts`, corrected for their number) and of
all of them together (the sign-flip test of their pass rates). Each of the two has half of the error rate that
`confidence` leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from harness.gate.parts import Part
from harness.gate.rules import removed
from harness.gate.ruling import AffectedScenario, Ruling
from harness.report.formatting import plural, some_of
from harness.report.pairing import Pair
from harness.report.scenario_runs import ScenarioRuns
from harness.report.verdicts import NOT_PASSED
from harness.statistics.paired_difference import holm, sign_flip_p
from harness.statistics.pass_counts import fewer_passes_p

_MAX_NAMES: Final = 3


class _Counts(NamedTuple):
    """The number of passes of a scenario before and after, and of its judged runs."""

    pair: Pair
    passed_before: int
    before: int
    passed_after: int
    after: int

    @property
    def is_lower(self) -> bool:
        """True if a smaller share passes now."""
        return self.passed_after * self.before < self.passed_before * self.after

    @property
    def is_flaky(self) -> bool:
        """True if some repeats passed in both runs, and some did not."""
        return 0 < self.passed_before < self.before and 0 < self.passed_after < self.after

    @property
    def p(self) -> float:
        """The p-value of passing less often now."""
        return fewer_passes_p(self.passed_before, self.before, self.passed_after, self.after)


def no_new_failures(part: Part, confidence: float, *, gone_counts: bool = True) -> Ruling:
    """Judge the scenarios that passed in the baseline and do not now, including removed ones if `gone_counts`."""
    assert part.pairing is not None
    varying = [each for each in map(_counts, part.pairing.pairs) if each is not None]
    fewer = _significant(varying, 1 - confidence)
    broken = [
        each
        for each in part.pairing.pairs
        if each.before.verdict == "passed" and each.after.verdict in NOT_PASSED and not _varies(each)
    ]
    blamed = [AffectedScenario.of(each.after, each, "passed", each.after.verdict) for each in broken]
    blamed += [
        AffectedScenario.of(
            each.pair.after,
            each.pair,
            _text(each.passed_before, each.before),
            _text(each.passed_after, each.after),
        )
        for each in fewer
    ]
    blamed.sort(key=lambda each: each.label)
    if gone_counts:
        blamed += [each for each in removed(part) if each.before == "passed"]
    found = {each.pair.after.key for each in fewer}
    note = _note([each for each in varying if each.pair.after.key not in found])
    return Ruling("no_new_failures", part.scope, len(blamed), 0, not blamed, scenarios=blamed, note=note)


def _varies(pair: Pair) -> bool:
    return pair.before.varies or pair.after.varies


def _counts(pair: Pair) -> _Counts | None:
    """Return the counts of a scenario whose runs vary, and that was judged in both runs."""
    before, after = _passes(pair.before), _passes(pair.after)
    return _Counts(pair, *before, *after) if _varies(pair) and before[1] and after[1] else None


def _passes(scenario: ScenarioRuns) -> tuple[int, int]:
    verdicts = [repeat.verdict for repeat in scenario.repeats.values() if repeat.verdict != "skipped"]
    return verdicts.count("passed"), len(verdicts)


def _significant(varying: Sequence[_Counts], alpha: float) -> list[_Counts]:
    """Return the scenarios that pass less often than chance explains; all with fewer passes if they do together."""
    import numpy as np

    lower = [each for each in varying if each.is_lower]
    changes = np.array(
        [each.passed_after / each.after - each.passed_before / each.before for each in varying]
    )
    # The sign-flip test has two sides, and only one of them matters here.
    if lower and changes.sum() < 0 and sign_flip_p(changes) <= alpha:
        return lower
    p_values = holm({str(at): each.p for at, each in enumerate(varying)})
    return [each for at, each in enumerate(varying) if p_values[str(at)] <= alpha / 2 and each.is_lower]


def _note(rest: Sequence[_Counts]) -> str:
    """Return a remark on scenarios whose failures chance explains."""
    flaky = [each for each in rest if each.is_flaky]
    lower = [each for each in rest if each.is_lower and not each.is_flaky]
    notes = [_named(flaky, "flaky in both runs")] if flaky else []
    if lower:
        notes.append(_named(lower, "failing more often, no more than chance explains"))
        fewest = min(min(each.before, each.after) for each in lower)
        if fewer_passes_p(fewest, fewest, 0, fewest) > 0.025:
            notes.append(f"{plural(fewest, 'repeat')} cannot show more of a single scenario: --repeat 5")
    return "; ".join(notes)


def _named(counts: Sequence[_Counts], what: str) -> str:
    names = some_of([each.pair.after.label for each in counts], _MAX_NAMES)
    return f"{plural(len(counts), 'scenario')} {what}: {names}"


def _text(passed: int, runs: int) -> str:
    return f"{passed} of {runs} passed"
