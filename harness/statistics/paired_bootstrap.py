"""How much figures changed from one run to another, with an interval: the paired bootstrap over scenarios.

A run is a sample twice over: of the scenarios that could have been written, and of what each may do. Resampled are
the scenarios, each with all its repeats; drawing repeats within them as well would count their spread twice (Davison
and Hinkley 1997, "Bootstrap Methods and their Application", section 3.8). Before and after stay together, so what
makes a scenario hard or slow in both runs is no noise.

The interval is the expanded percentile interval (Hesterberg 2015, "What Teachers Should Know About the Bootstrap"):
quantiles of the resampled changes, taken further out by what n scenarios lack, so that for a mean it is as wide as
Student's. With 10 to 30 scenarios that pass or fail the plain percentile interval holds its 95 % in 88 to 94 % of
cases; BCa does no better there, and bootstrap-t breaks down on scores that are mostly 1, whose resampled spread is
often 0. No resample of fewer than ten scenarios reaches far enough out: there it is Student's interval, of the change
to the first order. `benchmarks/gate.py` has the simulation, and what all of it takes.

Nothing can tell of changes that the sample does not have: where one scenario in ten breaks, one run in three of ten
scenarios has none of these, and its interval is too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, inf, isinf, pi, sqrt, tan
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

RESAMPLES: Final = 10_000
_FEWEST_RESAMPLES: Final = 2_000
_DRAWS: Final = 20_000_000
"""How many scenarios are drawn in all, as far as `_FEWEST_RESAMPLES` allows: of many, fewer resamples will do."""
_AT_ONCE: Final = 1_000_000
_FEW: Final = 10


@dataclass(frozen=True, slots=True)
class Paired:
    """A scenario in two runs: a figure of each repeat before and after, and what the scenario weighs."""

    repeats: Sequence[tuple[float, float]]
    weight: float = 1.0


class Change(NamedTuple):
    """A relative change, 0.1 for a tenth more, and its interval; infinite where nothing became something."""

    estimate: float
    low: float
    high: float


def relative_change(scenarios: Sequence[Paired]) -> float:
    """Σ weight × mean after ÷ Σ weight × mean before - 1; 0 where both are 0, infinite where only the first is."""
    import numpy as np

    before, after = _totals(scenarios)
    return float(_ratio(np.array([before.sum()]), np.array([after.sum()]))[0])


def paired_bootstrap(
    scenarios: Sequence[Paired], *, confidence: float = 0.95, resamples: int | None = None, seed: int = 0
) -> Change:
    """The relative change and its interval. The same scenarios, in the same order, give the same one.

    Of a single scenario its repeats are resampled: the interval is of that scenario, not of others like it.

    Raises:
        ValueError: there is no scenario, or one has no repeat.
    """
    import numpy as np

    if not scenarios or not all(scenario.repeats for scenario in scenarios):
        raise ValueError("every scenario needs a repeat in both runs")
    if len(scenarios) == 1:
        scenarios = [Paired([repeat]) for repeat in scenarios[0].repeats]
    before, after = _totals(scenarios)
    change = float(_ratio(np.array([before.sum()]), np.array([after.sum()]))[0])
    n, tail = len(scenarios), (1 - confidence) / 2
    if n == 1:
        return Change(change, -inf, inf)
    if n < _FEW:
        return _students(before, after, change, tail)
    count = resamples or max(_FEWEST_RESAMPLES, min(RESAMPLES, _DRAWS // n))
    changes = np.sort(_resampled(before, after, count, seed))
    tail = NormalDist().cdf(-sqrt(n / (n - 1)) * student_quantile(1 - tail, n - 1))
    at = int(tail * count)
    return Change(change, float(changes[at]), float(changes[count - 1 - at]))


def _totals(scenarios: Sequence[Paired]) -> tuple[Values, Values]:
    """Weight × mean over repeats of each scenario, before and after."""
    import numpy as np

    sums = [
        [
            scenario.weight * sum(values) / len(scenario.repeats)
            for values in zip(*scenario.repeats, strict=True)
        ]
        for scenario in scenarios
    ]
    before, after = np.array(sums, dtype=np.float64).reshape(-1, 2).T
    return before, after


def _resampled(before: Values, after: Values, count: int, seed: int) -> Values:
    """The change in each of `count` resamples, made in pieces that fit into memory."""
    import numpy as np

    n, random = len(before), np.random.default_rng(seed)
    rows = max(1, _AT_ONCE // n)
    pieces = []
    for start in range(0, count, rows):
        drawn = random.integers(0, n, (min(rows, count - start), n))
        pieces.append(_ratio(before[drawn].sum(axis=1), after[drawn].sum(axis=1)))
    return np.concatenate(pieces)


def _ratio(before: Values, after: Values) -> Values:
    import numpy as np

    nothing = np.where(after > 0, inf, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(before > 0, after / before - 1, nothing)


def _students(before: Values, after: Values, change: float, tail: float) -> Change:
    if isinf(change):
        return Change(change, -inf, inf)
    n, total = len(before), before.sum()
    if total == 0:
        return Change(change, change, change)
    residuals = after - before - change * before
    half = student_quantile(1 - tail, n - 1) * sqrt((residuals**2).sum() * n / (n - 1)) / total
    return Change(change, change - half, change + half)


def student_quantile(share: float, degrees: int) -> float:
    """The quantile of Student's t distribution, to three digits (Abramowitz and Stegun, 26.7.5).

    >>> round(student_quantile(0.975, 1), 2), round(student_quantile(0.975, 9), 3)
    (12.71, 2.262)
    """
    if degrees == 1:
        return tan(pi * (share - 0.5))
    if degrees == 2:
        return (2 * share - 1) / sqrt(2 * share * (1 - share))
    x = NormalDist().inv_cdf(share)
    terms = (
        x,
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return fsum(term / degrees**power for power, term in enumerate(terms))
