"""The relative change of figures from one run to another, with an interval: a paired bootstrap over scenarios.

The interval is that of `harness.statistics.ratio_interval`. `benchmarks/gate.py` measures its time and coverage.
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
class PairedValues:
    """A scenario in two runs: its figure in each repeat, before and after, and its weight."""

    repeats: Sequence[tuple[float, float]]
    weight: float = 1.0


class Change(NamedTuple):
    """A relative change (0.1 is an increase by 10 %) and its interval; infinite if the figure was 0 before."""

    estimate: float
    low: float
    high: float


def relative_change(scenarios: Sequence[PairedValues]) -> float:
    """Return Σ weight × mean after ÷ Σ weight × mean before - 1.

    If Σ before is 0, it is 0 if Σ after is 0 as well, and infinite otherwise.
    """
    before, after = _totals(scenarios)
    return ratio(after - before, before)


def resampling_units(scenarios: Sequence[PairedValues]) -> Sequence[PairedValues]:
    """Return the units to resample: the scenarios, or the repeats of a single scenario.

    Raises:
        ValueError: there is no scenario, or one has no repeat.
    """
    if not scenarios or not all(scenario.repeats for scenario in scenarios):
        raise ValueError("every scenario needs a repeat before and after")
    return scenarios if len(scenarios) > 1 else [PairedValues([repeat]) for repeat in scenarios[0].repeats]


def paired_bootstrap(
    scenarios: Sequence[PairedValues],
    *,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
) -> Change:
    """Return the relative change and its interval, deterministic for the same scenarios in the same order.

    For a single scenario its repeats are resampled: the interval is of that scenario, not of others like it.

    Raises:
        ValueError: there is no scenario, or one has no repeat.
    """
    scenarios = resampling_units(scenarios)
    before, after = _totals(scenarios)
    change = ratio(after - before, before)
    low, high = ratio_interval(after - before, before, confidence=confidence, resamples=resamples, seed=seed)
    # Figures are not negative, so a decrease is at most 100 %.
    return Change(change, max(-1.0, low) if len(scenarios) > 1 else low, high)


def _totals(scenarios: Sequence[PairedValues]) -> tuple[Values, Values]:
    """Return weight × mean over repeats of each scenario, before and after."""
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
