"""The tipping point of a verdict: the number of further scenarios with the opposite change that would undo it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness.statistics.paired_difference import paired_difference
from harness.statistics.relative_change import PairedValues

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

    def holds(more: int) -> bool:
        found = paired_difference([*scenarios, *[opposite] * more])
        return found.p <= level and (found.estimate > 0) == (now.estimate > 0)

    high = 1
    while holds(high) and high < _MOST:
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high
