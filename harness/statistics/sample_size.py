"""Sample size: the number of further scenarios, or repeats, that would make a difference significant.

A sign-flip test with `level` detects a mean change m of N scenarios with a power of 80 % if

    |m| N  ≥  (z(1 - level/2) √(s² + m²)  +  z(0.8) s) √N  +  u

where s² is the variance of the changes of scenarios: flipped signs spread about 0, the sample about m. u is the
step size of scores: the test counts all of several equal sums. In addition, so many scenarios have to differ
that the test is significant if all signs are equal: 2 ÷ 2^k ≤ level.

s² is the sum of the variance between scenarios and the variance between repeats of a scenario, divided by their
number. More repeats reduce the latter.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2, sqrt
from statistics import NormalDist, variance
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.statistics.paired_bootstrap import PairedValues
from harness.statistics.paired_difference import weighted_changes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

POWER: Final = 0.8


class AdditionalSample(NamedTuple):
    """The additional sample that would make a difference as large as the observed one significant.

    scenarios  number of further scenarios like these; None for a single scenario, which is compared with itself
    repeats    number of further repeats of each; None if the variance between repeats is the smaller part or not
               known, or if no number of them suffices
    """

    scenarios: int | None
    repeats: int | None


def additional_sample(scenarios: Sequence[PairedValues], level: float) -> AdditionalSample | None:
    """Return the additional sample that makes the difference significant at `level`; None if there is no difference.

    The numbers are at least 1.
    """
    if len(scenarios) == 1 and len(scenarios[0].repeats) > 1:
        more = additional_sample([PairedValues([repeat]) for repeat in scenarios[0].repeats], level)
        return more and AdditionalSample(None, more.scenarios)
    weights, changes = weighted_changes(scenarios)
    n, scale = len(scenarios), len(scenarios) / weights.sum()
    changes = changes * scale
    mean = abs(float(changes.mean()))
    if n < 2 or not mean:
        return None
    deviations = changes - changes.mean() * weights * scale
    spread = float(deviations @ deviations / (n - 1))
    step = float(abs(changes[changes != 0]).min())
    total = max(_scenarios_for_power(mean, spread, step, level), _scenarios_with_changes(changes, level))
    return AdditionalSample(
        max(1, ceil(total) - n), _repeats(scenarios, weights * scale, mean, spread, level)
    )


def _scenarios_for_power(mean: float, spread: float, step: float, level: float) -> float:
    """Return the number of scenarios for which the test has the required power."""
    normal = NormalDist()
    reach = normal.inv_cdf(1 - level / 2) * sqrt(spread + mean**2) + normal.inv_cdf(POWER) * sqrt(spread)
    return ((reach + sqrt(reach**2 + 4 * mean * step)) / (2 * mean)) ** 2


def _scenarios_with_changes(changes: Values, level: float) -> float:
    """Return the number of scenarios of which enough differ with probability `POWER`, given the observed share."""
    share, least = float((changes != 0).mean()), ceil(1 - log2(level))
    # The root of share × N - z √(share × (1 - share) × N) = least, for a count that is nearly normal.
    z = NormalDist().inv_cdf(POWER) * sqrt(1 - share)
    return ((z + sqrt(z**2 + 4 * least)) / 2) ** 2 / share


def _repeats(
    scenarios: Sequence[PairedValues], weights: Values, mean: float, spread: float, level: float
) -> int | None:
    n = len(scenarios)
    counts = [len(each.repeats) for each in scenarios]
    if min(counts) < 2 or n < ceil(1 - log2(level)):
        return None
    # Repeats with equal results have no variance.
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
    """Return the largest variance for which n scenarios suffice, to a thousandth of `most`; 0 if there is none."""
    low, high = 0.0, most
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if _scenarios_for_power(mean, middle, 0.0, level) <= n else (low, middle)
    return low
