"""The difference in mean score of scenarios between two variants, with an interval and a p-value.

The interval is that of `harness.statistics.ratio_interval`. The p-value is that of the sign-flip test: if the
variants are equal, each scenario's difference is equally likely to have the other sign. The test is exact for
up to fourteen scenarios that differ, and its rate of false positives is at most its level, whatever the
distribution of scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.statistics.paired_bootstrap import PairedValues, resampling_units
from harness.statistics.ratio_interval import ratio_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

_EXACT: Final = 14
_CHUNK_SIZE: Final = 1_000_000
_ROUNDING: Final = 1e-12


class Difference(NamedTuple):
    """A difference of means: Σ weight × (mean after - mean before) ÷ Σ weight, with its interval and p-value."""

    estimate: float
    low: float
    high: float
    p: float
    scenarios: int


def paired_difference(
    scenarios: Sequence[PairedValues], *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Difference:
    """Return the difference of scores from 0 to 1, deterministic for the same scenarios in the same order.

    For a single scenario its repeats are resampled: the interval is of that scenario, not of others like it.

    Raises:
        ValueError: there is no scenario, or one has no repeat.
    """
    import numpy as np

    scenarios = resampling_units(scenarios)
    weights, changes = weighted_changes(scenarios)
    estimate = float(changes.sum() / weights.sum())
    low, high = ratio_interval(changes, weights, confidence=confidence, resamples=resamples, seed=seed)
    if low > -inf:
        low, high = max(-1.0, low), min(1.0, high)
    p = _sign_flips(changes, resamples, np.random.default_rng(seed))
    return Difference(estimate, low, high, p, len(scenarios))


def weighted_changes(scenarios: Sequence[PairedValues]) -> tuple[Values, Values]:
    """Return the weight of each scenario, and weight × (mean after - mean before)."""
    import numpy as np

    weights = np.array([scenario.weight for scenario in scenarios], dtype=np.float64)
    changes = np.array([_mean_change(scenario) for scenario in scenarios], dtype=np.float64)
    return weights, weights * changes


def _mean_change(scenario: PairedValues) -> float:
    before, after = (sum(values) / len(values) for values in zip(*scenario.repeats, strict=True))
    return after - before if abs(after - before) > _ROUNDING else 0.0


def _sign_flips(changes: Values, resamples: int, random: np.random.Generator) -> float:
    """Return the share of sign choices for which the changes add up to at least as much, in either direction."""
    import numpy as np

    changes = changes[changes != 0]
    least = abs(changes.sum()) - _ROUNDING
    if len(changes) <= _EXACT:
        return float((np.abs(_all_signs(len(changes)) @ changes) >= least).mean())
    hits, rows = 0, max(1, _CHUNK_SIZE // len(changes))
    for start in range(0, resamples, rows):
        flips = random.integers(0, 2, (min(rows, resamples - start), len(changes))) * 2.0 - 1
        hits += int((np.abs(flips @ changes) >= least).sum())
    return (hits + 1) / (resamples + 1)


@cache
def _all_signs(number: int) -> Values:
    """Return every combination of signs of that many values, one per row."""
    import numpy as np

    return np.array(list(product((-1.0, 1.0), repeat=number)))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return the p-values corrected for multiple tests (Holm 1979, "A Simple Sequentially Rejective Test Procedure").

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.5})
    {'a': 0.03, 'b': 0.08, 'c': 0.5}
    """
    corrected: dict[str, float] = {}
    largest = 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, p * (len(p_values) - rank)))
        corrected[name] = largest
    return {name: corrected[name] for name in p_values}
