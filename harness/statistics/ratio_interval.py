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

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING, Final

from harness.statistics.student import student_quantile, upper_tail

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


def least_number(holds: Callable[[int], bool]) -> int:
    """Return the smallest number from 2 to `MOST` for which a condition holds that holds for all larger ones."""
    high = 2
    while not holds(high) and high < MOST:
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return min(high, MOST)
