"""How many more scenarios, or repeats of them, would show a difference that was not shown.

A sign-flip test with `level` shows a mean change m of N scenarios with a power of 80 % where

    |m| N  ≥  (z(1 - level/2) √(s² + m²)  +  z(0.8) s) √N  +  u

with s², the variance of the changes of scenarios: flipped signs spread them about 0, the sample about m. u is the
step scores come in: of sums that are equal the test counts all. Besides, so many scenarios have to differ at all
that even with all signs alike the test shows it: 2 ÷ 2^k ≤ level.

s² has two parts: what scenarios differ in, and what repeats of the same scenario do, by their number. The second
falls with more repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2, sqrt
from statistics import NormalDist, variance
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.statistics.paired_bootstrap import Paired
from harness.statistics.paired_difference import weighted_changes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

POWER: Final = 0.8


class Needed(NamedTuple):
    """What would show a difference as large as here.

    scenarios  how many more scenarios like these; None of a single scenario, which is compared with itself
    repeats    how many more repeats of each of these; None where chance between repeats is the smaller part of the
               spread or not known, and where no number of them would do
    """

    scenarios: int | None
    repeats: int | None


def needed(scenarios: Sequence[Paired], level: float) -> Needed | None:
    """What would show the difference of scores at `level`, each at least 1; None where there is no difference."""
    if len(scenarios) == 1 and len(scenarios[0].repeats) > 1:
        more = needed([Paired([repeat]) for repeat in scenarios[0].repeats], level)
        return more and Needed(None, more.scenarios)
    weights, changes = weighted_changes(scenarios)
    n, scale = len(scenarios), len(scenarios) / weights.sum()
    changes = changes * scale
    mean = abs(float(changes.mean()))
    if n < 2 or not mean:
        return None
    deviations = changes - changes.mean() * weights * scale
    spread = float(deviations @ deviations / (n - 1))
    step = float(abs(changes[changes != 0]).min())
    total = max(_enough(mean, spread, step, level), _with_enough_changes(changes, level))
    return Needed(max(1, ceil(total) - n), _repeats(scenarios, weights * scale, mean, spread, level))


def _enough(mean: float, spread: float, step: float, level: float) -> float:
    """How many scenarios show the mean."""
    normal = NormalDist()
    reach = normal.inv_cdf(1 - level / 2) * sqrt(spread + mean**2) + normal.inv_cdf(POWER) * sqrt(spread)
    return ((reach + sqrt(reach**2 + 4 * mean * step)) / (2 * mean)) ** 2


def _with_enough_changes(changes: Values, level: float) -> float:
    """Of how many scenarios, where as large a share differs as here, enough do with a chance of `POWER`."""
    share, least = float((changes != 0).mean()), ceil(1 - log2(level))
    # The root of share × N - z √(share × (1 - share) × N) = least, for a count that is nearly normal.
    z = NormalDist().inv_cdf(POWER) * sqrt(1 - share)
    return ((z + sqrt(z**2 + 4 * least)) / 2) ** 2 / share


def _repeats(
    scenarios: Sequence[Paired], weights: Values, mean: float, spread: float, level: float
) -> int | None:
    n = len(scenarios)
    counts = [len(each.repeats) for each in scenarios]
    if min(counts) < 2 or n < ceil(1 - log2(level)):
        return None
    # Of repeats with the same result nothing is left to chance.
    within = (
        sum(
            float(weight) ** 2
            * variance(after - before for before, after in each.repeats)
            / len(each.repeats)
            for weight, each in zip(weights, scenarios, strict=True)
        )
        / n
    )
    if within <= spread / 2:
        return None
    between, bound = max(0.0, spread - within), _largest_spread(mean, spread, n, level)
    if bound <= between:
        return None
    typical = sum(counts) / n
    return max(1, ceil(typical * within / (bound - between) - typical))


def _largest_spread(mean: float, most: float, n: int, level: float) -> float:
    """With which spread n scenarios are enough, to a thousandth of `most`; 0 with none."""
    low, high = 0.0, most
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if _enough(mean, middle, 0.0, level) <= n else (low, middle)
    return low
