"""The difference of two variants. Source: docs/variants.md, "Scoring"."""

from __future__ import annotations

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.statistics.paired_difference import holm, holm_levels, paired_difference
from harness.statistics.ratio_interval import PairedValues

SCORES = st.floats(0, 1, allow_nan=False)


def pairs(*values: tuple[float, float]) -> list[PairedValues]:
    return [PairedValues([value]) for value in values]


def test_the_difference_is_that_of_fitness() -> None:
    found = paired_difference([PairedValues([(0.5, 1.0), (0.5, 0.5)], 3), PairedValues([(1.0, 0.0)], 1)])
    assert isclose(found.estimate, (3 * 0.25 - 1) / 4)


def test_the_p_value_is_exact_for_few_scenarios() -> None:
    assert paired_difference(pairs(*[(0, 1)] * 5)).p == 2 / 2**5
    assert paired_difference(pairs((0, 1), (0.5, 1), (1, 0))).p == 1.0
    assert paired_difference(pairs((0, 1), (0, 0.9), (0.5, 0.5), (0, 1))).p == 2 / 2**3


def test_of_scores_of_0_and_1_half_of_the_equal_sign_choices_count() -> None:
    """Five of twenty that all get better: the exact test of McNemar gives 2 ÷ 2⁵, its mid-p half of that."""
    assert paired_difference(pairs(*[(0, 1)] * 5, *[(1, 1)] * 15)).p == 1 / 2**5
    assert paired_difference(pairs((0, 1), (0, 1), (1, 0), *[(1, 1)] * 15)).p == pytest.approx(
        2 * (1 / 8 + 3 / 8 / 2)
    )
    assert paired_difference(pairs((0, 1), (1, 0))).p == 1.0


@given(st.integers(2, 5), st.floats(1e-30, 1e30))
def test_fewer_than_six_scenarios_are_never_significant_whatever_their_weight(n: int, weight: float) -> None:
    found = paired_difference([PairedValues([(0, 1)] * 3, weight)] * n)
    assert found.p >= 2 / 2**n > 0.05
    assert found.low <= 0 <= found.high


@given(
    st.lists(st.tuples(SCORES, SCORES), min_size=6, max_size=12), st.sampled_from([1e-13, 1e-3, 1e4, 1e12])
)
def test_the_scale_of_weights_does_not_matter(values: list[tuple[float, float]], scale: float) -> None:
    weights = [1.0 + at % 3 for at in range(len(values))]
    one, other = (
        paired_difference([PairedValues([each], w * by) for each, w in zip(values, weights, strict=True)])
        for by in (1.0, scale)
    )
    assert other.p == pytest.approx(one.p)
    assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=1e-9)


@given(
    st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=15),
    st.lists(st.floats(0.1, 10), min_size=15, max_size=15),
    st.sampled_from([0.05, 0.01, 0.2]),
)
def test_the_interval_excludes_0_exactly_if_the_difference_is_significant(
    values: list[tuple[float, float]], weights: list[float], level: float
) -> None:
    found = paired_difference(
        [PairedValues([each], weight) for each, weight in zip(values, weights, strict=False)]
    )
    low, high = found.interval(level)
    assert low <= found.estimate + 1e-12
    assert found.estimate - 1e-12 <= high
    assert (low <= 0 <= high) == (found.p > level)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_the_level_of_each_test_is_that_of_its_corrected_p_value(values: list[float]) -> None:
    p_values = {str(at): value for at, value in enumerate(values)}
    corrected, levels = holm(p_values), holm_levels(p_values)
    for name, p in p_values.items():
        assert p <= levels[name] or corrected[name] > 0.05 - 1e-12
        assert p > levels[name] or corrected[name] < 0.05 + 1e-12


def test_scenarios_that_score_alike_leave_open_what_others_would_do() -> None:
    """If one in ten scenarios has a difference, a sample of twenty has none with a probability of 12 %."""
    found = paired_difference(pairs(*[(0.5, 0.5)] * 20))
    assert (found.estimate, found.p, found.scenarios) == (0.0, 1.0, 20)
    assert 0.1 <= found.high <= 0.15
    assert -0.15 <= found.low <= -0.1


def test_small_gains_leave_open_that_a_scenario_breaks() -> None:
    """If one in twenty scenarios breaks, most samples of ten have none that does."""
    found = paired_difference(pairs(*[(0.9, 0.95)] * 10))
    assert found.p > 0.05
    assert found.low <= -0.1


def test_an_interval_ends_where_scores_do() -> None:
    found = paired_difference(pairs(*[(0, 1)] * 8))
    assert found.high == 1.0
    assert 0.6 <= found.low <= 0.9


def test_one_scenario_says_nothing_of_others() -> None:
    found = paired_difference(pairs((0, 1)))
    assert found.p == 1.0
    assert found.low == -found.high


@given(st.lists(st.tuples(SCORES, SCORES), min_size=2, max_size=15))
def test_the_other_way_round_it_is_the_same_with_the_other_sign(values: list[tuple[float, float]]) -> None:
    found = paired_difference(pairs(*values))
    mirrored = paired_difference(pairs(*[(after, before) for before, after in values]))
    assert isclose(found.estimate, -mirrored.estimate, abs_tol=1e-12)
    assert isclose(found.p, mirrored.p, abs_tol=1e-9)
    assert found.low - 1e-9 <= found.estimate <= found.high + 1e-9


def test_holm_corrects_for_the_number_of_variants() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}
