"""The relative change of figures from one run to another, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from harness.statistics.ratio_interval import RatioEstimate, ratio_estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairedValues:
    """A scenario in two runs: its figure in each repeat, before and after, and its weight."""

    repeats: Sequence[tuple[float, float]]
    weight: float = 1.0


class Change(NamedTuple):
    """A relative change (0.1 is an increase by 10 %) and its interval; infinite if the figure was 0 before."""

    estimate: float
    low: float
    high: float
    ratio: RatioEstimate


def relative_change(
    scenarios: Sequence[PairedValues], *, confidence: float = 0.95, largest: float = inf
) -> Change:
    """Return Σ weight × mean after ÷ Σ weight × mean before - 1, with its interval.

    For a single scenario the repeats are the sample: the interval is of that scenario, not of others like it.

    Args:
        scenarios: the figures, which are not negative.
        confidence: that of the interval.
        largest: the largest value of the figure, 1 for scores; infinite for those without one.

    Raises:
        ValueError: there is no scenario, or one has no repeat.
    """
    import numpy as np

    scenarios = sampling_units(scenarios)
    weights = np.array([scenario.weight for scenario in scenarios], dtype=np.float64)
    before, after = means(scenarios) * weights
    ranges = (before + after) / 2 if largest == inf else largest * weights
    estimate = ratio_estimate(after - before, before, ranges)
    low, high = estimate.interval(confidence)
    # Figures are not negative, so a decrease is at most 100 %.
    return Change(estimate.value, max(-1.0, low) if len(scenarios) > 1 else low, high, estimate)


def sampling_units(scenarios: Sequence[PairedValues]) -> Sequence[PairedValues]:
    """Return the units of the sample: the scenarios, or the repeats of a single scenario.

    Raises:
        ValueError: there is no scenario, or one has no repeat.
    """
    if not scenarios or not all(scenario.repeats for scenario in scenarios):
        raise ValueError("every scenario needs a repeat before and after")
    return scenarios if len(scenarios) > 1 else [PairedValues([repeat]) for repeat in scenarios[0].repeats]


def means(scenarios: Sequence[PairedValues]) -> Values:
    """Return the mean over repeats of each scenario: a row for before, and one for after."""
    import numpy as np

    sums = [
        [sum(values) / len(scenario.repeats) for values in zip(*scenario.repeats, strict=True)]
        for scenario in scenarios
    ]
    return np.array(sums, dtype=np.float64).reshape(-1, 2).T
