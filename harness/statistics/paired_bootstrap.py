"""How much figures changed from one run to another, with an interval: the paired bootstrap over scenarios.

The interval is that of `harness.statistics.ratio_interval`. `benchmarks/gate.py` has what it takes, and how often it
holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from harness.statistics.ratio_interval import ratio, ratio_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Paired:
    """A scenario in two runs: a figure of each repeat before and after, and what the scenario weighs."""

    repeats: Sequence[tuple[float, float]]
    weight: float = 1.0


class Change(NamedTuple):
    """A relative change, 0.1 for a tenth more, and its interval; infinite where nothing became something."""

    estimate: float
    low: float
    high: float


def relative_change(scenarios: Sequence[Paired]) -> float:
    """Σ weight × mean after ÷ Σ weight × mean before - 1; 0 where both are 0, infinite where only the first is."""
    before, after = _totals(scenarios)
    return ratio(after - before, before)


def resampled(scenarios: Sequence[Paired]) -> Sequence[Paired]:
    """What an interval is drawn from: the scenarios, or the repeats of a single one.

    Raises:
        ValueError: there is no scenario, or one has no repeat.
    """
    if not scenarios or not all(scenario.repeats for scenario in scenarios):
        raise ValueError("every scenario needs a repeat before and after")
    return scenarios if len(scenarios) > 1 else [Paired([repeat]) for repeat in scenarios[0].repeats]


def paired_bootstrap(
    scenarios: Sequence[Paired], *, confidence: float = 0.95, resamples: int | None = None, seed: int = 0
) -> Change:
    """The relative change and its interval. The same scenarios, in the same order, give the same one.

    Of a single scenario its repeats are resampled: the interval is of that scenario, not of others like it.

    Raises:
        ValueError: there is no scenario, or one has no repeat.
    """
    scenarios = resampled(scenarios)
    before, after = _totals(scenarios)
    change = ratio(after - before, before)
    low, high = ratio_interval(after - before, before, confidence=confidence, resamples=resamples, seed=seed)
    # A figure of nothing is 100 % less; none is negative.
    return Change(change, max(-1.0, low) if len(scenarios) > 1 else low, high)


def _totals(scenarios: Sequence[Paired]) -> tuple[Values, Values]:
    """Weight × mean over repeats of each scenario, before and after."""
    import numpy as np

    sums = [
        [
            scenario.weight * sum(values) / len(scenario.repeats)
            for values in zip(*scenario.repeats, strict=True)
        ]
        for scenario in scenarios
    ]
    before, after = np.array(sums, dtype=np.float64).reshape(-1, 2).T
    return before, after
