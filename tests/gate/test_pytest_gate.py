"""`pytest --harness-gate`, as its users call it."""

from collections.abc import Sequence
from typing import Protocol

import pytest

import tests.preloaded  # noqa: F401
from tests import forked
from tests.manifests import COUNTER

GOOD = "  - {name: counts, expect: {state: {count: 1}}}\n  - {name: ends, expect: {status: completed}}\n"
LOSES = "  - {name: counts, pass_score: 0.4, expect: {state: {count: 2}, path: [add]}}\n"


class Session(Protocol):
    """A function that runs pytest with the gate, on scenarios and a policy in pyproject.toml."""

    def __call__(self, scenarios: str, policy: str = "", options: Sequence[str] = ()) -> pytest.RunResult: ...


@pytest.fixture
def session(pytester: pytest.Pytester) -> Session:
    def run(scenarios: str, policy: str = "", options: Sequence[str] = ()) -> pytest.RunResult:
        (pytester.path / "counter.yaml").write_text(COUNTER, encoding="utf-8")
        (pytester.path / "pyproject.toml").write_text(f"[tool.harness.gate]\n{policy}\n", encoding="utf-8")
        text = f"harness: 1\nmanifest: counter.yaml\nscenarios:\n{scenarios}"
        (pytester.path / "a.scenario.yaml").write_text(text, encoding="utf-8")
        return pytester.runpytest("--harness-gate", *options)

    return run


def test_a_session_whose_rules_hold_passes(session: Session) -> None:
    done = session(GOOD, "min_fitness = 1.0")

    assert done.ret == 0
    done.stdout.fnmatch_lines(
        ["*= gate =*", "passed  min_fitness  1.000  at least 1.000", "gate passed: 1 rule"]
    )


def test_a_rule_that_fails_fails_a_session_in_which_all_pass(session: Session) -> None:
    done = session(LOSES, "min_fitness = 0.9")

    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(
        ["failed  min_fitness*", "*a.scenario.yaml::counts: 0.50", "*state: count: expected 2*"]
    )


def test_under_xdist_the_whole_session_is_judged_once(session: Session) -> None:
    done = session(LOSES, "min_fitness = 0.9", forked.workers(1))

    assert done.ret == pytest.ExitCode.TESTS_FAILED
    assert str(done.stdout).count("gate failed: 1 of 1 rule") == 1


def test_without_pytests_terminal_the_gate_counts_all_the_same(session: Session) -> None:
    assert session(LOSES, "min_fitness = 0.9", ["-p", "no:terminal"]).ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("options", [("-k", "counts"), ("-k", "nothing")])
def test_a_session_of_a_part_is_not_judged_and_does_not_pass(
    session: Session, options: Sequence[str]
) -> None:
    done = session(GOOD, "min_fitness = 1.0", options)

    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stdout.fnmatch_lines(["gate failed: it could not be judged"])


def test_a_policy_that_cannot_be_read_is_told_before_anything_runs(session: Session) -> None:
    done = session(GOOD, "min_fitnes = 1.0")

    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "pyproject.toml:2:1" in str(done.stderr)
    assert "did you mean 'min_fitness'?" in str(done.stderr)
    assert "1 passed" not in str(done.stdout)


def test_scenarios_that_only_are_listed_are_not_judged(session: Session) -> None:
    assert session(GOOD, "min_fitness = 1.0", ["--collect-only"]).ret == 0
