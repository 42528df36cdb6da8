"""(v) The claims of `harness score`, `gate`, `evolve`, `judge-check` and `history`, each beside a simulation of it.

A figure is a percentage of simulated cases: false verdicts and alarms where nothing changed, and intervals that
miss the true value. Its target allows for sampling: about two standard errors for this number of cases. Figures
without a target are for information: power, and where a claim ends. Five minutes on one processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Figure
from harness.calibration.measure import best_threshold
from harness.gate.rules import drift_p
from harness.report.history.record import Entry, RunRecord
from harness.report.history.trends import Trends
from harness.report.scenario_runs import Pair, Repeat, Run, ScenarioRuns
from harness.scenario.score import clustered_wilson
from harness.statistics.paired_difference import greater_risk, holm, paired_difference, sign_flip_p
from harness.statistics.pass_counts import PassCounts, fewer_passes_p, significantly_fewer
from harness.statistics.ratio_interval import PairedValues, relative_change
from harness.statistics.sample_size import new_sample
from harness.variants.comparison import compare, latency_is_noise

CASES = 1_000
Draw = np.random.Generator
Values = NDArray[Any]
Sample = list[PairedValues]
Drawn = Callable[[Draw, int], Sample]


def run() -> list[Figure]:
    """Simulate all claims."""
    return [
        *_false_verdicts(),
        *_missed_differences(),
        *_missed_changes(),
        *_power(),
        *_pass_rates(),
        *_gate(),
        *_others(),
    ]


def _rate(title: str, event: Callable[[Draw], bool], most: float | None = None, cases: int = CASES) -> Figure:
    """Return the percentage of cases in which an event occurs; `most` is the claimed maximum."""
    found = 100 * sum(event(np.random.default_rng((1, case))) for case in range(cases)) / cases
    target = None if most is None else round(most + 2 * sqrt(most * (100 - most) / cases), 1)
    return Figure("v", title, found, "%", target)


# ---------------------------------------------------------------- scores of two variants


def _sample(before: Values, after: Values, weights: Values | None = None) -> Sample:
    """Return scenarios from arrays of scores, with a row for each scenario and a column for each repeat."""
    if weights is None:
        weights = np.ones(len(before))
    return [
        PairedValues([*zip(one.tolist(), other.tolist(), strict=True)], float(weight))
        for one, other, weight in zip(np.atleast_2d(before), np.atleast_2d(after), weights, strict=True)
    ]


def _twice(scores: Callable[[Draw, int], Values], *, weights: tuple[float, ...] = (1.0,)) -> Drawn:
    """Return a generator of samples in which both variants have the same distribution in each scenario."""

    def drawn(draw: Draw, n: int) -> Sample:
        return _sample(scores(draw, n)[:, None], scores(draw, n)[:, None], draw.choice(weights, n))

    return drawn


def _passing(
    repeats: int, chances: Callable[[Draw, int], Values], weights: tuple[float, ...] = (1.0,)
) -> Drawn:
    """Return a generator of samples of equal variants that pass with some chance in each scenario."""

    def drawn(draw: Draw, n: int) -> Sample:
        chance = chances(draw, n)[:, None]
        before, after = (1.0 * (draw.random((n, repeats)) < chance) for _ in range(2))
        return _sample(before, after, draw.choice(weights, n))

    return drawn


def _breaking(gain: float, share: float, level: float = 0.9) -> Drawn:
    """Return a generator of samples that gain a little everywhere, and lose all of their score in a `share`."""

    def drawn(draw: Draw, n: int) -> Sample:
        before = np.full(n, level)
        after = np.where(draw.random(n) < share, 0.0, level + gain)
        return _sample(before[:, None], after[:, None])

    return drawn


def _uniform(draw: Draw, n: int) -> Values:
    return draw.random(n)


def _nearly_all(draw: Draw, n: int) -> Values:
    return np.full(n, 0.97)


def _skewed(draw: Draw, n: int) -> Values:
    return draw.beta(0.3, 0.1, n)


def _checks(draw: Draw, n: int) -> Values:
    return draw.binomial(3, 0.75, n) / 3


EQUAL: dict[str, Drawn] = {
    "0/1": _passing(1, _uniform),
    "0/1, mostly ties": _passing(1, _nearly_all),
    "0/1, 3 repeats": _passing(3, _uniform),
    "0/1, weights 1 and 10": _passing(1, _uniform, (1.0, 1.0, 1.0, 10.0)),
    "three checks": _twice(_checks),
    "skewed": _twice(_skewed),
}


def _false_verdicts() -> Iterator[Figure]:
    for kind, drawn in EQUAL.items():
        for n in (6, 12, 20):
            yield _rate(
                f"verdict on equal variants, n {n}: {kind}",
                lambda draw, drawn=drawn, n=n: paired_difference(drawn(draw, n)).p <= 0.05,  # type: ignore[misc]
                5,
            )
    for n in (6, 10, 20):
        yield _rate(
            f"verdict, n {n}: gains, and one in twenty breaks",
            lambda draw, n=n: paired_difference(_breaking(0.05, 1 / 19)(draw, n)).p <= 0.05,  # type: ignore[misc]
            5,
        )
    yield _rate("verdict on any of five equal variants, n 12", _any_of_five, 5)
    yield _rate("verdict on an equal variant at two looks, with more scenarios", _adding, None)
    yield _rate("verdict on an equal variant, of the new scenarios alone", _alone, None)
    yield _rate("a verdict that contradicts its interval", _contradicts, 0)
    yield _rate("a p-value that depends on the scale of weights", _depends_on_scale, 0)
    yield _rate("verdict on fewer than six scenarios", _few_are_significant, 0)


def _any_of_five(draw: Draw) -> bool:
    chance = draw.random(12)
    before = 1.0 * (draw.random(12) < chance)
    p_values = {}
    for name in "abcde":
        after = 1.0 * (draw.random(12) < chance)
        p_values[name] = paired_difference(_sample(before[:, None], after[:, None])).p
    return min(holm(p_values).values()) <= 0.05


def _adding(draw: Draw) -> bool:
    first = EQUAL["0/1"](draw, 15)
    if paired_difference(first).p <= 0.05:
        return True
    more = new_sample(first, 0.05)
    n = min(more.scenarios or 15, 100) if more else 15
    return paired_difference([*first, *EQUAL["0/1"](draw, n)]).p <= 0.05


def _alone(draw: Draw) -> bool:
    """Only the second look gives a verdict."""
    first = EQUAL["0/1"](draw, 15)
    more = new_sample(first, 0.05)
    n = min(more.scenarios or 15, 100) if more else 15
    return paired_difference(EQUAL["0/1"](draw, n)).p <= 0.05


def _contradicts(draw: Draw) -> bool:
    kind = [*EQUAL.values(), _breaking(0.05, 0.1)][draw.integers(len(EQUAL) + 1)]
    found = paired_difference(kind(draw, int(draw.integers(2, 25))))
    level = float(draw.choice([0.05, 0.025, 0.01]))
    low, high = found.interval(level)
    return (low <= 0 <= high) != (found.p > level)


def _depends_on_scale(draw: Draw) -> bool:
    sample, scale = EQUAL["0/1, weights 1 and 10"](draw, 9), 10.0 ** draw.integers(-13, 13)
    scaled = [PairedValues(each.repeats, each.weight * scale) for each in sample]
    return abs(paired_difference(scaled).p - paired_difference(sample).p) > 1e-9


def _few_are_significant(draw: Draw) -> bool:
    n = int(draw.integers(1, 6))
    return paired_difference([PairedValues([(0.0, 1.0)], 10.0 ** draw.integers(-13, 13))] * n).p <= 0.05


DIFFERENCES: dict[str, tuple[Drawn, float]] = {
    "nothing changed, 0/1": (_passing(1, _uniform), 0.0),
    "gains, 1/20 breaks": (_breaking(0.05, 0.05), 0.95 * 0.05 - 0.05 * 0.9),
    "1/10 breaks": (_breaking(0.0, 0.1, 1.0), -0.1),
    "weights 1, 10": (_passing(1, _uniform, (1.0, 1.0, 1.0, 10.0)), 0.0),
}


def _missed_differences() -> Iterator[Figure]:
    for kind, (drawn, truth) in DIFFERENCES.items():
        for n in (6, 8, 10, 20, 30):

            def misses(draw: Draw, drawn: Drawn = drawn, truth: float = truth, n: int = n) -> bool:
                low, high = paired_difference(drawn(draw, n)).interval()
                return not low - 1e-9 <= truth <= high + 1e-9

            yield _rate(f"difference outside of its interval, n {n}: {kind}", misses, 5)


# ---------------------------------------------------------------- figures of two runs


def _slow(spread: float, change: float, share: float, noise: float = 0.3, repeats: int = 1) -> Drawn:
    """Return a generator of latencies, of which a `share` changes."""

    def drawn(draw: Draw, n: int) -> Sample:
        base = draw.lognormal(0, spread, n)[:, None]
        later = base * np.where(draw.random((n, 1)) < share, 1 + change, 1.0)
        before, after = (each * draw.lognormal(0, noise, (n, repeats)) for each in (base, later))
        return _sample(before, after)

    return drawn


CHANGES: dict[str, tuple[Drawn, float, float | None]] = {
    "unchanged": (_slow(0.5, 0, 0), 0.0, 5),
    "20 % more": (_slow(0.5, 0.2, 1), 0.2, 5),
    "20 % more, unequal": (_slow(1.0, 0.2, 1), 0.2, 5),
    "1/20 twice as slow": (_slow(0.5, 1, 0.05), 0.05, 5),
    "1/20 three times": (_slow(0.5, 2, 0.05), 0.1, None),
    "1/20 ten times": (_slow(0.5, 9, 0.05), 0.45, None),
}


def _missed_changes() -> Iterator[Figure]:
    for kind, (drawn, truth, most) in CHANGES.items():
        for n in (6, 10, 20, 30):

            def misses(draw: Draw, drawn: Drawn = drawn, truth: float = truth, n: int = n) -> bool:
                change = relative_change(drawn(draw, n))
                return not change.low <= truth <= change.high

            yield _rate(f"latency outside of its interval, n {n}: {kind}", misses, most, 2 * CASES)


def _power() -> Iterator[Figure]:
    def mended(draw: Draw) -> bool:
        return paired_difference(_mended(draw, 20, 0.25)).p <= 0.05

    def suggested(draw: Draw) -> bool:
        pilot = new_sample(_mended(np.random.default_rng(7), 40, 0.2), 0.05)
        return paired_difference(_mended(draw, pilot.scenarios or 2 if pilot else 2, 0.2)).p <= 0.05

    yield _rate("power: one in four of 20 scenarios is mended", mended)
    yield _rate("power: as many scenarios as suggested, one in five is mended", suggested)


def _mended(draw: Draw, n: int, share: float) -> Sample:
    before = np.where(draw.random(n) < share, 0.0, 1.0)
    return _sample(before[:, None], np.ones((n, 1)))


# ---------------------------------------------------------------- pass rates


def _pass_rates() -> Iterator[Figure]:
    for title, (a, b) in {"mostly": (9.0, 1.0), "all or none": (0.3, 0.3)}.items():
        for n in (6, 10, 20):

            def misses(draw: Draw, a: float = a, b: float = b, n: int = n) -> bool:
                passed = draw.binomial(10, draw.beta(a, b, n))
                low, high = clustered_wilson([(10, int(each)) for each in passed])
                return not low <= a / (a + b) <= high

            yield _rate(f"pass rate outside of its interval, {n} × 10 repeats: {title}", misses, 6, 2 * CASES)


# ---------------------------------------------------------------- the gate


def _gate() -> Iterator[Figure]:
    for n in (10, 30):

        def drops(draw: Draw, n: int = n) -> bool:
            return relative_change(_passing(1, _uniform)(draw, n), largest=1).high < 0

        def slows(draw: Draw, n: int = n) -> bool:
            return relative_change(_slow(0.5, 0, 0)(draw, n)).low > 0

        yield _rate(f"gate: an unchanged run of {n} fails on fitness, 1 repeat", drops, 2.5)
        yield _rate(f"gate: an unchanged run of {n} fails on latency, 1 repeat", slows, 2.5)
    for repeats in (1, 3, 5):

        def fails(draw: Draw, repeats: int = repeats) -> bool:
            return bool(_new_failures(draw, repeats, broken=0))

        def found(draw: Draw, repeats: int = repeats) -> bool:
            return 0 in _new_failures(draw, repeats, broken=1)

        yield _rate(f"gate: new failures of an unchanged run of 20, repeats {repeats}", fails, 5)
        yield _rate(f"power: one of 20 scenarios always fails now, repeats {repeats}", found)

    def proven(draw: Draw) -> bool:
        change = relative_change(_breaking(0.0, 0.05, 1.0)(draw, 150), largest=1)
        return change.low >= -0.05

    yield _rate("gate: a run that is 5 % worse is proven no worse than 5 %", proven)

    for title, of, most in (("best", _best, None), ("mean", _mean, 2.5)):

        def behind(draw: Draw, of: Callable[[list[Values]], Values] = of) -> bool:
            return _behind_a_baseline(draw, of)

        yield _rate(f"gate: an unchanged run fails against the {title} of five runs", behind, most, 2 * CASES)

    def drifts(draw: Draw) -> bool:
        return drift_p(draw.normal(0.9, 0.02, 100).tolist()) <= 0.05

    def fell(draw: Draw) -> bool:
        values = [*draw.normal(0.9, 0.02, 20), *draw.normal(0.86, 0.02, 40)]
        return drift_p(values) <= 0.05

    yield _rate("gate: drift of an unchanged history, at any of 100 looks", drifts, 5)
    yield _rate("power: drift by two standard deviations, within 40 nights", fell)


def _new_failures(draw: Draw, repeats: int, broken: int) -> set[int]:
    """Return the scenarios of 20 with random answers that `no_new_failures` names; the first `broken` always fail."""
    chance = draw.beta(4, 1, 20)
    later = chance.copy()
    chance[:broken], later[:broken] = 1.0, 0.0
    before, after = draw.binomial(repeats, chance), draw.binomial(repeats, later)
    counts = [
        PassCounts(int(one), repeats, int(now), repeats) for one, now in zip(before, after, strict=True)
    ]
    return significantly_fewer(counts, 0.05)


def _best(runs: list[Values]) -> Values:
    return max(runs, key=lambda scores: float(scores.sum()))


def _mean(runs: list[Values]) -> Values:
    return np.asarray(np.mean(runs, axis=0))


def _behind_a_baseline(draw: Draw, of: Callable[[list[Values]], Values]) -> bool:
    chance = draw.beta(4, 1, 20)
    *runs, now = (1.0 * (draw.random(20) < chance) for _ in range(6))
    before = of(runs)
    return relative_change(_sample(before[:, None], now[:, None]), largest=1).high < 0


# ---------------------------------------------------------------- judges and risk


def _others() -> Iterator[Figure]:
    for grades in (5, 11, 101):

        def suggests(draw: Draw, grades: int = grades) -> bool:
            return best_threshold(_graded(draw, 50, grades), 0.5) is not None

        yield _rate(f"judge-check: a worse threshold is suggested, {grades} grades", suggests, 5)

    def riskier(draw: Draw) -> bool:
        return greater_risk(EQUAL["three checks"](draw, 20), 0.05) is not None

    def gambles(draw: Draw) -> bool:
        after = 1.0 * (draw.random(20) < 0.5)
        return greater_risk(_sample(draw.normal(0.5, 0.2, 20)[:, None], after[:, None]), 0.05) is not None

    yield _rate("an equal variant called riskier", riskier, 2.5)
    yield _rate("a latency within its noise called another", _differs_in_latency, 5)
    yield _rate(
        "a variant that can no longer be judged in 8 of 14 called better", _breaks_beyond_judging, 0, 20
    )
    yield _rate("a scenario that fails in the last 60 runs called flaky", _is_called_flaky, 0, 20)
    yield _rate("power: scores of 0 or 1 in place of 0.5 ± 0.2 called riskier", gambles)

    def fewer(draw: Draw) -> bool:
        chance = draw.random()
        return fewer_passes_p(int(draw.binomial(5, chance)), 5, int(draw.binomial(5, chance)), 5) <= 0.05

    yield _rate("passes of an unchanged scenario called fewer, 5 repeats", fewer, 5, 4 * CASES)

    def flipped(draw: Draw) -> bool:
        return sign_flip_p(draw.standard_cauchy(10)) <= 0.05

    yield _rate("sign-flip test of symmetric changes with outliers, n 10", flipped, 5)


def _differs_in_latency(draw: Draw) -> bool:
    pairs = []
    for at, base in enumerate(draw.lognormal(0, 0.5, 20)):
        runs = [Repeat("passed", 1.0, base * float(draw.lognormal(0, 0.3)), 0, 0.0) for _ in range(2)]
        before, after = (ScenarioRuns(str(at), varies=True, repeats={0: run}) for run in runs)
        pairs.append(Pair(before, after))
    return not latency_is_noise(pairs)


def _breaks_beyond_judging(draw: Draw) -> bool:
    """The variant mends six scenarios of fourteen, and makes an error of the others."""
    passed, failed, error = (
        Repeat(verdict, float(verdict == "passed"), 1.0, 0, 0.0) for verdict in ("passed", "failed", "error")
    )
    scenarios = {}
    for at in range(14):
        of = {"baseline": failed if at < 6 else passed, "variant": passed if at < 6 else error}
        for variant, repeat in of.items():
            found = ScenarioRuns(f"s{at}", variant, repeats={0: repeat})
            scenarios[found.key] = found
    score = compare(Run("", scenarios), {}, ("baseline", "variant"), {}, {"variant": ""})
    return score.variants[1].verdict == "better"


def _is_called_flaky(draw: Draw) -> bool:
    """It broke and was mended some times long ago."""
    trends = Trends()
    long_ago = [bool(each) for each in draw.integers(0, 2, 30)]
    for passes in [*long_ago, *[False] * 60]:
        entry = Entry("passed" if passes else "failed", float(passes), int(passes), 1)
        trends.add(RunRecord({}, {"x": entry}))
    return trends.state(trends.scenarios["x"]) != "failing"


def _graded(draw: Draw, rows: int, grades: int) -> list[tuple[float, float]]:
    """Return labels and grades of a judge whose threshold of 0.5 is the best one."""
    grade = draw.integers(0, grades, rows) / (grades - 1)
    passes = draw.random(rows) < np.where(grade >= 0.5, 0.8, 0.2)
    return [*zip((1.0 * passes).tolist(), grade.tolist(), strict=True)]
