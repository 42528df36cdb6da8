"""The scenarios in `<dialect>/cases`: what the documents and the reference runtimes ask for, edge by edge."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.scenario.load import load_file
from harness.scenario.model import Scenario
from harness.scenario.run import run_scenario

HERE = Path(__file__).parent


def _scenarios() -> list[object]:
    return [
        pytest.param(scenario, id=f"{file.relative_to(HERE).as_posix()}: {scenario.name}")
        for file in sorted(HERE.glob("*/cases/*.scenario.yaml"))
        for scenario in load_file(file).scenarios
    ]


@pytest.mark.parametrize("scenario", _scenarios())
def test_case(scenario: Scenario) -> None:
    for outcome in run_scenario(scenario):
        told = [f"{check.name}: {check.message}" for check in outcome.checks if not check.passed]
        assert outcome.passed, "\n".join([str(outcome.observed.error), *told])
