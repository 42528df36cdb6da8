"""Sample size: the number of new scenarios, or repeats, that would make a difference significant.

A mean change m of N scenarios is significant at `level` with a power of 80 % if |m| N, less z(0.8) s √N for chance,
reaches what both tests of `harness.statistics.paired_difference` ask for:

    sign-flip test      z(1 - level/2) √(N (s² + m²)) + u
    Student's test      t(1 - level/2; N - 1) √(N s² + r²)

where s² is the variance of the changes of scenarios: flipped signs spread about 0, the sample about m. u is the
step size of scores: the sign-flip test counts all of several equal sums. r is the range of a scenario's
changes. In addition, so many scenarios have to differ that the test is significant if all signs are equal: 2 ÷
2^k ≤ level, or half of that if all changes have the same size (mid-p).

s² is the sum of the variance between scenarios and the variance between repeats of a scenario, divided by their
number. More repeats reduce the latter.

The numbers are those of a new sample, without the present one. Adding to a sample until it is significant would
double the rate of false verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, sqrt
from statistics import NormalDist, variance
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.statistics.paired_difference import weighted_changes
from harness.statistics.ratio_interval import MOST, PairedValues, least_number, student_quantile

if TYPE_CHECKING:
    from harness.statistics.ratio_interval import Values

POWER: Final = 0.8


class NewSample(NamedTuple):
    """A new sample that would make a difference as large as the observed one significant.

    scenarios  number of new scenarios like these; None for a single scenario, which is compared with itself
    repeats    number of new repeats of each of the same scenarios; None if the variance between repeats is the
               smaller part or not known, or if no number of them suffices
    """

    scenarios: int | None
    repeats: int | None


@dataclass(frozen=True)
class _Observed:
    """The observed changes, for weights with the mean 1: their mean, the step and range of scores, and the level."""

    mean: float
    step: float
    range: float
    share_changed: float
    same_size: bool
    level: float

    def suffices(self, n: int, spread: float) -> bool:
        """True if n scenarios have the power, given the variance of changes."""
        normal = NormalDist()
        chance = normal.inv_cdf(POWER) * sqrt(n * spread)
        flips = normal.inv_cdf(1 - self.level / 2) * sqrt(n * (spread + self.mean**2)) + self.step
        student = student_quantile(1 - self.level / 2, n - 1.0) * sqrt(n * spread + self.range**2)
        return self.mean * n - chance >= max(flips, student)

    def enough_change(self, n: int) -> bool:
        """True if, with probability `POWER`, enough of n scenarios differ, given the observed share."""
        # Nearly normal count; the root of share × N - z √(share × (1 - share) × N) = least.
        z = NormalDist().inv_cdf(POWER) * sqrt(1 - self.share_changed)
        least = _fewest(self.level) - self.same_size
        return n >= max(_fewest(self.level), ((z + sqrt(z**2 + 4 * least)) / 2) ** 2 / self.share_changed)


def new_sample(scenarios: Sequence[PairedValues], level: float) -> NewSample | None:
    """Return the new sample that makes the difference significant at `level`; None if there is no difference."""
    import numpy as np

    if len(scenarios) == 1 and len(scenarios[0].repeats) > 1:
        more = new_sample([PairedValues([repeat]) for repeat in scenarios[0].repeats], level)
        return more and NewSample(None, more.scenarios)
    weights, changes = weighted_changes(scenarios)
    n = len(scenarios)
    weights, changes = weights / weights.mean(), changes / weights.mean()
    mean = abs(float(changes.mean()))
    if n < 2 or not mean:
        return None
    deviations = changes - changes.mean() * weights
    spread = float(deviations @ deviations / (n - 1))
    sizes = np.abs(changes[changes != 0])
    same_size = float(np.ptp(sizes)) < 1e-9
    observed = _Observed(
        mean,
        0.0 if same_size else float(sizes.min()),
        sqrt(float(weights @ weights) / n),
        len(sizes) / n,
        same_size,
        level,
    )
    wanted = least_number(lambda number: observed.suffices(number, spread) and observed.enough_change(number))
    return NewSample(wanted, _repeats(scenarios, weights, observed, spread))


def _fewest(level: float) -> int:
    """Return the smallest number of scenarios that can be significant: 2 ÷ 2^n ≤ level."""
    return ceil(1 - log2(level))


def _repeats(
    scenarios: Sequence[PairedValues], weights: Values, observed: _Observed, spread: float
) -> int | None:
    n = len(scenarios)
    counts = [len(each.repeats) for each in scenarios]
    if min(counts) < 2 or n < _fewest(observed.level):
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
    between, typical = max(0.0, spread - within), sum(counts) / n
    repeats = least_number(lambda number: observed.suffices(n, between + within * typical / number))
    return repeats if repeats < MOST else None
