"""The interval of a ratio of sums over scenarios: of a mean difference, or of a relative change.

Both are Σ by how much each scenario changed ÷ Σ what it counts. A run is a sample twice over: of the scenarios
that could have been written, and of what each may do. Resampled are the scenarios, each with all its repeats;
drawing repeats within them as well would count their spread twice (Davison and Hinkley 1997, "Bootstrap Methods
and their Application", section 3.8). Before and after stay together, so what makes a scenario hard or slow in both
runs is no noise.

What the sample does not have it cannot resample: of scenarios of which one in ten breaks, one run in three of ten
has none that does, and would be sure that none ever will. So two halves of a scenario are added, one above the
mean change and one below it by as much as the scenario that is farthest from it; where all are alike, by what they
changed, and where none changed, by all there is. Halves of observations that were not seen are what Agresti and
Min 2005 ("Simple improved confidence intervals for comparing matched proportions") add to scenarios that pass or
fail; theirs lie about 0, these about the mean, which stays as it is.

The interval is the expanded percentile interval (Hesterberg 2015, "What Teachers Should Know About the
Bootstrap"): quantiles of the resampled ratios, taken further out by what n scenarios lack, so that for a mean it
is as wide as Student's. No resample of fewer than ten scenarios reaches far enough out: there it is Student's
interval, of the ratio to the first order. BCa does no better, and bootstrap-t breaks down on scores that are
mostly 1, whose resampled spread is often 0. docs/gate.md has how often it holds, `benchmarks/gate.py` the
simulation.
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
_FEWEST_RESAMPLES: Final = 2_000
_DRAWS: Final = 20_000_000
"""How many scenarios are drawn in all, as far as `_FEWEST_RESAMPLES` allows: of many, fewer resamples will do."""
_AT_ONCE: Final = 1_000_000
_FEW: Final = 10
_ROUNDING: Final = 1e-12


def ratio(changes: Values, counts: Values) -> float:
    """Σ changes ÷ Σ counts; where nothing counts, 0 if nothing changed, infinite else."""
    import numpy as np

    return float(_ratios(np.array([changes.sum()]), np.array([counts.sum()]))[0])


def ratio_interval(
    changes: Values, counts: Values, *, confidence: float, resamples: int | None = None, seed: int = 0
) -> tuple[float, float]:
    """The interval of Σ changes ÷ Σ counts. The same values, in the same order, give the same one.

    Without bounds of a single scenario, which says nothing of others, and of few where nothing counts.
    """
    import numpy as np

    n, estimate = len(changes), ratio(changes, counts)
    if n == 1 or (n < _FEW and estimate == inf):
        return -inf, inf
    if not counts.any() and not changes.any():
        return estimate, estimate
    tail = (1 - confidence) / 2
    most = _farthest(changes, counts, estimate)
    if n < _FEW:
        residuals = changes - estimate * counts
        spread = sqrt((residuals @ residuals + most**2) / (n * (n + 1)))
        half = student_quantile(1 - tail, n - 1) * spread / counts.mean()
        return float(estimate - half), float(estimate + half)
    count = resamples or max(_FEWEST_RESAMPLES, min(RESAMPLES, _DRAWS // n))
    resampled = np.sort(_resampled(changes, counts, most, count, seed))
    reach = sqrt((n + 1) / n) * student_quantile(1 - tail, n - 1)
    at = int(NormalDist().cdf(-reach) * count)
    return min(estimate, float(resampled[at])), max(estimate, float(resampled[count - 1 - at]))


def _farthest(changes: Values, counts: Values, estimate: float) -> float:
    """How far a scenario may be from the mean change: see the module."""
    import numpy as np

    residuals = changes - estimate * counts if estimate < inf else changes
    for seen in (residuals, changes):
        most = float(np.abs(seen).max())
        if most > _ROUNDING * counts.max():
            return most
    return float(counts.max())


def _resampled(changes: Values, counts: Values, most: float, count: int, seed: int) -> Values:
    """The ratio in each of `count` resamples with the two halves, made in pieces that fit into memory."""
    import numpy as np

    n, random, mean = len(changes), np.random.default_rng(seed), counts.mean()
    middle = ratio(changes, counts) * mean if mean else changes.mean()
    # Two that are drawn as often as others, and spread as much as two halves do.
    changes = np.append(changes, [middle + most / sqrt(2), middle - most / sqrt(2)])
    counts = np.append(counts, [mean, mean])
    rows = max(1, _AT_ONCE // n)
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
