"""Scores and fitness of LeafMesh's suite, against numbers that were counted by hand. NOTES 15."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.report.results import line
from harness.report.summary import summarise
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

SUITE = Path(__file__).parents[2] / "scenarios" / "leafmesh"
BY_HAND: list[tuple[str, Mapping[str, float], float]] = [
    (
        "meshes/cider_press.yaml",
        {"full basket": 2 / 2, "scenario_2": 3 / 4, "empty basket": 1 / 2},
        (1 * 1 + 2 * 0.75 + 1.5 * 0.5) / (1 + 2 + 1.5),  # 0.722222
    ),
    (
        "fitness.scenario.yaml",
        {
            "three of four keys": 3 / 4,
            "a late answer": 1 - (4 - 2) / (10 - 2),
            "late and half wrong": 1 / 2 * (1 - (6 - 3) / (9 - 3)),
            "past its timeout": 0,
            "weighted checks": (3 * 1 + 1 * 2 / 3) / (3 + 1),
        },
        (2 * 0.75 + 1 * 0.75 + 3 * 0.25 + 1 * 0 + 1 * 11 / 12) / (2 + 1 + 3 + 1 + 1),  # 0.489583
    ),
]


@pytest.mark.parametrize(("file", "scores", "fitness"), BY_HAND, ids=[file for file, _, _ in BY_HAND])
def test_15_2_scores_and_fitness_are_those_counted_by_hand(
    file: str, scores: Mapping[str, float], fitness: float
) -> None:
    outcomes = [
        outcome for scenario in load_file(SUITE / file).scenarios for outcome in run_scenario(scenario)
    ]
    assert {outcome.scenario: outcome.score for outcome in outcomes} == pytest.approx(scores, abs=1e-9)
    assert summarise(map(line, outcomes))["total"]["fitness"] == pytest.approx(fitness, abs=1e-9)
