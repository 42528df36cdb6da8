"""The difference of two variants. Source: docs/variants.md, "Scoring"."""

from __future__ import annotations

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.statistics.paired_bootstrap import PairedValues
from harness.statistics.paired_difference import holm, paired_difference

SCORES = st.floats(0, 1, allow_nan=False)


def pairs(*values: tuple[float, float]) -> list[PairedValues]:
    return [PairedValues([value]) for value in values]


def test_the_difference_is_that_of_fitness() -> None:
    found = paired_difference([PairedValues([(0.5, 1.0), (0.5, 0.5)], 3), PairedValues([(1.0, 0.0)], 1)])
    assert isclose(found.estimate, (3 * 0.25 - 1) / 4)


def test_the_p_value_is_exact_for_few_scenarios() -> None:
    assert paired_difference(pairs(*[(0, 1)] * 5)).p == 2 / 2**5
    assert paired_difference(pairs((0, 1), (0, 1), (1, 0))).p == 1.0
    assert paired_difference(pairs((0, 1), (0, 1), (0.5, 0.5), (0, 1))).p == 2 / 2**3


def test_scenarios_that_score_alike_leave_open_what_others_would_do() -> None:
    """If one in ten scenarios has a difference, a sample of twenty has none with a probability of 12 %."""
    found = paired_difference(pairs(*[(0.5, 0.5)] * 20))
    assert (found.estimate, found.p, found.scenarios) == (0.0, 1.0, 20)
    assert 0.1 <= found.high <= 0.15
    assert -0.15 <= found.low <= -0.1


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
    found = paired_difference(pairs(*values), resamples=200)
    mirrored = paired_difference(pairs(*[(after, before) for before, after in values]), resamples=200)
    assert isclose(found.estimate, -mirrored.estimate, abs_tol=1e-12)
    assert isclose(found.p, mirrored.p, abs_tol=1e-9)
    assert found.low - 1e-9 <= found.estimate <= found.high + 1e-9


def test_holm_corrects_for_the_number_of_variants() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}
