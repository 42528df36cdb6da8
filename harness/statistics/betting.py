"""A test whether a mean is above 0 that may be looked at after every observation: an anytime-valid p-value.

A gambler bets a share of the wealth on each difference, which lies between -1 and 1: the new wealth is `wealth
× (1 + share × difference)`. If the mean is 0 or less, the probability that the wealth ever reaches 1/p times
the initial wealth is at most p (Ville's inequality). So 1 ÷ the largest wealth so far is a p-value at any time
(Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", section 4). Several
gamblers bet different shares; the inequality holds for their mean wealth as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, log1p
from typing import Final

SHARES: Final = tuple(number / 8 for number in range(1, 8))


class Bets:
    """Bets that the mean of differences is above 0.

    >>> bets = Bets()
    >>> for _ in range(10):
    ...     bets.add(1.0)
    >>> round(bets.p, 3)
    0.007
    """

    def __init__(self) -> None:
        self.p = 1.0
        self._wealth = [0.0] * len(SHARES)  # logarithms

    def add(self, difference: float) -> None:
        """Add the next difference, from -1 to 1."""
        bounded = max(-1.0, min(1.0, difference))
        self._wealth = [
            have + log1p(share * bounded) for have, share in zip(self._wealth, SHARES, strict=True)
        ]
        most = max(self._wealth)
        together = most + log(sum(exp(each - most) for each in self._wealth) / len(SHARES))
        self.p = min(self.p, exp(-max(0.0, together)))


def anytime_interval(differences: Sequence[tuple[float, float]], level: float) -> tuple[float, float]:
    """Return the interval of the mean of differences, with confidence 1 - 2 × level at any number of looks.

    It contains the means that neither bet rejects at `level`: that the mean is above them, and that it is below. A
    difference is `(value, weight)`, the value from -1 to 1, the weight from 0 to 1.
    """

    def highest(sign: float) -> float:
        """Return the largest mean that a bet on smaller values does not reject, of values times `sign`."""
        low, high = -1.0, 1.0
        for _ in range(30):
            middle = (low + high) / 2
            bets = Bets()
            for value, weight in differences:
                bets.add(weight * (middle - sign * value) / (1 + abs(middle)))
            low, high = (low, middle) if bets.p <= level else (middle, high)
        return high

    return -highest(-1.0), highest(1.0)
