"""Comparison of variants with the baseline, from the results of a run.

    results ──▶ figures of each variant ─┬─▶ difference in fitness with its interval, paired by scenario
                                         ├─▶ verdict, with p-values corrected for the number of variants (Holm), how
                                         │   many scenarios would undo it, or how large a new sample one would need
                                         └─▶ the Pareto front over fitness, latency and cost

All of them are of the same runs (`uncompared` has the others). Source: docs/variants.md, "The table".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from harness.report.formatting import plural
from harness.report.group import figures
from harness.report.scenario_runs import Pair, Repeat, Run, ScenarioRuns
from harness.statistics.paired_difference import (
    ALPHA,
    Difference,
    Risk,
    greater_risk,
    holm,
    holm_levels,
    paired_difference,
    tipping_point,
)
from harness.statistics.ratio_interval import PairedValues, relative_change
from harness.statistics.sample_size import NewSample, new_sample
from harness.variants.independence import SAME_AS_BASELINE
from harness.variants.race import LEVEL, EarlyStop, Race

RunKey = tuple[str, str | None, int]
"""The scenario, the variant and the repeat of a run."""


def pairs(run: Run, baseline: str, name: str) -> list[Pair]:
    """Return the scenarios that ran with the baseline and with a variant."""
    runs: dict[str, dict[str, ScenarioRuns]] = {}
    for scenario in run.scenarios.values():
        runs.setdefault(scenario.id, {})[scenario.variant or ""] = scenario
    return [Pair(of[baseline], of[name]) for of in runs.values() if baseline in of and name in of]


def counting_repeats(pair: Pair) -> dict[int, tuple[Repeat, Repeat]]:
    """Return the repeats of a pair that count, by number."""
    before, after = pair.before.repeats, pair.after.repeats
    answered = (before.keys() & after.keys()) - pair.before.unanswered - pair.after.unanswered
    found = {number: (before[number], after[number]) for number in sorted(answered)}
    return {number: both for number, both in found.items() if _counts({one.verdict for one in both})}


def _counts(verdicts: set[str]) -> bool:
    return "skipped" not in verdicts and verdicts != {"error"}


def is_left_out(pair: Pair) -> bool:
    """True if a scenario ran with both, and none of its repeats counts."""
    return bool(pair.repeats) and not counting_repeats(pair)


def uncompared(run: Run, names: Sequence[str]) -> set[RunKey]:
    """Return the runs that are in no pair that counts; `names` has the baseline first.

    Runs of the baseline count if they do with any variant, or if there is no variant.
    """
    baseline, *others = names
    everything = {
        (scenario.id, scenario.variant, number)
        for scenario in run.scenarios.values()
        for number in scenario.repeats
        if others
    }
    return everything - {
        (pair.after.id, each.variant, number)
        for name in others
        for pair in pairs(run, baseline, name)
        for number in counting_repeats(pair)
        for each in (pair.before, pair.after)
    }


def pareto_front(aims: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the names whose aims, figures to minimize, are on the front."""
    rounded = {name: tuple(round(figure, _DIGITS) for figure in aim) for name, aim in aims.items()}
    return [
        name
        for name, aim in rounded.items()
        if not any(
            other != aim and all(theirs <= ours for theirs, ours in zip(other, aim, strict=True))
            for other in rounded.values()
        )
    ]


def latency_is_noise(pairs: Sequence[Pair]) -> bool:
    """True if latencies vary from run to run, and their difference is not significant."""
    found = []
    for pair in pairs:
        values = [
            (before.latency, after.latency)
            for before, after in counting_repeats(pair).values()
            if before.latency is not None and after.latency is not None
        ]
        found += [(pair.before.varies or pair.after.varies, PairedValues(values))] if values else []
    if not any(varies for varies, _ in found):
        return False
    change = relative_change([values for _, values in found])
    return change.low <= 0 <= change.high


MAX_LEFT_OUT: Final = 0.2
"""Largest share of scenarios that may be left out because they could not be compared, for a verdict."""
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

    group       its figures, as in summary.json, over the runs that are compared
    answers     number of its runs that were `scripted`, `replayed`, `asked` (made real calls) or `unrecorded`
    runs        number of its runs; `not_judged` is the number of those that could not be judged
    left_out    number of scenarios that do not count, since they could not be compared
    difference  in fitness from the baseline; None for the baseline
    corrected   the p-value of the difference, corrected for the number of variants
    level       the level of its test and of its interval, with the same correction
    verdict     None if there is nothing to judge
    undone_by   number of further scenarios, with the opposite change, that would undo the verdict
    needed      the sample that would show the difference; None if it is shown, is zero, or has no verdict
    risk        how its scores spread more than the baseline's; None if they do not, or if the means differ
    why         the reason for no verdict, or no evidence; "" otherwise
    stopped     how a race stopped the variant; None if it did not
    interval    of the difference, at `level` or, if the race stopped it, for any number of looks; it excludes 0
                exactly if there is a verdict other than "no evidence"
    """

    name: str
    group: Mapping[str, Any]
    answers: Mapping[str, int]
    runs: int = 0
    not_judged: int = 0
    left_out: int = 0
    difference: Difference | None = None
    corrected: float | None = None
    level: float = ALPHA
    verdict: Verdict | None = None
    undone_by: int | None = None
    needed: NewSample | None = None
    risk: Risk | None = None
    why: str = ""
    stopped: EarlyStop | None = None
    interval: tuple[float, float] | None = None

    @property
    def fitness(self) -> float:
        """Its fitness; 0 if no run was judged."""
        return float(self.group.get("fitness") or 0.0)

    @property
    def was_judged(self) -> bool:
        """True if any of the compared runs was judged."""
        return bool(self.group.get("passed") or self.group.get("failed"))


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
            found.fitness >= other.fitness for other in self.variants if other.stopped is None
        )


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
        groups: the figures of each variant, by name, without the runs of `uncompared`.
        names: the variants, the baseline first.
        answers: number of runs of each variant by kind of answers.
        no_difference: by name, the reason why a variant cannot differ from the baseline; "" if it can.
        race: the race that stopped variants early, if there was one.
    """
    baseline, *others = names
    paired_runs = {name: pairs(run, baseline, name) for name in others}
    paired = {name: _paired(paired_runs[name]) for name in others}
    first, *scored = (
        _counted(run, VariantScore(name, groups.get(name) or figures([]), answers.get(name, {})))
        for name in (baseline, *(name for name in others if name in groups or paired_runs[name]))
    )
    scored = [
        _with_difference(each, paired_runs[each.name], paired[each.name], no_difference[each.name])
        for each in scored
    ]
    stopped = race.stopped if race is not None else {}
    p_values = {
        each.name: 1.0 if each.name in stopped else each.difference.p
        for each in scored
        if each.difference and not each.why
    }
    corrected, levels = holm(p_values), holm_levels(p_values)
    changed = [
        found
        for name in others
        for pair in paired_runs[name]
        if (found := _scenario_change(pair, name)) is not None
    ]
    variants = [
        first,
        *(
            _with_race_verdict(each, race)
            if race is not None and each.name in stopped
            else _with_verdict(each, corrected, levels, paired[each.name])
            for each in scored
        ),
    ]
    return Score(
        variants,
        sorted(changed, key=lambda each: (each.after - each.before, each.id)),
        pareto_front(_aims(variants, paired_runs)),
    )


def _aims(
    variants: Sequence[VariantScore], paired_runs: Mapping[str, Sequence[Pair]]
) -> dict[str, tuple[float, ...]]:
    """Return the figures to minimize, of the variants that may be on the Pareto front.

    A latency that differs from the baseline's by no more than chance counts as equal to it. Variants that were
    stopped, or have no judged run, are left out.
    """
    usual = variants[0].group["latency"]["p50"]
    aims: dict[str, tuple[float, ...]] = {}
    for each in variants:
        if each.stopped is not None or not each.was_judged:
            continue
        same = usual is not None and latency_is_noise(paired_runs.get(each.name, ()))
        latency = (usual if same else each.group["latency"]["p50"]) or 0.0
        aims[each.name] = (-each.fitness, latency, each.group["cost"])
    return aims


def _counted(run: Run, scored: VariantScore) -> VariantScore:
    """Add the number of runs, and of those that could not be judged."""
    scenarios = [each for each in run.scenarios.values() if each.variant == scored.name]
    verdicts = [repeat.verdict for each in scenarios for repeat in each.repeats.values()]
    return replace(scored, runs=len(verdicts), not_judged=verdicts.count("error"))


def _paired(found: Sequence[Pair]) -> list[PairedValues]:
    """Return the paired scores of each scenario with a weight, of the repeats that count."""
    scores = ((pair.after.weight, _scores(pair)) for pair in found)
    return [PairedValues(values, weight) for weight, values in scores if values and weight]


def _scores(pair: Pair) -> list[tuple[float, float]]:
    """Return the paired scores of the repeats that count; one pair if repeats cannot differ."""
    scores = [(before.score, after.score) for before, after in counting_repeats(pair).values()]
    can_differ = pair.before.varies or pair.after.varies or len(set(scores)) > 1
    return scores if can_differ else scores[:1]


def _with_difference(
    scored: VariantScore, found: Sequence[Pair], paired: Sequence[PairedValues], no_difference: str
) -> VariantScore:
    """Add the difference, and the reason why there is no verdict, if there is one."""
    left_out, shared = sum(map(is_left_out, found)), sum(bool(pair.repeats) for pair in found)
    scored = replace(scored, left_out=left_out)
    if not paired:
        return replace(scored, why="no scenario was judged for it and for the baseline")
    difference = paired_difference(paired)
    scored = replace(scored, difference=difference, interval=difference.interval())
    if left_out > MAX_LEFT_OUT * shared:
        of = f"{left_out} of {plural(shared, 'scenario')}"
        return replace(scored, why=f"too many scenarios are left out for a verdict: {of}")
    differs = any(_differs(pair) for pair in found)
    if no_difference == SAME_AS_BASELINE and differs:
        return replace(scored, why=f"differs for other reasons: {no_difference}")
    return replace(scored, why=f"cannot differ: {no_difference}") if no_difference and not differs else scored


def _differs(pair: Pair) -> bool:
    return any(
        (before.verdict, before.score, before.latency) != (after.verdict, after.score, after.latency)
        for before, after in pair.repeats
    )


def _with_verdict(
    scored: VariantScore,
    corrected: Mapping[str, float],
    levels: Mapping[str, float],
    paired: Sequence[PairedValues],
) -> VariantScore:
    if scored.difference is None or scored.why:
        return scored
    difference, level = scored.difference, levels[scored.name]
    scored = replace(
        scored, corrected=corrected[scored.name], level=level, interval=difference.interval(level)
    )
    if difference.p > level:
        more = new_sample(paired, level)
        return replace(
            scored,
            verdict="no evidence",
            needed=more,
            why=_needed_text(paired, more),
            risk=greater_risk(paired, ALPHA / len(corrected)),
        )
    verdict: Verdict = "better" if difference.estimate > 0 else "worse"
    return replace(scored, verdict=verdict, undone_by=tipping_point(paired, level))


def _with_race_verdict(scored: VariantScore, race: Race) -> VariantScore:
    """Add the verdict of the race to a variant that it stopped; none if the variant cannot differ."""
    scored = replace(scored, stopped=race.stopped[scored.name])
    if scored.why:
        return scored
    p = race.p_worse_than_baseline(scored.name)
    verdict: Verdict = "worse" if p <= LEVEL else "no evidence"
    return replace(scored, corrected=p, level=ALPHA, verdict=verdict, interval=race.interval(scored.name))


def _needed_text(paired: Sequence[PairedValues], more: NewSample | None) -> str:
    if more is None:
        if all(before == after for each in paired for before, after in each.repeats):
            return "no scenario has another score"
        return "one run is too few" if len(paired) == 1 else "the differences of scenarios cancel out"
    wanted = []
    if more.repeats is not None:
        wanted.append(f"{plural(more.repeats, 'new repeat')} of each scenario")
    if more.scenarios is not None:
        wanted.append(f"{plural(more.scenarios, 'new scenario')} like these")
    return f"about {' or '.join(wanted)}, scored alone, would show it, if it is as large as here"


def _scenario_change(pair: Pair, variant: str) -> ScenarioChange | None:
    before, after = round(pair.before.score, _DIGITS), round(pair.after.score, _DIGITS)
    verdicts = (pair.before.verdict, pair.after.verdict)
    if before == after and verdicts[0] == verdicts[1]:
        return None
    better = after > before
    checks = Pair(pair.after, pair.before).changed_checks if better else pair.changed_checks
    return ScenarioChange(pair.after.id, variant, before, after, verdicts, tuple(checks))
