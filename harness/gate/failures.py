"""The rule `no_new_failures`: scenarios that passed in the baseline and fail now.

A scenario whose runs do not vary fails if it passed before and does not now. One whose runs vary, as with a
model that answers at random, now and then fails although nothing changed. So the numbers of passes before and
after are tested, of each such scenario (`harness.statistics.pass_counts`, corrected for their number) and of
all of them together (the sign-flip test of their pass rates). Each of the two has half of the error rate that
`confidence` leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.gate.parts import Part
from harness.gate.rules import removed
from harness.gate.ruling import AffectedScenario, Ruling
from harness.report.formatting import plural, some_of
from harness.report.pairing import Pair
from harness.report.scenario_runs import ScenarioRuns
from harness.report.verdicts import NOT_PASSED
from harness.statistics.paired_difference import ALPHA
from harness.statistics.pass_counts import PassCounts, fewer_passes_p, significantly_fewer

_MAX_NAMES: Final = 3


def no_new_failures(part: Part, confidence: float, *, gone_counts: bool = True) -> Ruling:
    """Judge the scenarios that passed in the baseline and do not now, including removed ones if `gone_counts`."""
    assert part.pairing is not None
    counted = ((pair, _counts(pair)) for pair in part.pairing.pairs if _varies(pair))
    varying = [(pair, counts) for pair, counts in counted if counts.before and counts.after]
    fewer = significantly_fewer([counts for _, counts in varying], 1 - confidence)
    broken = [
        each
        for each in part.pairing.pairs
        if each.before.verdict == "passed" and each.after.verdict in NOT_PASSED and not _varies(each)
    ]
    blamed = [AffectedScenario.of(each.after, each, "passed", each.after.verdict) for each in broken]
    for at in fewer:
        pair, counts = varying[at]
        before, after = _text(counts.passed_before, counts.before), _text(counts.passed_after, counts.after)
        blamed.append(AffectedScenario.of(pair.after, pair, before, after))
    blamed.sort(key=lambda each: each.label)
    if gone_counts:
        blamed += [each for each in removed(part) if each.before == "passed"]
    note = _note([each for at, each in enumerate(varying) if at not in fewer])
    return Ruling("no_new_failures", part.scope, len(blamed), 0, not blamed, scenarios=blamed, note=note)


def _varies(pair: Pair) -> bool:
    return pair.before.varies or pair.after.varies


def _counts(pair: Pair) -> PassCounts:
    return PassCounts(*_passes(pair.before), *_passes(pair.after))


def _passes(scenario: ScenarioRuns) -> tuple[int, int]:
    verdicts = [repeat.verdict for repeat in scenario.repeats.values() if repeat.verdict != "skipped"]
    return verdicts.count("passed"), len(verdicts)


def _note(rest: Sequence[tuple[Pair, PassCounts]]) -> str:
    """Return a remark on scenarios whose failures chance explains."""
    flaky = [pair for pair, counts in rest if counts.is_flaky]
    lower = [(pair, counts) for pair, counts in rest if not counts.is_flaky and counts.change < 0]
    notes = [_named(flaky, "flaky in both runs")] if flaky else []
    if lower:
        notes.append(_named([pair for pair, _ in lower], "failing more often, no more than chance explains"))
        fewest = min(min(counts.before, counts.after) for _, counts in lower)
        if fewer_passes_p(fewest, fewest, 0, fewest) > ALPHA / 2:
            notes.append(f"{plural(fewest, 'repeat')} cannot show more of a single scenario: --repeat 5")
    return "; ".join(notes)


def _named(pairs: Sequence[Pair], what: str) -> str:
    names = some_of([pair.after.label for pair in pairs], _MAX_NAMES)
    return f"{plural(len(pairs), 'scenario')} {what}: {names}"


def _text(passed: int, runs: int) -> str:
    return f"{passed} of {runs} passed"
