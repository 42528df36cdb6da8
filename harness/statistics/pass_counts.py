"""Tests whether scenarios pass less often than before, from the numbers of passes in two runs.

The test of one scenario is Boschloo's exact test, one-sided (Boschloo 1970, "Raised conditional level of
significance for the 2 × 2 table when testing the equality of two probabilities"): the p-value of Fisher's exact
test is used as the statistic, and the largest probability of a value as small, over all pass rates that the two
runs may share, is the p-value. It is exact for any pass rate, and more powerful than Fisher's: five passes of
five and then none have p = 0.001 instead of 0.004.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.statistics.paired_difference import holm, sign_flip_p

if TYPE_CHECKING:
    from harness.statistics.ratio_interval import Values

_RATES: Final = 501
_MOST_TABLES: Final = 10_000
"""Number of possible results up to which the largest probability is computed; beyond, Fisher's p-value is as good."""


class PassCounts(NamedTuple):
    """The numbers of passes of a scenario, and of its runs, before and after."""

    passed_before: int
    before: int
    passed_after: int
    after: int

    @property
    def change(self) -> float:
        """The change of the share that passes."""
        return self.passed_after / self.after - self.passed_before / self.before

    @property
    def is_flaky(self) -> bool:
        """True if in both runs some repeats passed, and some did not."""
        return 0 < self.passed_before < self.before and 0 < self.passed_after < self.after


def significantly_fewer(counts: Sequence[PassCounts], alpha: float) -> set[int]:
    """Return the numbers of the scenarios that pass less often after than chance explains.

    These are all that pass less often if the scenarios do together (the sign-flip test of their changes), or
    else those that do each by itself (corrected with Holm's method). Each of the two has half of `alpha`.
    """
    import numpy as np

    lower = {at for at, each in enumerate(counts) if each.change < 0}
    changes = np.array([each.change for each in counts])
    # The sign-flip test has two sides, and only one of them matters here.
    if lower and changes.sum() < 0 and sign_flip_p(changes) <= alpha:
        return lower
    p_values = holm({str(at): fewer_passes_p(*each) for at, each in enumerate(counts)})
    return {at for at in lower if p_values[str(at)] <= alpha / 2}


@lru_cache(maxsize=10_000)
def fewer_passes_p(passed_before: int, runs_before: int, passed_after: int, runs_after: int) -> float:
    """Return the p-value of passing less often after than before.

    >>> round(fewer_passes_p(5, 5, 0, 5), 4), round(fewer_passes_p(1, 1, 0, 1), 2)
    (0.001, 0.25)
    """
    import numpy as np

    observed = _fisher(passed_before, runs_before, passed_after, runs_after)
    if (runs_before + 1) * (runs_after + 1) > _MOST_TABLES or observed == 1.0:
        return observed
    as_extreme = np.array(
        [
            [
                _fisher(before, runs_before, after, runs_after) <= observed * (1 + 1e-9)
                for after in range(runs_after + 1)
            ]
            for before in range(runs_before + 1)
        ],
        dtype=np.float64,
    )
    rates = np.linspace(0, 1, _RATES)
    probabilities = ((_binomial(runs_before, rates).T @ as_extreme) * _binomial(runs_after, rates).T).sum(
        axis=1
    )
    return float(min(1.0, probabilities.max()))


def _fisher(passed_before: int, runs_before: int, passed_after: int, runs_after: int) -> float:
    """Return the one-sided p-value of Fisher's exact test: of at most as many passes after, for the same total."""
    passed = passed_before + passed_after
    least = max(0, passed - runs_before)
    found = sum(
        comb(runs_after, after) * comb(runs_before, passed - after)
        for after in range(least, passed_after + 1)
    )
    return found / comb(runs_before + runs_after, passed)


def _binomial(runs: int, rates: Values) -> Values:
    """Return the probability of each number of passes, one per row, for each rate."""
    import numpy as np

    numbers = np.arange(runs + 1)[:, None]
    ways = np.array([float(comb(runs, number)) for number in range(runs + 1)])[:, None]
    return np.asarray(ways * rates**numbers * (1 - rates) ** (runs - numbers))
