"""The sequential test by betting keeps its level at every look; races of variants, and the runs they save."""

from __future__ import annotations

import random
from statistics import mean

from hypothesis import given
from hypothesis import strategies as st

from harness.statistics.betting import Bets
from harness.statistics.paired_difference import holm, paired_difference
from harness.statistics.ratio_interval import PairedValues
from harness.variants.race import Race, random_blocks

EQUAL = (0.7, 0.7, 0.7, 0.7, 0.7)


def run(rates: tuple[float, ...], scenarios: int, seed: int) -> tuple[Race, int, dict[str, list[float]]]:
    """Race variants with these pass rates in scenarios of varying difficulty; return race, runs and scores."""
    drawn = random.Random(seed)
    names = [str(number) for number in range(len(rates))]
    race, runs = Race(names), 0
    seen: dict[str, list[float]] = {name: [] for name in names}
    for block in random_blocks(range(scenarios)):
        running = race.running
        for _ in block:
            easy = drawn.uniform(-0.2, 0.2)
            scores = {name: float(drawn.random() < rates[int(name)] + easy) for name in running}
            for name, score in scores.items():
                seen[name].append(score)
            race.add(scores)
            runs += len(scores)
        race.stop_beaten()
    return race, runs, seen


@given(st.lists(st.floats(-1, 1)))
def test_p_is_a_probability_that_never_rises(differences: list[float]) -> None:
    bets, before = Bets(), 1.0
    for difference in differences:
        bets.add(difference)
        assert 0 <= bets.p <= before
        before = bets.p


@given(st.lists(st.floats(-1, 0)))
def test_without_a_positive_difference_p_stays_1(differences: list[float]) -> None:
    bets = Bets()
    for difference in differences:
        bets.add(difference)
    assert bets.p == 1


def test_for_equal_variants_p_is_rarely_small_at_any_look() -> None:
    """p falls to 0.1 or below within 100 looks in at most 10 % of 400 cases, plus two standard errors."""
    drawn = random.Random(1)
    shown = 0
    for _ in range(400):
        bets = Bets()
        for _ in range(100):
            bets.add(drawn.choice((-1, 0, 0, 1)))
        shown += bets.p <= 0.1
    assert shown / 400 <= 0.13


def test_equal_variants_are_stopped_or_called_worse_in_at_most_5_percent_of_races() -> None:
    """The bound holds over all variants and looks of a race, and for `better` as well."""
    stopped = worse = better = 0
    races = 150
    for seed in range(races):
        race, _, seen = run(EQUAL, 40, seed)
        p, signs = {"stopped": 1.0}, {}
        for name in race.running[1:]:
            found = paired_difference(
                [PairedValues([pair]) for pair in zip(seen["0"], seen[name], strict=True)]
            )
            p[name], signs[name] = found.p, found.estimate
        p |= dict.fromkeys(race.stopped, 1.0)
        del p["stopped"]
        shown = [signs[name] for name, value in holm(p).items() if value <= 0.05 and name in signs]
        stopped += bool(race.stopped)
        worse += bool(race.stopped) or any(sign < 0 for sign in shown)
        better += any(sign > 0 for sign in shown)
    assert stopped / races <= 0.025
    assert worse / races <= 0.05
    assert better / races <= 0.05


def test_a_clearly_worse_variant_is_stopped_and_runs_are_saved() -> None:
    saved, stopped = [], 0
    for seed in range(40):
        race, runs, _ = run((0.8, 0.8, 0.8, 0.8, 0.2), 60, seed)
        saved.append(1 - runs / (60 * 5))
        stopped += set(race.stopped) == {"4"}
    assert stopped >= 36
    assert mean(saved) > 0.1


def test_a_variant_beaten_by_another_is_stopped_even_if_it_equals_the_baseline() -> None:
    race, _, _ = run((0.2, 0.8, 0.2), 60, seed=1)
    assert race.stopped.keys() == {"2"}
    assert race.stopped["2"].by == "1"
    assert race.p_worse_than_baseline("2") > 0.05


def test_scenarios_run_in_blocks_in_a_reproducible_random_order() -> None:
    blocks = random_blocks(range(12))
    assert [len(block) for block in blocks] == [5, 5, 2]
    assert sorted(number for block in blocks for number in block) == list(range(12))
    assert blocks == random_blocks(range(12))
    assert blocks[0] != [0, 1, 2, 3, 4]
