"""Whether a mean is above 0, asked after every scenario: a test whose level holds however often one looks.

Someone bets a share of what they have on each difference, which is between -1 and 1: they then have
`wealth × (1 + share × difference)`. Where the mean is 0 or less nobody gets rich: with a probability of at most p is
1/p times what they began with ever reached (Ville's inequality). So 1 ÷ the most they ever had is a p-value at any
time (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", section 4). Several
bet, each another share; what they have together is as safe.
"""

from __future__ import annotations

from math import exp, log, log1p
from typing import Final

SHARES: Final = tuple(number / 8 for number in range(1, 8))


class Bets:
    """Bets that differences are above 0 on average.

    >>> bets = Bets()
    >>> for _ in range(10):
    ...     bets.add(1.0)
    >>> round(bets.p, 3)
    0.008
    """

    def __init__(self) -> None:
        self.p = 1.0
        self._wealth = [0.0] * len(SHARES)  # logarithms

    def add(self, difference: float) -> None:
        """See the next difference, from -1 to 1."""
        bounded = max(-1.0, min(1.0, difference))
        self._wealth = [
            have + log1p(share * bounded) for have, share in zip(self._wealth, SHARES, strict=True)
        ]
        most = max(self._wealth)
        together = most + log(sum(exp(each - most) for each in self._wealth) / len(SHARES))
        self.p = min(self.p, exp(-max(0.0, together)))
