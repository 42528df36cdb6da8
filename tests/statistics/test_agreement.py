"""Cohen's kappa of two raters: reference values, properties, and the coverage of its interval."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.calibration.measure import Ratings, agreement, kappa, kappa_interval

counts = st.integers(0, 40)
ratings = st.builds(Ratings, counts, counts, counts, counts).filter(lambda each: each.items > 0)


def test_kappa_has_the_textbook_values() -> None:
    found = kappa(Ratings(45, 15, 25, 15))
    assert found == pytest.approx(0.1304, abs=1e-4)
    assert kappa(Ratings(25, 35, 5, 35)) == pytest.approx(0.2593, abs=1e-4)


@pytest.mark.parametrize("same", [Ratings(7, 0, 0, 0), Ratings(0, 0, 0, 7)])
def test_kappa_is_undefined_if_both_raters_give_one_label_to_everything(same: Ratings) -> None:
    assert (kappa(same), agreement(same)) == (None, 1)


@given(ratings)
def test_kappa_is_from_minus_one_to_one_and_inside_its_interval(found: Ratings) -> None:
    value = kappa(found)
    low, high = kappa_interval(found)
    assert -1 <= low <= high <= 1
    assert value is None or low <= value <= high


@given(st.integers(1, 40), st.integers(1, 40))
def test_perfect_agreement_is_exactly_1_and_its_interval_still_has_a_width(passes: int, fails: int) -> None:
    perfect = Ratings(passes, 0, 0, fails)
    low, high = kappa_interval(perfect)
    assert (kappa(perfect), high) == (1, 1)
    assert low < 1


@given(ratings)
def test_kappa_is_symmetric_in_raters_and_in_labels(found: Ratings) -> None:
    a, b, c, d = found
    for other in (Ratings(a, c, b, d), Ratings(d, c, b, a)):
        assert kappa(other) == kappa(found)
        assert kappa_interval(other) == kappa_interval(found)


@given(ratings)
def test_kappa_grows_with_agreement_if_the_pass_rates_stay_the_same(found: Ratings) -> None:
    a, b, c, d = found
    assume(min(b, c) > 0)
    better = Ratings(a + 1, b - 1, c - 1, d + 1)
    before, after = kappa(found), kappa(better)
    assert before is None or after is None or after > before


@pytest.mark.parametrize(
    "shares", [(0.45, 0.05, 0.05, 0.45), (0.6, 0.15, 0.05, 0.2), (0.25, 0.25, 0.25, 0.25)]
)
def test_the_interval_has_its_nominal_coverage(shares: tuple[float, float, float, float]) -> None:
    import numpy as np

    first, second = shares[0] + shares[1], shares[0] + shares[2]
    chance = first * second + (1 - first) * (1 - second)
    true = (shares[0] + shares[3] - chance) / (1 - chance)
    random = np.random.default_rng(7)
    samples = [Ratings(*map(int, random.multinomial(30, shares))) for _ in range(200)]
    held = sum(low <= true <= high for low, high in map(kappa_interval, samples))
    assert held / len(samples) >= 0.91
