"""How much the mean score of scenarios differs between two variants, how sure that is, and what would make it surer.

The interval is that of `harness.statistics.paired_bootstrap`: scenarios are resampled, each with all its repeats, and
the percentiles are expanded. The p-value is that of the sign-flip test: if the variants are equal, each scenario's
difference could as well have had the other sign. It is exact for up to fourteen scenarios that differ, and its false
alarms are at most as many as its level, however scores are distributed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import ceil, inf, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.statistics.paired_bootstrap import Paired, student_quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

_FEW: Final = 10
_EXACT: Final = 14
_AT_ONCE: Final = 1_000_000
_ROUNDING: Final = 1e-12
POWER: Final = 0.8


class Difference(NamedTuple):
    """Σ weight × (mean after - mean before) ÷ Σ weight, the interval it lies in, and the chance of it among equals.

    scenarios  how many there are
    needed     how many more like these would show it with a power of 80 %; 0 if these do, None where nothing differs
    """

    estimate: float
    low: float
    high: float
    p: float
    scenarios: int
    needed: int | None


def paired_difference(
    scenarios: Sequence[Paired], *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Difference:
    """The difference of scores. The same scenarios, in the same order, give the same one.

    Of a single scenario its repeats count: the interval is of that scenario, not of others like it.

    Raises:
        ValueError: there is no scenario, or one has no repeat.
    """
    import numpy as np

    if not scenarios or not all(scenario.repeats for scenario in scenarios):
        raise ValueError("every scenario needs a repeat of both variants")
    if len(scenarios) == 1:
        scenarios = [Paired([repeat]) for repeat in scenarios[0].repeats]
    weights = np.array([scenario.weight for scenario in scenarios], dtype=np.float64)
    changes = np.array([_mean_change(scenario) for scenario in scenarios], dtype=np.float64)
    n = len(scenarios)
    if not changes.any():
        return Difference(0.0, 0.0, 0.0, 1.0, n, None)
    estimate = float(weights @ changes / weights.sum())
    if n == 1:
        return Difference(estimate, -inf, inf, 1.0, n, None)
    random = np.random.default_rng(seed)
    deviations = (changes - estimate) * weights * n / weights.sum()
    spread = float(np.sqrt(deviations @ deviations / (n - 1)))
    if n < _FEW:
        half = student_quantile((1 + confidence) / 2, n - 1) * spread / sqrt(n)
        low, high = estimate - half, estimate + half
    else:
        low, high = _percentiles(changes, weights, confidence, resamples, random)
    p = _sign_flips(weights * changes, resamples, random)
    return Difference(estimate, low, high, p, n, _needed(estimate, spread, n, 1 - confidence))


def _mean_change(scenario: Paired) -> float:
    before, after = (sum(values) / len(values) for values in zip(*scenario.repeats, strict=True))
    return after - before if abs(after - before) > _ROUNDING else 0.0


def _percentiles(
    changes: Values, weights: Values, confidence: float, resamples: int, random: np.random.Generator
) -> tuple[float, float]:
    """The expanded percentile interval of the weighted mean."""
    import numpy as np

    n, pieces = len(changes), []
    rows = max(1, _AT_ONCE // n)
    for start in range(0, resamples, rows):
        drawn = random.integers(0, n, (min(rows, resamples - start), n))
        pieces.append((weights * changes)[drawn].sum(axis=1) / weights[drawn].sum(axis=1))
    resampled = np.sort(np.concatenate(pieces))
    tail = NormalDist().cdf(-sqrt(n / (n - 1)) * student_quantile((1 + confidence) / 2, n - 1))
    at = int(tail * resamples)
    return float(resampled[at]), float(resampled[resamples - 1 - at])


def _sign_flips(changes: Values, resamples: int, random: np.random.Generator) -> float:
    """How often changes with random signs add up to as much as these do, or more, in either direction."""
    import numpy as np

    changes = changes[changes != 0]
    least = abs(changes.sum()) - _ROUNDING
    if len(changes) <= _EXACT:
        flips = np.array(list(product((-1.0, 1.0), repeat=len(changes))))
        return float((np.abs(flips @ changes) >= least).mean())
    hits, rows = 0, max(1, _AT_ONCE // len(changes))
    for start in range(0, resamples, rows):
        flips = random.integers(0, 2, (min(rows, resamples - start), len(changes))) * 2.0 - 1
        hits += int((np.abs(flips @ changes) >= least).sum())
    return (hits + 1) / (resamples + 1)


def _needed(estimate: float, spread: float, n: int, alpha: float) -> int | None:
    if not estimate:
        return None
    reach = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(POWER)
    return max(0, ceil((reach * spread / estimate) ** 2) - n)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """The p-values corrected for how many there are (Holm 1979, "A Simple Sequentially Rejective Test Procedure").

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.5})
    {'a': 0.03, 'b': 0.08, 'c': 0.5}
    """
    corrected: dict[str, float] = {}
    largest = 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, p * (len(p_values) - rank)))
        corrected[name] = largest
    return {name: corrected[name] for name in p_values}
