"""The paired bootstrap: coverage of its interval, also for few scenarios with binary scores, and its properties."""

import random
from math import inf
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.statistics.ratio_interval import PairedValues, relative_change, student_quantile


def runs_of(n: int, repeats: int, drop: float, draw: random.Random) -> list[PairedValues]:
    """Return `n` scenarios with a mean pass rate of 0.9 before a change, lower by the fraction `drop` after it."""

    def run(chance: float) -> list[float]:
        return [float(draw.random() < chance) for _ in range(repeats)]

    chances = [draw.betavariate(9, 1) for _ in range(n)]
    return [PairedValues([*zip(run(each), run(each * (1 - drop)), strict=True)]) for each in chances]


@pytest.mark.parametrize(("n", "drop"), [(10, 0.0), (20, 0.0), (20, 0.3), (30, 0.1)])
def test_the_interval_has_at_least_its_nominal_coverage(n: int, drop: float) -> None:
    draw, trials, held = random.Random(n), 500, 0
    for _ in range(trials):
        change = relative_change(runs_of(n, 5, drop, draw))
        held += change.low - 1e-9 <= -drop <= change.high + 1e-9

    assert held / trials >= 0.93


@pytest.mark.parametrize("n", [5, 10, 20])
def test_the_interval_allows_for_scenarios_that_the_sample_does_not_have(n: int) -> None:
    """All pass before; then one in ten fails, and a third of all samples of ten contain no failure."""
    draw, trials, held = random.Random(n), 300, 0
    for _ in range(trials):
        change = relative_change([PairedValues([(1.0, float(draw.random() >= 0.1))]) for _ in range(n)])
        held += change.low <= -0.1 <= change.high

    assert held / trials >= 0.95


def test_equal_changes_of_all_scenarios_exclude_zero_if_others_could_not_undo_them() -> None:
    """A scenario that halves its figure, unseen in six, would undo an increase of 20 % in each; not one in thirty."""
    few, many = (relative_change([PairedValues([(1.0, 1.2)])] * n) for n in (6, 30))

    assert (few.estimate, many.estimate) == pytest.approx((0.2, 0.2))
    assert few.low < 0 < many.low < many.estimate < many.high < 0.3


values = st.floats(0, 1, allow_subnormal=False)
scenarios = st.lists(
    st.builds(PairedValues, st.lists(st.tuples(values, values), min_size=1, max_size=4), st.floats(0.1, 5)),
    min_size=1,
    max_size=15,
)


@given(scenarios)
def test_the_change_is_in_its_interval_and_the_same_on_every_rerun(found: list[PairedValues]) -> None:
    change = relative_change(found)

    assert change == relative_change(found)
    assert change.low <= change.high


@given(scenarios)
def test_equal_scores_have_no_change(found: list[PairedValues]) -> None:
    same = [PairedValues([(before, before) for before, _ in each.repeats], each.weight) for each in found]

    change = relative_change(same)

    assert change.estimate == 0
    assert change.low <= 0 <= change.high


def test_the_estimate_is_the_change_of_the_weighted_means() -> None:
    found = [PairedValues([(1.0, 0.5), (0.0, 0.5)], weight=3.0), PairedValues([(1.0, 0.0)])]

    assert relative_change(found).estimate == pytest.approx((3 * 0.5 + 0) / (3 * 0.5 + 1) - 1)


def test_all_repeats_of_a_scenario_are_one_observation() -> None:
    draw = random.Random(4)
    of_five = runs_of(12, 5, 0.2, draw)
    means = [
        PairedValues([(fmean(b for b, _ in each.repeats), fmean(a for _, a in each.repeats))])
        for each in of_five
    ]

    assert relative_change(of_five) == pytest.approx(relative_change(means))


def test_the_repeats_of_a_single_scenario_are_the_sample() -> None:
    change = relative_change([PairedValues([(1.0, 0.5)] * 20)])

    assert change.estimate == -0.5
    assert -0.6 <= change.low <= -0.52
    assert -0.48 <= change.high <= -0.4
    assert relative_change([PairedValues([(1.0, 0.5)])])[:3] == (-0.5, -inf, inf)


def test_a_mean_of_zero_before_the_change() -> None:
    assert relative_change([PairedValues([(0.0, 0.0)])]).estimate == 0
    assert relative_change([PairedValues([(0.0, 1.0)])] * 12)[:3] == (inf, inf, inf)
    assert relative_change([PairedValues([(0.0, 0.0)])] * 3)[:3] == (0, 0, 0)


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (29, 2.045)]
)
def test_quantiles_of_students_distribution(degrees: int, quantile: float) -> None:
    assert student_quantile(0.975, degrees) == pytest.approx(quantile, abs=0.005)


def test_a_scenario_without_repeats_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a repeat"):
        relative_change([PairedValues([])])
