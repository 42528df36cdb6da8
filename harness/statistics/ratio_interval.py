"""The interval of a ratio of sums over scenarios: of a mean difference, or of a relative change.

Both are Σ change of each scenario ÷ Σ count of each scenario. The interval is Student's, of the linearized
ratio: the spread of change - ratio × count over scenarios. A scenario enters with the means of its repeats;
before and after stay paired, so a scenario that is hard or slow in both runs adds no noise.

Two corrections make it hold for few scenarios:

- A sample cannot show what it lacks: if one scenario in ten breaks, one run in three of ten scenarios has none
  that does, and its interval would exclude that any ever breaks. So two halves of a scenario are added, one
  above the ratio and one below it, at the distance by which a typical scenario can change: the whole range of
  scores times its weight, or the size of a figure that has no largest value. Agresti and Min 2005 ("Simple
  improved confidence intervals for comparing matched proportions") also add half observations, for scenarios
  that pass or fail; theirs lie about 0, these about the ratio, which does not change.
- If few scenarios dominate the sums, the sample is as good as a smaller one. The degrees of freedom are those
  of its effective size: (Σ count)² ÷ Σ count² - 1 (Kish 1965, "Survey Sampling", section 8.2), which is n - 1
  for equal counts.

A bootstrap over scenarios with the same two halves has the same width and coverage, but needs draws, and another
method for fewer than ten scenarios. `benchmarks/claims.py` has the coverage, docs/gate.md its figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, inf, lgamma, log, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

_TERMS: Final = 300
_SMALLEST: Final = 1e-300


def upper_tail(t: float, degrees: float) -> float:
    """Return the probability of a value above `t`, which is at least 0.

    >>> round(upper_tail(2.262, 9), 4), round(upper_tail(1.0, 1), 4)
    (0.025, 0.25)
    """
    if t == inf:
        return 0.0
    return 0.5 * _incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5)


@lru_cache(maxsize=1_000)
def student_quantile(share: float, degrees: float) -> float:
    """Return the value that a `share` of 0.5 or more of the distribution lies below; infinite beyond 10^9.

    >>> round(student_quantile(0.975, 1), 3), round(student_quantile(0.975, 9.0), 3)
    (12.706, 2.262)
    """
    low, high = 0.0, 1.0
    while upper_tail(high, degrees) > 1 - share:
        low, high = high, 2 * high
        if high > 1e9:
            return inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if upper_tail(middle, degrees) > 1 - share else (low, middle)
    return high


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function by its continued fraction (DLMF 8.17.22, Lentz's method)."""
    if x <= 0.0 or x >= 1.0:
        return min(1.0, max(0.0, x))
    if x > (a + 1) / (a + b + 2):  # where the fraction of the complement converges faster
        return 1 - _incomplete_beta(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x)) / a
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / _not_zero(1 + term * d), _not_zero(1 + term / c)
            fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * fraction


def _not_zero(value: float) -> float:
    return value if abs(value) > _SMALLEST else _SMALLEST


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]


MOST: Final = 10**9
"""Number of scenarios that is never suggested, nor exceeded."""


@dataclass(frozen=True)
class RatioEstimate:
    """A ratio with its standard error and degrees of freedom. The error is infinite for a single scenario.

    `spread` is the standard deviation of what a scenario contributes, `reach` the range of it.
    """

    value: float
    error: float
    degrees: float
    spread: float = 0.0
    reach: float = 0.0

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the interval with this confidence."""
        if self.error == inf:
            return -inf, inf
        half = student_quantile((1 + confidence) / 2, self.degrees) * self.error if self.error else 0.0
        return self.value - half, self.value + half

    def p(self, at: float = 0.0) -> float:
        """Return the p-value of a ratio of `at`: the interval with confidence c contains it if p ≥ 1 - c."""
        if self.error == inf or self.value == at:
            return 1.0
        return 2 * upper_tail(abs(self.value - at) / self.error, self.degrees) if self.error else 0.0

    def scenarios_for(self, half_width: float, confidence: float) -> int | None:
        """Return the number of scenarios like these whose interval is that narrow; None if it cannot be known."""
        if self.error in (0.0, inf) or half_width <= 0:
            return None
        share = (1 + confidence) / 2

        def is_narrow(n: int) -> bool:
            error = sqrt((n * self.spread**2 + self.reach**2) / (n * (n + 1)))
            return student_quantile(share, n - 1.0) * error <= half_width

        return least_number(is_narrow)


def ratio_estimate(changes: Values, counts: Values, ranges: Values) -> RatioEstimate:
    """Return Σ changes ÷ Σ counts. `ranges` has the distance by which each scenario can change.

    If Σ counts is 0, the ratio is 0 if nothing changed, and infinite otherwise; then its error is infinite as well,
    unless the changes differ from 0 significantly at 95 %.
    """
    import numpy as np

    n, total = len(changes), float(counts.sum())
    if not total:
        if not changes.any():
            return RatioEstimate(0.0, 0.0, n - 1.0)
        absolute = ratio_estimate(changes, np.ones(n), ranges)
        return RatioEstimate(inf, 0.0 if absolute.p() <= 0.05 else inf, n - 1.0)
    value = float(changes.sum()) / total
    shares = counts / total
    effective = 1 / float(shares @ shares)
    if n == 1 or effective - 1 < 1e-9:
        return RatioEstimate(value, inf, 0.0)
    # In multiples of the mean count, so that counts of any scale are fine.
    residuals, halves = (changes / total - value * shares) * n, ranges / total * n
    squares, range_ = float(residuals @ residuals), float(halves @ halves) / n
    error = sqrt((squares + range_) / (n * (n + 1)))
    return RatioEstimate(value, error, effective - 1, sqrt(squares / (n - 1)), sqrt(range_))


def least_number(holds: Callable[[int], bool], first: int = 2, most: int = MOST) -> int:
    """Return the smallest number from `first` to `most` for which a condition, monotonic in it, holds."""
    high = first
    while not holds(high) and high < most:
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return min(high, most)


@dataclass(frozen=True, slots=True)
class PairedValues:
    """A scenario in two runs: its figure in each repeat, before and after, and its weight."""

    repeats: Sequence[tuple[float, float]]
    weight: float = 1.0


class Change(NamedTuple):
    """A relative change (0.1 is an increase by 10 %) and its interval; infinite if the figure was 0 before."""

    estimate: float
    low: float
    high: float
    ratio: RatioEstimate


def relative_change(
    scenarios: Sequence[PairedValues], *, confidence: float = 0.95, largest: float = inf
) -> Change:
    """Return Σ weight × mean after ÷ Σ weight × mean before - 1, with its interval.

    For a single scenario the repeats are the sample: the interval is of that scenario, not of others like it.

    Args:
        scenarios: the figures, which are not negative.
        confidence: that of the interval.
        largest: the largest value of the figure, 1 for scores; infinite for those without one.

    Raises:
        ValueError: there is no scenario, or one has no repeat.
    """
    import numpy as np

    scenarios = sampling_units(scenarios)
    weights = np.array([scenario.weight for scenario in scenarios], dtype=np.float64)
    before, after = means(scenarios) * weights
    ranges = (before + after) / 2 if largest == inf else largest * weights
    estimate = ratio_estimate(after - before, before, ranges)
    low, high = estimate.interval(confidence)
    # Figures are not negative, so a decrease is at most 100 %.
    return Change(estimate.value, max(-1.0, low) if len(scenarios) > 1 else low, high, estimate)


def sampling_units(scenarios: Sequence[PairedValues]) -> Sequence[PairedValues]:
    """Return the units of the sample: the scenarios, or the repeats of a single scenario.

    Raises:
        ValueError: there is no scenario, or one has no repeat.
    """
    if not scenarios or not all(scenario.repeats for scenario in scenarios):
        raise ValueError("every scenario needs a repeat before and after")
    return scenarios if len(scenarios) > 1 else [PairedValues([repeat]) for repeat in scenarios[0].repeats]


def means(scenarios: Sequence[PairedValues]) -> Values:
    """Return the mean over repeats of each scenario: a row for before, and one for after."""
    import numpy as np

    sums = [
        [sum(values) / len(scenario.repeats) for values in zip(*scenario.repeats, strict=True)]
        for scenario in scenarios
    ]
    return np.array(sums, dtype=np.float64).reshape(-1, 2).T
