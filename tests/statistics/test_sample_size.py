"""The recommended number of scenarios, or of repeats, has the promised power of 80 %."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.statistics.paired_difference import paired_difference
from harness.statistics.ratio_interval import PairedValues
from harness.statistics.sample_size import NewSample, new_sample

FIVE = 0.05 / 5
"""The level of the smallest of five p-values after Holm's correction."""

# Pairs of scores before and after; the mean difference is 0.1.
INDEPENDENT = [(1, 1)] * 21 + [(0, 1)] * 14 + [(1, 0)] * 9 + [(0, 0)] * 6
ALIKE = [(1, 1)] * 11 + [(0, 1)] * 3 + [(1, 0)] * 1 + [(0, 0)] * 5
SKEWED = [(1.0, 0.9)] * 6 + [(0, 0.8)] * 2 + [(0.5, 0.5)] * 2
PARTIAL = [(0.5, 0.75)] * 3 + [(0.75, 0.5)] + [(0.25, 0.75)] + [(0.75, 0.75)] * 5
ONLY_BETTER = [(1, 1)] * 6 + [(0, 1)] + [(0, 0)] * 3
SOURCE = np.random.default_rng


def once(*values: tuple[float, float]) -> list[PairedValues]:
    return [PairedValues([value]) for value in values]


def share_shown(samples: list[list[PairedValues]], level: float) -> float:
    return sum(paired_difference(sample).p <= level for sample in samples) / len(samples)


@pytest.mark.parametrize("level", [0.05, FIVE])
@pytest.mark.parametrize(
    ("like", "at_most"),
    [
        pytest.param(INDEPENDENT, 0.9, id="independent"),
        pytest.param(ALIKE, 0.9, id="alike"),
        pytest.param(SKEWED, 0.97, id="skewed"),
        pytest.param(PARTIAL, 0.97, id="partial"),
        pytest.param(ONLY_BETTER, 1, id="only better"),
    ],
)
def test_the_recommended_number_of_scenarios_has_a_power_of_80_percent(
    like: list[tuple[float, float]], at_most: float, level: float
) -> None:
    """80 % of 100 samples, less 12 % for chance; the power may be higher if most changes have one direction."""
    asked = new_sample(once(*like), level)
    assert asked is not None
    assert asked.scenarios is not None
    draw = SOURCE(1)
    samples = [once(*(like[at] for at in draw.integers(0, len(like), asked.scenarios))) for _ in range(100)]
    assert 0.68 <= share_shown(samples, level) <= at_most


def test_the_recommended_number_of_repeats_has_a_power_of_80_percent() -> None:
    """Scenarios with random outcomes, whose pass rates rise by about 0.1 each."""
    draw = SOURCE(2)

    def sample(repeats: int) -> list[PairedValues]:
        def passes(chance: float) -> float:
            return float(draw.random() < chance)

        chances = [(before, before + draw.normal(0.1, 0.05)) for before in draw.uniform(0.3, 0.7, 40)]
        return [
            PairedValues([(passes(before), passes(after)) for _ in range(repeats)])
            for before, after in chances
        ]

    pilots = [new_sample(sample(5), 0.05) for _ in range(60)]
    asked = [each.repeats for each in pilots if each and each.repeats]
    assert len(asked) >= 25
    more = round(median(asked))
    assert 0.68 <= share_shown([sample(more) for _ in range(100)], 0.05) <= 0.95


def test_repeats_are_recommended_only_if_they_vary_more_than_scenarios() -> None:
    alike = [PairedValues([value] * 3) for value in ALIKE]
    assert new_sample(alike, 0.05) == new_sample(once(*ALIKE), 0.05)

    unsteady = [PairedValues([(0, 1), (1, 0), (0, 1)]), PairedValues([(0, 1), (1, 1), (1, 0)])] * 10
    found = new_sample(unsteady, 0.05)
    assert found is not None
    assert found.repeats is not None


def test_a_single_scenario_needs_repeats_only() -> None:
    assert new_sample([PairedValues(ALIKE)], 0.05) == NewSample(
        None, (new_sample(once(*ALIKE), 0.05) or NewSample(0, 0)).scenarios
    )
    assert new_sample(once((0, 1)), 0.05) is None


def test_without_a_mean_difference_no_number_is_recommended() -> None:
    assert new_sample(once((1, 1), (0, 0)), 0.05) is None
    assert new_sample(once((1, 0), (0, 1)), 0.05) is None


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=12),
    st.floats(0.001, 0.05),
    st.floats(0.001, 0.05),
)
def test_a_stricter_level_never_needs_fewer_scenarios(
    values: list[tuple[float, float]], a: float, b: float
) -> None:
    strict, lenient = (new_sample(once(*values), level) for level in sorted((a, b)))
    if strict is None or lenient is None:
        assert strict == lenient
    else:
        assert (strict.scenarios or 0) >= (lenient.scenarios or 0) >= 1


def test_the_scale_of_weights_does_not_matter() -> None:
    heavy = [PairedValues([value], 7.0) for value in ALIKE]
    assert new_sample(heavy, 0.05) == new_sample(once(*ALIKE), 0.05)
