"""The rate of false positives: equal variants differ in at most 5 % of cases, whatever their number and scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from harness.statistics.paired_difference import holm, paired_difference
from harness.statistics.ratio_interval import PairedValues

Draw = np.random.Generator
SAMPLES = 200
MOST = 0.05 + 3 * (0.05 * 0.95 / SAMPLES) ** 0.5
"""5 %, and three standard errors for this number of samples."""


def passing(draw: Draw) -> Callable[[], float]:
    """A scenario that passes with a random probability."""
    chance = draw.random()
    return lambda: float(draw.random() < chance)


def nearly_always_passing(draw: Draw) -> Callable[[], float]:
    """A scenario that passes in 97 % of runs, so most pairs are ties."""
    return lambda: float(draw.random() < 0.97)


def three_checks(draw: Draw) -> Callable[[], float]:
    chance = draw.beta(6, 2)
    return lambda: draw.binomial(3, chance) / 3


def skewed(draw: Draw) -> Callable[[], float]:
    """A scenario with a good score in most runs and almost none in a few."""
    return lambda: draw.beta(0.3, 0.1)


def unequal(draw: Draw) -> Callable[[], float]:
    """A scenario with a random range of scores: a few scenarios dominate the mean."""
    size = draw.random() ** 6
    return lambda: size * draw.random()


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("kind", [passing, nearly_always_passing, three_checks, skewed, unequal])
def test_an_equal_variant_is_rarely_called_better(
    kind: Callable[[Draw], Callable[[], float]], repeats: int
) -> None:
    draw = np.random.default_rng(repeats)
    alarms = 0
    for _ in range(SAMPLES):
        sample = []
        for _ in range(12):
            run = kind(draw)
            sample.append(PairedValues([(run(), run()) for _ in range(repeats)], draw.choice([1.0, 3.0])))
        found = paired_difference(sample)
        alarms += found.p <= 0.05
    assert alarms / SAMPLES <= MOST


def test_of_five_equal_variants_one_is_rarely_called_better() -> None:
    draw = np.random.default_rng(5)

    def five() -> Iterator[list[PairedValues]]:
        chances = draw.random(12)
        baseline = draw.random(12) < chances
        for _ in range(5):
            variant = draw.random(12) < chances
            yield [PairedValues([(float(a), float(b))]) for a, b in zip(baseline, variant, strict=True)]

    alarms = 0
    for _ in range(SAMPLES):
        corrected = holm({str(at): paired_difference(each).p for at, each in enumerate(five())})
        alarms += min(corrected.values()) <= 0.05
    assert alarms / SAMPLES <= MOST
