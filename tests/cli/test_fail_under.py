"""`harness run --fail-under`: the rule `min_fitness` of the gate."""

import pytest

from tests.cli.fixtures import Invoke, WriteSuite

WHOLE = "{name: counts, expect: {state: {count: 1}}}"
HALF = "{name: half, pass_score: 0.4, expect: {state: {count: 1}, output: {count: 2}}}"
FAILS = "{name: fails, expect: {state: {count: 2}}}"


@pytest.mark.parametrize(("bound", "code", "verdict"), [("0.75", 0, "passed"), ("0.76", 1, "failed")])
def test_a_fitness_below_the_bound_fails_the_run_as_in_the_gate(
    invoke: Invoke, suite: WriteSuite, bound: str, code: int, verdict: str
) -> None:
    suite(WHOLE, HALF)
    ran = invoke("run", ".", "--fail-under", bound)
    assert ran.exit_code == code
    (line,) = (line for line in ran.stdout.splitlines() if "min_fitness" in line)
    assert line.startswith(f"{verdict}  min_fitness  0.75")
    with open("policy.yaml", "w") as file:
        file.write(f"gate: {{min_fitness: {bound}}}\n")
    gate = invoke("gate", "--policy", "policy.yaml")
    assert gate.exit_code == code
    assert line in gate.stdout.splitlines()


def test_the_scenarios_that_lower_the_fitness_are_listed(invoke: Invoke, suite: WriteSuite) -> None:
    suite(WHOLE, HALF)
    assert "a.scenario.yaml::half: 0.5" in invoke("run", ".", "--fail-under", "1").stdout


def test_a_failed_scenario_fails_the_run_whatever_the_fitness(invoke: Invoke, suite: WriteSuite) -> None:
    suite(WHOLE, FAILS)
    assert invoke("run", ".", "--fail-under", "0.1").exit_code == 1


def test_the_bound_applies_to_a_partial_run_too(invoke: Invoke, suite: WriteSuite) -> None:
    suite(WHOLE, HALF)
    assert invoke("run", ".", "--fail-under", "1", "-k", "counts").exit_code == 0
    assert invoke("run", ".", "--fail-under", "1", "-k", "half").exit_code == 1


def test_a_run_without_verdicts_does_not_pass(invoke: Invoke, suite: WriteSuite) -> None:
    suite("{name: later, skip: not yet}")
    assert invoke("run", ".", "--fail-under", "0.5").exit_code == 2


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        ("95", "'95' is not a share from 0 to 1; did you mean 0.95?"),
        ("95%", "'95%' is not a share from 0 to 1; did you mean 0.95?"),
        ("-1", "'-1' is not a share from 0 to 1"),
        ("nan", "'nan' is not a share from 0 to 1"),
        ("high", "'high' is not a number from 0 to 1"),
        ("1000", "'1000' is not a share from 0 to 1\n"),
    ],
)
def test_a_bound_must_be_from_0_to_1(invoke: Invoke, suite: WriteSuite, bound: str, told: str) -> None:
    suite(WHOLE)
    result = invoke("run", ".", "--fail-under", bound)
    assert result.exit_code == 2
    assert told in result.stderr
