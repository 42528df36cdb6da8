"""The difference in mean score between two variants, with a p-value and the interval that inverts its test.

A difference is significant if two tests agree:

- The sign-flip test of equal variants: if they are equal, each scenario's difference is equally likely to have
  the other sign. It is exact for up to fourteen scenarios that differ, and its rate of false positives is at
  most its level, whatever the distribution of scores. If all differences have the same size, as with scores of
  0 and 1, it is McNemar's test, and p counts half of the sign choices that are as extreme as the observed one
  (mid-p: Fagerland, Lydersen and Laake 2013, "The McNemar test for binary matched-pairs data: mid-p and
  asymptotic are better than exact conditional"). p is at least 2 ÷ 2^n, so that fewer than six scenarios are
  never significant.
- Student's test of a mean of 0 (`harness.statistics.ratio_interval`), which allows for scenarios that the
  sample lacks: a variant that gains a little everywhere may break one scenario in twenty.

p is the larger of the two. The interval contains the differences that Student's test does not reject, and 0 unless
both tests reject it; so it excludes 0 exactly if the difference is significant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import comb, exp, fsum, inf, ldexp, lgamma, log, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.statistics.ratio_interval import (
    PairedValues,
    RatioEstimate,
    least_number,
    means,
    ratio_estimate,
    sampling_units,
)

if TYPE_CHECKING:
    import numpy as np

    from harness.statistics.ratio_interval import Values

ALPHA: Final = 0.05
_EXACT: Final = 14
_DRAWS: Final = 10_000
_MIN_DRAWS: Final = 2_000
_SIGNS: Final = 20_000_000
"""Maximum number of drawn signs, as far as `_MIN_DRAWS` allows."""
_CHUNK_SIZE: Final = 1_000_000
_SEED: Final = 0
_ROUNDING: Final = 1e-12
"""Difference of scores, or of sums of the largest change, below which they count as equal."""


@dataclass(frozen=True)
class Difference:
    """A difference of means: Σ weight × (mean after - mean before) ÷ Σ weight, of scores from 0 to 1."""

    estimate: float
    p: float
    scenarios: int
    _student: RatioEstimate

    @property
    def low(self) -> float:
        """The lower end of the 95 % interval."""
        return self.interval()[0]

    @property
    def high(self) -> float:
        """The upper end of the 95 % interval."""
        return self.interval()[1]

    def interval(self, level: float = ALPHA) -> tuple[float, float]:
        """Return the interval with confidence 1 - `level`, which excludes 0 if and only if p ≤ `level`.

        It is unbounded for a single scenario, which allows no conclusion about others.
        """
        low, high = self._student.interval(1 - level)
        if low == -inf:
            return low, high
        if self.p > level:
            low, high = min(low, 0.0), max(high, 0.0)
        return max(-1.0, low), min(1.0, high)


def paired_difference(scenarios: Sequence[PairedValues]) -> Difference:
    """Return the difference of scores from 0 to 1, deterministic for the same scenarios in the same order.

    For a single scenario the repeats are the sample: the interval is of that scenario, not of others like it.

    Raises:
        ValueError: there is no scenario, or one has no repeat.
    """
    scenarios = sampling_units(scenarios)
    weights, changes = weighted_changes(scenarios)
    student = ratio_estimate(changes, weights, weights)
    p = max(student.p(), sign_flip_p(changes[weights > 0]))
    return Difference(student.value, p, len(scenarios), student)


def weighted_changes(scenarios: Sequence[PairedValues]) -> tuple[Values, Values]:
    """Return the weight of each scenario, and weight × (mean after - mean before)."""
    import numpy as np

    weights = np.array([scenario.weight for scenario in scenarios], dtype=np.float64)
    before, after = means(scenarios)
    changes = after - before
    changes[np.abs(changes) <= _ROUNDING] = 0.0
    return weights, weights * changes


def sign_flip_p(changes: Values) -> float:
    """Return the p-value of changes whose signs are random: the share of sign choices with as large a sum.

    It does not depend on their scale.
    """
    import numpy as np

    n, largest = len(changes), float(np.abs(changes).max(initial=0.0))
    changes = changes[changes != 0] / (largest or 1.0)
    if np.abs(changes).min(initial=1.0) > 1 - _ROUNDING:
        found = _mid_p(int((changes > 0).sum()), len(changes))
    else:
        found = _sign_flips(changes, np.random.default_rng(_SEED))
    return max(found, ldexp(2.0, -n)) if n > 1 else 1.0


def _mid_p(positive: int, n: int) -> float:
    """Return the p-value of `positive` among n signs, with half of the probability of that number itself."""
    most = max(positive, n - positive)

    def probability(number: int) -> float:
        if n < 1_000:
            return ldexp(float(comb(n, number)), -n)
        return exp(lgamma(n + 1) - lgamma(number + 1) - lgamma(n - number + 1) - n * log(2))

    above = fsum(probability(number) for number in range(most + 1, n + 1))
    return min(1.0, 2 * above + probability(most))


def _sign_flips(changes: Values, random: np.random.Generator) -> float:
    """Return the share of sign choices for which the changes add up to at least as much, in either direction."""
    import numpy as np

    least = abs(changes.sum()) - _ROUNDING * len(changes)
    if len(changes) <= _EXACT:
        return float((np.abs(_all_signs(len(changes)) @ changes) >= least).mean())
    draws = max(_MIN_DRAWS, min(_DRAWS, _SIGNS // len(changes)))
    hits, rows = 0, max(1, _CHUNK_SIZE // len(changes))
    for start in range(0, draws, rows):
        flips = random.integers(0, 2, (min(rows, draws - start), len(changes))) * 2.0 - 1
        hits += int((np.abs(flips @ changes) >= least).sum())
    return (hits + 1) / (draws + 1)


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


def holm_levels(p_values: Mapping[str, float], alpha: float = ALPHA) -> dict[str, float]:
    """Return the level of each test: its p-value is at most this if and only if the corrected one is at most `alpha`.

    >>> holm_levels({"a": 0.01, "b": 0.04, "c": 0.5}, 0.06)
    {'a': 0.02, 'b': 0.03, 'c': 0.03}
    """
    levels: dict[str, float] = {}
    level, rejects = alpha, True
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        if rejects:  # all that follow the first test that does not reject have its level
            level = alpha / (len(p_values) - rank)
            rejects = p <= level
        levels[name] = level
    return {name: levels[name] for name in p_values}


class Risk(NamedTuple):
    """The standard deviations of the scores of scenarios before and after, and the p-value of their difference."""

    before: float
    after: float
    p: float


def greater_risk(scenarios: Sequence[PairedValues], level: float) -> Risk | None:
    """Return the risk if scores spread more after than before, significantly at `level`; None otherwise."""
    scores = means(scenarios)
    before, after = (scores - scores.mean(axis=1, keepdims=True)) ** 2
    p = sign_flip_p(after - before)
    if p > level or after.sum() <= before.sum():
        return None
    return Risk(sqrt(before.mean()), sqrt(after.mean()), p)


_MOST: Final = 1_000_000


def tipping_point(scenarios: Sequence[PairedValues], level: float) -> int | None:
    """Return the number; the further scenarios have the mean weight. None for a single scenario.

    Raises:
        ValueError: the difference is not significant at `level`.
    """
    if len(scenarios) == 1:
        return None
    now = paired_difference(scenarios)
    if now.p > level:
        raise ValueError("there is no verdict to undo")
    weight = sum(each.weight for each in scenarios) / len(scenarios)
    opposite = PairedValues([(1.0, 0.0) if now.estimate > 0 else (0.0, 1.0)], weight)

    def is_undone(more: int) -> bool:
        found = paired_difference([*scenarios, *[opposite] * more])
        return found.p > level or (found.estimate > 0) != (now.estimate > 0)

    return least_number(is_undone, first=1, most=_MOST)
