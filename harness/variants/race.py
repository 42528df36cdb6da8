"""A race: variants that are already beaten are stopped, and are run through no more scenarios.

Scenarios run in blocks. After each, every variant is held against every other one and the baseline, by a test whose
level holds at any number of looks (`harness.statistics.betting`), corrected for the number of these pairs. With a
probability of at most `LEVEL` any variant is ever stopped by one that is no better.

The rest of the error belongs to the verdicts at the end, a half of whose 5 % is on the side of `worse`: together
5 %. They stay as they are for those that are left: that others were stopped does not change what these came to, and
the correction still counts all.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple, TypeVar

from harness.report.formatting import p_value, plural
from harness.statistics.betting import Bets

LEVEL: Final = 0.025
BLOCK: Final = 5
SEED: Final = 0

T = TypeVar("T")


class Stopped(NamedTuple):
    """A variant that was stopped: after so many scenarios, beaten by which one, with which corrected p-value."""

    scenarios: int
    by: str
    p: float

    def __str__(self) -> str:
        scenarios = plural(self.scenarios, "scenario")
        return f"stopped after {scenarios}: beaten by {self.by} (p {p_value(self.p)})"


class Race:
    """Variants, the baseline first, and the scores they have so far.

    `heaviest` is the largest weight of a scenario: differences are bets in parts of it.
    """

    def __init__(self, names: Sequence[str], heaviest: float = 1.0) -> None:
        self.stopped: dict[str, Stopped] = {}
        self.scenarios = 0
        self._heaviest = heaviest
        self._names = tuple(names)
        others = self._names[1:]
        self._bets = {
            (loser, winner): Bets() for loser, winner in product(others, self._names) if loser != winner
        }

    @property
    def running(self) -> list[str]:
        """The variants that were not stopped."""
        return [name for name in self._names if name not in self.stopped]

    def add(self, scores: Mapping[str, float], weight: float = 1.0) -> None:
        """See the scores of a scenario, by variant: those that were judged in it."""
        self.scenarios += 1
        for (loser, winner), bets in self._bets.items():
            if loser in scores and winner in scores and self._heaviest:
                bets.add((scores[winner] - scores[loser]) * weight / self._heaviest)

    def look(self) -> None:
        """Stop those that are beaten by now."""
        for name in self.running[1:]:
            by, p = self.standing(name)
            if p <= LEVEL:
                self.stopped[name] = Stopped(self.scenarios, by, p)

    def standing(self, name: str) -> tuple[str, float]:
        """Which one a variant is most clearly beaten by, and the corrected p-value of that."""
        p, by = min((bets.p, winner) for (loser, winner), bets in self._bets.items() if loser == name)
        return by, min(1.0, p * len(self._bets))

    def against_baseline(self, name: str) -> float:
        """The corrected p-value of a variant being worse than the baseline."""
        return min(1.0, self._bets[name, self._names[0]].p * len(self._bets))


def in_blocks(items: Sequence[T]) -> list[list[T]]:
    """The items in the order they run in, which is drawn by a seed that is always the same, in blocks."""
    order = random.Random(SEED).sample(range(len(items)), len(items))
    return [[items[at] for at in order[start : start + BLOCK]] for start in range(0, len(order), BLOCK)]
