"""The interval of a ratio of sums over scenarios: of a mean difference, or of a relative change.

Both are Σ change of each scenario ÷ Σ count of each scenario. A run is a sample in two ways: of the scenarios
that could have been written, and of the behaviour of each. The scenarios are resampled, each with all its
repeats; resampling repeats within them as well would count their variance twice (Davison and Hinkley 1997,
"Bootstrap Methods and their Application", section 3.8). Before and after stay paired, so a scenario that is
hard or slow in both runs adds no noise.

A bootstrap cannot resample what the sample lacks: if one scenario in ten breaks, one run in three of ten
scenarios has none that does, and its interval would exclude that any ever breaks. So two halves of a scenario
are added, one above the mean change and one below it, at the distance of the scenario that is farthest from it;
if all changes are equal, at the distance of that change; if none changed, at the distance of the largest count.
Agresti and Min 2005 ("Simple improved confidence intervals for comparing matched proportions") also add half
observations, for scenarios that pass or fail; theirs lie about 0, these about the mean, which does not change.

The interval is the expanded percentile interval (Hesterberg 2015, "What Teachers Should Know About the Bootstrap"):
quantiles of the resampled ratios, moved outwards to correct for n, so that for a mean it is as wide as Student's.
With fewer than ten scenarios no resample reaches far enough; there it is Student's interval of the linearized ratio.
BCa is not better, and bootstrap-t breaks down on scores that are mostly 1, whose resampled variance is often 0.
docs/gate.md has its coverage, `benchmarks/gate.py` the simulation.
"""

from __future__ import annotations

from math import fsum, inf, pi, sqrt, tan
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

RESAMPLES: Final = 10_000
_MIN_RESAMPLES: Final = 2_000
_DRAWS: Final = 20_000_000
"""Maximum number of drawn scenarios in all resamples, as far as `_MIN_RESAMPLES` allows."""
_CHUNK_SIZE: Final = 1_000_000
_SMALL_SAMPLE: Final = 10
_ROUNDING: Final = 1e-12


def ratio(changes: Values, counts: Values) -> float:
    """Return Σ changes ÷ Σ counts; if Σ counts is 0, 0 if nothing changed, infinite otherwise."""
    import numpy as np

    return float(_ratios(np.array([changes.sum()]), np.array([counts.sum()]))[0])


def ratio_interval(
    changes: Values, counts: Values, *, confidence: float, resamples: int | None = None, seed: int = 0
) -> tuple[float, float]:
    """Return the interval of Σ changes ÷ Σ counts, deterministic for the same values in the same order.

    It is unbounded for a single scenario, which allows no conclusion about others, and for few if Σ counts is 0.
    """
    import numpy as np

    n, estimate = len(changes), ratio(changes, counts)
    if n == 1 or (n < _SMALL_SAMPLE and estimate == inf):
        return -inf, inf
    if not counts.any() and not changes.any():
        return estimate, estimate
    tail = (1 - confidence) / 2
    most = _largest_deviation(changes, counts, estimate)
    if n < _SMALL_SAMPLE:
        residuals = changes - estimate * counts
        spread = sqrt((residuals @ residuals + most**2) / (n * (n + 1)))
        half = student_quantile(1 - tail, n - 1) * spread / counts.mean()
        return float(estimate - half), float(estimate + half)
    count = resamples or max(_MIN_RESAMPLES, min(RESAMPLES, _DRAWS // n))
    resampled = np.sort(_resampled(changes, counts, most, count, seed))
    reach = sqrt((n + 1) / n) * student_quantile(1 - tail, n - 1)
    at = int(NormalDist().cdf(-reach) * count)
    return min(estimate, float(resampled[at])), max(estimate, float(resampled[count - 1 - at]))


def _largest_deviation(changes: Values, counts: Values, estimate: float) -> float:
    """Return the distance from the mean change at which the two halves are added (see the module)."""
    import numpy as np

    residuals = changes - estimate * counts if estimate < inf else changes
    for seen in (residuals, changes):
        most = float(np.abs(seen).max())
        if most > _ROUNDING * counts.max():
            return most
    return float(counts.max())


def _resampled(changes: Values, counts: Values, most: float, count: int, seed: int) -> Values:
    """Return the ratio in each of `count` resamples with the two halves, in pieces that fit into memory."""
    import numpy as np

    n, random, mean = len(changes), np.random.default_rng(seed), counts.mean()
    middle = ratio(changes, counts) * mean if mean else changes.mean()
    # Two that are drawn as often as the others, with the variance of two halves.
    changes = np.append(changes, [middle + most / sqrt(2), middle - most / sqrt(2)])
    counts = np.append(counts, [mean, mean])
    rows = max(1, _CHUNK_SIZE // n)
    pieces = []
    for start in range(0, count, rows):
        drawn = random.integers(0, n + 2, (min(rows, count - start), n + 1))
        pieces.append(_ratios(changes[drawn].sum(axis=1), counts[drawn].sum(axis=1)))
    return np.concatenate(pieces)


def _ratios(changes: Values, counts: Values) -> Values:
    import numpy as np

    nothing = np.where(changes > 0, inf, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(counts > 0, changes / counts, nothing)


def student_quantile(share: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution, to three digits (Abramowitz and Stegun, 26.7.5).

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
