"""Comparison of variants with the baseline, from the results of a run.

    results ──▶ figures of each variant ─┬─▶ difference in fitness with its interval, paired by scenario
                                         ├─▶ verdict, with p-values corrected for the number of variants (Holm),
                                         │   and how many scenarios or repeats one would need
                                         └─▶ the Pareto front over fitness, latency and cost

Source: docs/variants.md, "The table".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from harness.report.formatting import plural
from harness.report.pairing import Pair
from harness.report.scenario_runs import Run, ScenarioRuns
from harness.statistics.paired_bootstrap import PairedValues
from harness.statistics.paired_difference import Difference, holm, paired_difference
from harness.statistics.sample_size import AdditionalSample, additional_sample
from harness.variants.independence import SAME_AS_BASELINE
from harness.variants.race import LEVEL, EarlyStop, Race

FORMAT: Final = "harness-score/1"
CONFIDENCE: Final = 0.95
ALPHA: Final = 0.05
_DIGITS: Final = 12
"""Decimals of compared figures: sums of floats in another order differ in the digits after them."""

Verdict = Literal["better", "worse", "no evidence"]


@dataclass(frozen=True)
class ScenarioChange:
    """A scenario whose score or verdict differs from the baseline's, and the checks that cause it."""

    id: str
    variant: str
    before: float
    after: float
    verdicts: tuple[str, str]
    checks: tuple[str, ...]


@dataclass(frozen=True)
class VariantScore:
    """The result of a variant.

    group       its figures, as in summary.json
    answers     number of its runs that were `scripted`, `replayed` and `asked` (made real calls)
    difference  in fitness from the baseline, over the scenarios in which both were judged; None for the baseline
    corrected   the p-value of the difference, corrected for the number of variants
    verdict     None if there is nothing to judge
    needed      the sample that would show the difference; None if it is shown, is zero, or has no verdict
    why         the reason for no verdict, or no evidence; "" otherwise
    stopped     how a race stopped the variant; None if it did not
    """

    name: str
    group: Mapping[str, Any]
    answers: Mapping[str, int]
    difference: Difference | None = None
    corrected: float | None = None
    verdict: Verdict | None = None
    needed: AdditionalSample | None = None
    why: str = ""
    stopped: EarlyStop | None = None


@dataclass(frozen=True)
class Score:
    """The results of all variants, the baseline first; the changed scenarios; the names on the Pareto front."""

    variants: Sequence[VariantScore]
    changed: Sequence[ScenarioChange]
    pareto: Sequence[str]

    @property
    def baseline(self) -> str:
        """The name of the baseline."""
        return self.variants[0].name

    def is_best(self, name: str) -> bool:
        """True if the variant is better than the baseline, and no other has a higher fitness."""
        found = next(each for each in self.variants if each.name == name)
        return found.verdict == "better" and all(
            _fitness(found) >= _fitness(other) for other in self.variants if other.stopped is None
        )

    def as_json(self) -> dict[str, Any]:
        """Return the score in the format "harness-score/1"."""
        return {
            "format": FORMAT,
            "baseline": self.baseline,
            "variants": [_as_json(each) for each in self.variants],
            "changed": [
                {
                    "id": each.id,
                    "variant": each.variant,
                    "before": each.before,
                    "after": each.after,
                    "verdicts": list(each.verdicts),
                    "checks": list(each.checks),
                }
                for each in self.changed
            ],
            "pareto": list(self.pareto),
        }


def compare(
    run: Run,
    groups: Mapping[str, Mapping[str, Any]],
    names: Sequence[str],
    answers: Mapping[str, Mapping[str, int]],
    no_difference: Mapping[str, str],
    race: Race | None = None,
) -> Score:
    """Compare variants with the baseline.

    A variant that the race stopped still counts in the correction. Its own verdict is that of the race, since
    the time at which it was stopped depends on its scores.

    Args:
        run: the results of all runs.
        groups: the figures of each variant, by name.
        names: the variants, the baseline first.
        answers: number of runs of each variant by kind of answers.
        no_difference: by name, the reason why a variant cannot differ from the baseline; "" if it can.
        race: the race that stopped variants early, if there was one.
    """
    baseline, *others = names
    pairs = {name: _pairs(run, baseline, name) for name in others}
    paired = {name: _paired(pairs[name]) for name in others}
    scored = [
        _score_variant(name, pairs[name], paired[name], groups, answers, no_difference[name])
        for name in others
        if name in groups
    ]
    stopped = race.stopped if race is not None else {}
    corrected = holm(
        {
            each.name: 1.0 if each.name in stopped else each.difference.p
            for each in scored
            if each.difference and not each.why
        }
    )
    # Holm: rejected hypotheses no longer count in the correction of the others.
    level = ALPHA / max(1, sum(p > ALPHA for p in corrected.values()))
    changed = [
        found
        for name in others
        for pair in pairs[name]
        if (found := _scenario_change(pair, name)) is not None
    ]
    variants = [
        VariantScore(baseline, groups.get(baseline, {}), answers.get(baseline, {})),
        *(
            _with_race_verdict(each, race)
            if race is not None and each.name in stopped
            else _with_verdict(each, corrected, paired[each.name], level)
            for each in scored
        ),
    ]
    return Score(
        variants, sorted(changed, key=lambda each: (each.after - each.before, each.id)), _pareto(variants)
    )


def _pairs(run: Run, baseline: str, name: str) -> list[Pair]:
    runs: dict[str, dict[str, ScenarioRuns]] = {}
    for scenario in run.scenarios.values():
        runs.setdefault(scenario.id, {})[scenario.variant or ""] = scenario
    return [Pair(of[baseline], of[name]) for of in runs.values() if baseline in of and name in of]


def _paired(pairs: Sequence[Pair]) -> list[PairedValues]:
    """Return the paired scores of each scenario with a weight, of the repeats in which both were judged."""
    found = ((pair.after.weight, _scores(pair)) for pair in pairs)
    return [PairedValues(scores, weight) for weight, scores in found if scores and weight]


def _scores(pair: Pair) -> list[tuple[float, float]]:
    """Return the paired scores of the repeats in which both were judged; one pair if repeats cannot differ."""
    judged = [both for both in pair.repeats if "error" not in (both[0].verdict, both[1].verdict)]
    scores = [(before.score, after.score) for before, after in judged]
    can_differ = pair.before.varies or pair.after.varies or len(set(scores)) > 1
    return scores if can_differ else scores[:1]


def _score_variant(
    name: str,
    pairs: Sequence[Pair],
    paired: Sequence[PairedValues],
    groups: Mapping[str, Mapping[str, Any]],
    answers: Mapping[str, Mapping[str, int]],
    no_difference: str,
) -> VariantScore:
    scored = VariantScore(name, groups[name], answers.get(name, {}))
    if not paired:
        return replace(scored, why="no scenario was judged for it and for the baseline")
    scored = replace(scored, difference=paired_difference(paired, confidence=CONFIDENCE))
    differs = any(_differs(pair) for pair in pairs)
    if no_difference == SAME_AS_BASELINE and differs:
        return replace(scored, why=f"differs for other reasons: {no_difference}")
    return replace(scored, why=f"cannot differ: {no_difference}") if no_difference and not differs else scored


def _differs(pair: Pair) -> bool:
    return any(
        (before.verdict, before.score, before.latency) != (after.verdict, after.score, after.latency)
        for before, after in pair.repeats
    )


def _with_verdict(
    scored: VariantScore, corrected: Mapping[str, float], paired: Sequence[PairedValues], level: float
) -> VariantScore:
    if scored.difference is None or scored.why:
        return scored
    p = corrected[scored.name]
    if p > ALPHA:
        more = additional_sample(paired, level)
        return replace(
            scored, corrected=p, verdict="no evidence", needed=more, why=_needed_text(paired, more)
        )
    verdict: Verdict = "better" if scored.difference.estimate > 0 else "worse"
    return replace(scored, corrected=p, verdict=verdict)


def _with_race_verdict(scored: VariantScore, race: Race) -> VariantScore:
    """Add the verdict of the race to a variant that it stopped; none if the variant cannot differ."""
    scored = replace(scored, stopped=race.stopped[scored.name])
    if scored.why:
        return scored
    p = race.p_worse_than_baseline(scored.name)
    verdict: Verdict = "worse" if p <= LEVEL else "no evidence"
    return replace(scored, corrected=p, verdict=verdict)


def _needed_text(paired: Sequence[PairedValues], more: AdditionalSample | None) -> str:
    if more is None:
        if all(before == after for each in paired for before, after in each.repeats):
            return "no scenario has another score"
        return "one run is too few" if len(paired) == 1 else "the differences of scenarios cancel out"
    wanted = []
    if more.repeats is not None:
        wanted.append(f"{plural(more.repeats, 'more repeat')} of each scenario")
    if more.scenarios is not None:
        wanted.append(f"{plural(more.scenarios, 'more scenario')} like these")
    return f"about {' or '.join(wanted)} would show it, if it is as large as here"


def _scenario_change(pair: Pair, variant: str) -> ScenarioChange | None:
    before, after = round(pair.before.score, _DIGITS), round(pair.after.score, _DIGITS)
    verdicts = (pair.before.verdict, pair.after.verdict)
    if before == after and verdicts[0] == verdicts[1]:
        return None
    better = after > before
    checks = Pair(pair.after, pair.before).changed_checks if better else pair.changed_checks
    return ScenarioChange(pair.after.id, variant, before, after, verdicts, tuple(checks))


def _pareto(variants: Sequence[VariantScore]) -> list[str]:
    """Return the variants on the Pareto front: no other is at least as good in everything and better in something.

    Variants that were stopped, or have no judged run, are not on it.
    """
    compared = [each for each in variants if each.stopped is None and _was_judged(each)]
    aims = {each.name: _aims(each) for each in compared}
    return [
        name
        for name, aim in aims.items()
        if not any(
            other != aim and all(theirs <= ours for theirs, ours in zip(other, aim, strict=True))
            for other in aims.values()
        )
    ]


def _was_judged(scored: VariantScore) -> bool:
    return bool(scored.group.get("passed") or scored.group.get("failed"))


def _aims(scored: VariantScore) -> tuple[float, ...]:
    """Return the figures to minimize."""
    latency, cost = scored.group["latency"]["p50"] or 0.0, scored.group["cost"]
    return tuple(round(value, _DIGITS) for value in (-_fitness(scored), latency, cost))


def _fitness(scored: VariantScore) -> float:
    return float(scored.group.get("fitness") or 0.0)


def _as_json(scored: VariantScore) -> dict[str, Any]:
    group, difference = scored.group, scored.difference
    latency = group.get("latency") or {}
    return {
        "name": scored.name,
        "runs": group.get("runs", 0),
        "distinct_runs": group.get("distinct_runs", 0),
        "pass_rate": group.get("pass_rate"),
        "fitness": group.get("fitness"),
        "latency": {"p50": latency.get("p50"), "p95": latency.get("p95")},
        "tokens": (group.get("tokens") or {}).get("total", 0),
        "cost": group.get("cost", 0.0),
        "answers": dict(scored.answers),
        "difference": None
        if difference is None
        else {
            "fitness": difference.estimate,
            "low": _finite(difference.low),
            "high": _finite(difference.high),
            "p": difference.p if scored.corrected is None else scored.corrected,
            "verdict": scored.verdict,
            "scenarios": difference.scenarios,
            "needed": _more_scenarios(scored),
            "needed_repeats": scored.needed.repeats if scored.needed else None,
        },
        "note": scored.why or None,
        "stopped": None if scored.stopped is None else str(scored.stopped),
        "race": None if scored.stopped is None else scored.stopped._asdict(),
    }


def _more_scenarios(scored: VariantScore) -> int | None:
    """Return the number of further scenarios that the verdict needs; 0 if there is a verdict."""
    if scored.needed is not None:
        return scored.needed.scenarios
    return 0 if scored.verdict in ("better", "worse") else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
