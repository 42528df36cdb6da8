"""A race: variants that are worse than another are stopped early, and run in no more scenarios.

Scenarios run in blocks. After each block, every variant is compared with every other one and the baseline, by a
test whose level holds at any number of looks (`harness.statistics.betting`), corrected for the number of pairs.
The probability that any variant is ever stopped by one that is no better is at most `LEVEL`.

The other half of the 5 % belongs to the verdicts at the end, whose `worse` side has 2.5 %: together 5 %. Stopping
some variants does not change the verdicts on the others: their results are unaffected, and the correction still
counts all variants.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple, TypeVar

from harness.report.formatting import p_value, plural
from harness.statistics.betting import Bets, anytime_interval

LEVEL: Final = 0.025
BLOCK: Final = 5
SEED: Final = 0

T = TypeVar("T")


class EarlyStop(NamedTuple):
    """The stop of a variant: the number of scenarios before it, the variant that beat it, the corrected p-value."""

    scenarios: int
    by: str
    p: float

    def __str__(self) -> str:
        scenarios = plural(self.scenarios, "scenario")
        return f"stopped after {scenarios}: beaten by {self.by} (p {p_value(self.p)})"


class Race:
    """Variants, the baseline first, and their scores so far.

    `heaviest` is the largest weight of a scenario; differences are divided by it, to lie between -1 and 1.
    """

    def __init__(self, names: Sequence[str], heaviest: float = 1.0) -> None:
        self.stopped: dict[str, EarlyStop] = {}
        self.scenarios = 0
        self._heaviest = heaviest
        self._names = tuple(names)
        others = self._names[1:]
        self._differences: dict[str, list[tuple[float, float]]] = {name: [] for name in others}
        self._bets = {
            (loser, winner): Bets() for loser, winner in product(others, self._names) if loser != winner
        }

    @property
    def running(self) -> list[str]:
        """The variants that were not stopped."""
        return [name for name in self._names if name not in self.stopped]

    def add(self, scores: Mapping[str, float | None], weight: float = 1.0) -> None:
        """Add the scores of a scenario, by variant; variants that did not run are missing.

        A score of None is of a variant that could not be judged: it counts as 0 beside one that was judged.
        """
        self.scenarios += 1
        for (loser, winner), bets in self._bets.items():
            if not self._heaviest or scores.get(loser) is scores.get(winner) is None:
                continue
            if loser in scores and winner in scores:
                difference = (scores[winner] or 0.0) - (scores[loser] or 0.0)
                bets.add(difference * weight / self._heaviest)
                if winner == self._names[0]:
                    self._differences[loser].append((-difference, weight / self._heaviest))

    def stop_beaten(self) -> None:
        """Stop the variants that are beaten by now."""
        for name in self.running[1:]:
            by, p = self.strongest_rival(name)
            if p <= LEVEL:
                self.stopped[name] = EarlyStop(self.scenarios, by, p)

    def strongest_rival(self, name: str) -> tuple[str, float]:
        """Return the variant that beats this one most clearly, and the corrected p-value of that."""
        p, by = min((bets.p, winner) for (loser, winner), bets in self._bets.items() if loser == name)
        return by, min(1.0, p * len(self._bets))

    def p_worse_than_baseline(self, name: str) -> float:
        """Return the corrected p-value of the variant being worse than the baseline."""
        return min(1.0, self._bets[name, self._names[0]].p * len(self._bets))

    def interval(self, name: str) -> tuple[float, float]:
        """Return the interval of its difference from the baseline, which excludes 0 if `worse` is significant."""
        return anytime_interval(self._differences[name], LEVEL / len(self._bets))


def random_blocks(items: Sequence[T]) -> list[list[T]]:
    """Return the items in random order, drawn with a fixed seed, in blocks of `BLOCK`."""
    order = random.Random(SEED).sample(range(len(items)), len(items))
    return [[items[at] for at in order[start : start + BLOCK]] for start in range(0, len(order), BLOCK)]
