"""The difference of two variants. Source: docs/variants.md, "Better, worse, no evidence"."""

from __future__ import annotations

import random
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.statistics.paired_bootstrap import Paired
from harness.statistics.paired_difference import holm, paired_difference

SCORES = st.floats(0, 1, allow_nan=False)


def pairs(*values: tuple[float, float]) -> list[Paired]:
    return [Paired([value]) for value in values]


def test_the_difference_is_that_of_fitness() -> None:
    found = paired_difference([Paired([(0.5, 1.0), (0.5, 0.5)], 3), Paired([(1.0, 0.0)], 1)])
    assert isclose(found.estimate, (3 * 0.25 - 1) / 4)


def test_the_p_value_is_exact_for_few_scenarios() -> None:
    assert paired_difference(pairs(*[(0, 1)] * 5)).p == 2 / 2**5
    assert paired_difference(pairs((0, 1), (0, 1), (1, 0))).p == 1.0
    assert paired_difference(pairs((0, 1), (0, 1), (0.5, 0.5), (0, 1))).p == 2 / 2**3


def test_equal_variants_differ_in_nothing() -> None:
    found = paired_difference(pairs(*[(0.5, 0.5)] * 20))
    assert found == (0.0, 0.0, 0.0, 1.0, 20, None)


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


@pytest.mark.parametrize("scenarios", [8, 30])
def test_equal_variants_are_told_apart_in_at_most_one_case_of_twenty(scenarios: int) -> None:
    """Of 400 samples of variants that pass with the same chance, 5 % are 20, and 33 are three deviations more."""
    source = random.Random(scenarios)
    alarms = 0
    for _ in range(400):
        chances = [source.random() for _ in range(scenarios)]
        sample = pairs(*[(source.random() < chance, source.random() < chance) for chance in chances])
        alarms += paired_difference(sample, resamples=1000).p <= 0.05
    assert alarms <= 33


def test_the_number_of_scenarios_it_asks_for_shows_the_difference() -> None:
    """With as many scenarios as it says, about eight of ten samples show a difference of ten points."""
    source = random.Random(1)

    def sample(count: int) -> list[Paired]:
        return pairs(*[(source.random() < 0.5, source.random() < 0.6) for _ in range(count)])

    difference = paired_difference(sample(400))
    assert difference.needed is not None
    source = random.Random(2)
    needed = 390  # (1.96 + 0.84)² × (0.25 + 0.24) ÷ 0.1², rounded
    found = sum(paired_difference(sample(needed), resamples=500).p <= 0.05 for _ in range(40))
    assert 24 <= found <= 40


def test_holm_corrects_for_the_number_of_variants() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}
