"""Rules on the scenarios that passed in the baseline: they fail now, or are gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.gate.rule import GateRule, plain
from harness.gate.ruling import AffectedScenario, Part, Ruling
from harness.report.formatting import plural, some_of
from harness.report.repeats import NOT_PASSED
from harness.report.scenario_runs import Pair, ScenarioRuns
from harness.source.display import nearest
from harness.statistics.paired_difference import ALPHA
from harness.statistics.pass_counts import PassCounts, fewer_passes_p, significantly_fewer

_MAX_COMPARED: Final = 10_000
"""Maximum number of pairs of names compared for suggestions, which takes a few seconds."""
_MAX_NAMES: Final = 3


def allow_removed(part: Part, bound: bool) -> Ruling:
    """Judge the removed scenarios of the baseline: missing, or newly skipped."""
    gone = removed(part)
    return Ruling("allow_removed", part.scope, len(gone), bound, bound or not gone, scenarios=gone)


def removed(part: Part) -> list[AffectedScenario]:
    """Return the scenarios of the baseline that are missing, or newly skipped."""
    assert part.pairing is not None
    skipped = {pair.after.key for pair in part.pairing.pairs if pair.after.verdict == "skipped"}
    found, added = [], part.pairing.added
    if len(added) * len(part.pairing.gone) > _MAX_COMPARED:
        added = ()
    for each in part.pairing.gone:
        after = "skipped" if each.key in skipped else "missing"
        renamed = "" if after == "skipped" else _perhaps_renamed(each, added)
        found.append(
            AffectedScenario(each.id, each.variant, each.verdict, after, [renamed] if renamed else [])
        )
    return found


def _perhaps_renamed(gone: ScenarioRuns, added: Sequence[ScenarioRuns]) -> str:
    """Return a remark naming the new scenario of the same file whose name is most similar; "" if there is none."""
    found = nearest(
        gone.id, (each.id for each in added if each.suite == gone.suite and each.variant == gone.variant)
    )
    return f"perhaps renamed: '{found.removeprefix(f'{gone.suite}::')}' is new in this file" if found else ""


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


def _any_or_none(ruling: Ruling) -> str:
    return "any" if ruling.bound is True else "none"


REMOVED_RULES: Final = (
    GateRule(
        "no_new_failures", bool, "True: no scenario that passed in the baseline fails, errors, or is removed.",
        lambda part, _, terms: [no_new_failures(part, terms.confidence, gone_counts=not terms.allow_removed)],
        needs_baseline=True, is_switch=True, counted="new failure", wanted=_any_or_none,
    ),
    GateRule(
        "allow_removed", bool, "True: scenarios of the baseline may be missing; false unless given.",
        plain(allow_removed), needs_baseline=True, counted="removed scenario", wanted=_any_or_none,
    ),
)  # fmt: skip
