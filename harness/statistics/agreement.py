"""Agreement of two raters who each say pass or fail: the share of equal ratings, and Cohen's kappa with an interval.

Kappa (Cohen 1960, "A Coefficient of Agreement for Nominal Scales") is the agreement beyond chance, given how
often each rater passes items. The textbook interval has zero width if the raters agree on everything, and is
too narrow for few items. Here it is a credible interval: the four shares have Jeffreys's prior, and kappa is
drawn from their posterior; `tests/statistics/test_agreement.py` checks its coverage by simulation.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

DRAWS: Final = 20_000
_SEED: Final = 1960
_PRIOR: Final = 0.5


class Ratings(NamedTuple):
    """Numbers of items by the verdicts of two raters; `first_passes` counts those that only the first passes."""

    both_pass: int
    first_passes: int
    second_passes: int
    both_fail: int

    @property
    def items(self) -> int:
        """The total number of items."""
        return sum(self)


def agreement(ratings: Ratings) -> float:
    """Return the share of items with equal ratings; there must be at least one item.

    >>> agreement(Ratings(3, 1, 0, 1))
    0.8
    """
    return (ratings.both_pass + ratings.both_fail) / ratings.items


def kappa(ratings: Ratings) -> float | None:
    """Return Cohen's kappa, -1 to 1; None if both rate all items the same, since chance would agree as well.

    >>> kappa(Ratings(20, 5, 10, 15))
    0.4
    """
    n = ratings.items
    first, second = ratings.both_pass + ratings.first_passes, ratings.both_pass + ratings.second_passes
    # In integers, so that perfect agreement gives exactly 1.
    by_chance = first * second + (n - first) * (n - second)
    if by_chance == n * n:
        return None
    return ((ratings.both_pass + ratings.both_fail) * n - by_chance) / (n * n - by_chance)


@lru_cache(maxsize=64)
def kappa_interval(ratings: Ratings) -> tuple[float, float]:
    """Return the 95 % interval of kappa. Swapping the raters, or pass and fail, does not change it."""
    import numpy as np

    a, b, c, d = ratings
    (a, d), (b, c) = sorted((a, d)), sorted((b, c))
    random = np.random.default_rng(_SEED)
    both, only_first, only_second, neither = random.dirichlet(np.add((a, b, c, d), _PRIOR), DRAWS).T
    first, second = both + only_first, both + only_second
    by_chance = first * second + (1 - first) * (1 - second)
    drawn = (both + neither - by_chance) / (1 - by_chance)
    low, high = (float(bound) for bound in np.quantile(drawn, (0.025, 0.975)))
    estimate = kappa(ratings)
    if estimate is None:
        return low, high
    return min(low, estimate), max(high, estimate)
