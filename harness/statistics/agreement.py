"""How far two raters agree who each say pass or fail: agreement, and Cohen's kappa with an interval.

Kappa (Cohen 1960, "A Coefficient of Agreement for Nominal Scales") is the agreement beyond what two raters would have
by chance who pass as many as these do. The textbook's interval of it has no width where they agree in everything, and
is too narrow for few items. Here it is a credible interval: the four shares have Jeffreys's prior, and kappa is drawn
from what the counts leave possible; `tests/statistics/test_agreement.py` holds its coverage against simulation.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

DRAWS: Final = 20_000
_SEED: Final = 1960
_PRIOR: Final = 0.5


class Ratings(NamedTuple):
    """How many items two raters pass and fail; `first_passes` are those that only the first passes."""

    both_pass: int
    first_passes: int
    second_passes: int
    both_fail: int

    @property
    def items(self) -> int:
        """How many there are."""
        return sum(self)


def agreement(ratings: Ratings) -> float:
    """The share that both rate alike; there has to be one item.

    >>> agreement(Ratings(3, 1, 0, 1))
    0.8
    """
    return (ratings.both_pass + ratings.both_fail) / ratings.items


def kappa(ratings: Ratings) -> float | None:
    """Cohen's kappa, -1 to 1; None where both rate all items the same, which chance would do as well.

    >>> kappa(Ratings(20, 5, 10, 15))
    0.4
    """
    n = ratings.items
    first, second = ratings.both_pass + ratings.first_passes, ratings.both_pass + ratings.second_passes
    # In whole numbers, so that perfect agreement is exactly 1.
    by_chance = first * second + (n - first) * (n - second)
    if by_chance == n * n:
        return None
    return ((ratings.both_pass + ratings.both_fail) * n - by_chance) / (n * n - by_chance)


@lru_cache(maxsize=64)
def kappa_interval(ratings: Ratings) -> tuple[float, float]:
    """The 95 % interval of kappa. It is the same whichever rater is the first, and whichever word is `pass`."""
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
