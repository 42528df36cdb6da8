"""Boschloo's test of two numbers of passes: exact values, and its rate of false alarms for every pass rate."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.statistics.pass_counts import fewer_passes_p


@pytest.mark.parametrize(
    ("before", "after", "p"),
    [
        ((1, 1), (0, 1), 1 / 4),
        ((3, 3), (0, 3), 1 / 64),
        ((5, 5), (0, 5), 1 / 1024),
        ((10, 10), (4, 10), 0.00176),
    ],
)
def test_known_values(before: tuple[int, int], after: tuple[int, int], p: float) -> None:
    """The last one is that of scipy.stats.boschloo_exact; the others are 4^-n, for a pass rate of one half."""
    assert fewer_passes_p(*before, *after) == pytest.approx(p, rel=0.01)


@given(st.integers(1, 8), st.integers(1, 8), st.floats(0, 1), st.sampled_from([0.01, 0.05, 0.2]))
def test_an_unchanged_scenario_is_rarely_said_to_pass_less_often(
    before: int, after: int, rate: float, level: float
) -> None:
    def chance(passed: int, runs: int) -> float:
        return comb(runs, passed) * rate**passed * (1 - rate) ** (runs - passed)

    alarms = sum(
        chance(i, before) * chance(j, after)
        for i in range(before + 1)
        for j in range(after + 1)
        if fewer_passes_p(i, before, j, after) <= level
    )
    assert alarms <= level * 1.01
