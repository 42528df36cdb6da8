"""Fitness, repeats and verdicts."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scenario.checks.run import run_checks
from harness.scenario.model import Expectations
from harness.scenario.outcome import CheckResult, Observation
from harness.scenario.score import (
    UNJUDGED,
    Judgement,
    judgement_of,
    latency_penalty,
    pass_at_k,
    pass_hat_k,
    scenario_score,
    suite_fitness,
    wilson,
)


def check(score: Any, weight: Any = 1.0) -> Any:
    return CheckResult("state", score == 1, score, weight, None, None)


def took(seconds: Any, **more: Any) -> Any:
    return Observation(latency={"total": seconds, "nodes": {}}, **more)


def scored(values: Any, observed: Any, timeout_s: Any = 10.0, weights: Any = None) -> Any:
    expect = Expectations(values, weights or {})
    return scenario_score(run_checks(expect, observed), observed, expect, timeout_s)


def judge(values: Any, observed: Any, pass_score: Any = 1.0, weights: Any = None) -> Any:
    expect = Expectations(values, weights or {})
    return judgement_of(run_checks(expect, observed), observed, expect, timeout_s=10.0, pass_score=pass_score)


# --- scenario score ----------------------------------------------------------------------------------------


def test_the_score_is_the_weighted_mean_of_the_checks() -> None:
    checks = [check(1, 3), check(0.5, 1), check(0, 0)]

    assert scenario_score(checks, Observation(), Expectations(), 10) == ((3 + 0.5) / 4, 0)


def test_gates_that_hold_count_nothing() -> None:
    assert scored({"output": "x", "status": "completed"}, Observation(output="y")) == (0, 0)


def test_a_scenario_of_gates_alone_scores_one() -> None:
    assert scored({}, Observation()) == (1, 0)


@pytest.mark.parametrize(
    "observed", [Observation(status="failed", output="x"), Observation(unused=["s"], output="x")]
)
def test_a_gate_that_fails_takes_the_whole_score(observed: Any) -> None:
    assert scored({"output": "x"}, observed)[0] == 0


def test_a_gate_with_a_weight_counts_as_any_check() -> None:
    assert (
        scored({"output": "x"}, Observation(status="failed", output="x"), weights={"status": 3})[0] == 1 / 4
    )


def test_a_gate_with_the_weight_0_is_ignored() -> None:
    assert scored({"output": "x"}, Observation(unused=["s"], output="x"), weights={"unused": 0})[0] == 1


def test_a_run_that_timed_out_scores_0_whatever_the_weights() -> None:
    assert scored({"output": "x"}, Observation(status="timeout", output="x"), weights={"status": 0})[0] == 0


def test_a_timeout_that_is_expected_scores_as_any_status() -> None:
    assert scored({"status": "timeout"}, took(10.0, status="timeout")) == (1, 0)


@pytest.mark.parametrize(
    ("seconds", "bound", "penalty"),
    [
        (1, 2, 0),
        (2, 2, 0),
        (0.1 + 0.2, 0.3, 0),
        (4, 2, 0.25),
        (10, 2, 1),
        (12, 2, 1),
        (9, None, 0),
        (11, 10, 1),
        (5, 10, 0),
    ],
)
def test_the_latency_penalty_grows_from_the_bound_to_the_timeout(
    seconds: Any, bound: Any, penalty: Any
) -> None:
    values = {} if bound is None else {"latency": {"total": bound}}

    assert latency_penalty(took(seconds), Expectations(values), 10) == pytest.approx(penalty)


def test_the_penalty_takes_its_share_of_the_score() -> None:
    score, penalty = scored({"output": "x", "latency": {"total": 2}, "state": 1}, took(4, output="x"))

    assert (score, penalty) == (0.5 * 0.75, 0.25)


def test_a_conversation_pays_the_largest_penalty_of_its_turns() -> None:
    slow = (took(4), Expectations({"latency": {"total": 2}}))
    quick = (took(1), Expectations({"latency": {"total": 2}}))

    assert scenario_score([], took(5), Expectations(), 10, turns=[quick, slow]) == (0.75, 0.25)


# --- suite -------------------------------------------------------------------------------------------------


def test_suite_fitness_is_the_weighted_mean() -> None:
    assert suite_fitness([(1, 1), (3, 0.5)]) == 2.5 / 4
    assert suite_fitness([]) == 0


def of_all_subsets(n: Any, c: Any, k: Any, judge_subset: Any) -> Any:
    """The share of subsets of k runs, of n of which c passed, that are judged true."""
    subsets = list(itertools.combinations([True] * c + [False] * (n - c), k))
    return sum(map(judge_subset, subsets)) / len(subsets)


@pytest.mark.parametrize(
    ("n", "c", "k"), [(n, c, k) for n in (1, 4, 6) for c in range(n + 1) for k in range(1, n + 1)]
)
def test_pass_at_k_and_pass_hat_k_are_shares_of_all_subsets(n: Any, c: Any, k: Any) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(of_all_subsets(n, c, k, any))
    assert pass_hat_k(n, c, k) == pytest.approx(of_all_subsets(n, c, k, all))


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 1, 0), (3, 4, 1), (3, -1, 1)])
def test_there_are_no_k_runs_to_choose(n: Any, c: Any, k: Any) -> None:
    with pytest.raises(ValueError):
        pass_at_k(n, c, k)
    with pytest.raises(ValueError):
        pass_hat_k(n, c, k)


@pytest.mark.parametrize(
    ("passes", "runs", "low", "high"),
    [  # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
        (0, 0, 0.0, 1.0),
    ],
)
def test_the_interval_of_a_pass_rate(passes: Any, runs: Any, low: Any, high: Any) -> None:
    assert wilson(passes, runs) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("passes", "runs"), [(2, 1), (-1, 1)])
def test_there_is_no_such_pass_rate(passes: Any, runs: Any) -> None:
    with pytest.raises(ValueError):
        wilson(passes, runs)


# --- verdict -----------------------------------------------------------------------------------------------


def test_a_scenario_passes_from_its_pass_score() -> None:
    values = {"state": {"a": 1, "b": 2}}
    half = Observation(state={"a": 1})

    assert judge(values, half) == Judgement("failed", 0.5, 0)
    assert judge(values, half, pass_score=0.5) == Judgement("passed", 0.5, 0)
    assert judge(values, Observation(state={"a": 1, "b": 2})) == Judgement("passed", 1, 0)


UNSCRIPTED = {
    "type": "UnscriptedCall",
    "code": "unscripted-call",
    "message": "nothing answers llm",
    "node": "a",
}


@pytest.mark.parametrize("code", sorted(UNJUDGED))
def test_a_run_whose_world_could_not_answer_is_an_error(code: Any) -> None:
    observed = Observation(status="failed", error={**UNSCRIPTED, "code": code})

    assert judge({"status": "failed"}, observed) == Judgement("error", 0, 0)


def test_a_failure_of_the_agent_is_no_error() -> None:
    observed = Observation(status="failed", error={"type": "ValueError", "code": "exception", "message": "x"})

    assert judge({}, observed).verdict == "failed"
    assert judge({"status": "failed"}, observed).verdict == "passed"


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        ({"type": "UnscriptedCall"}, "passed"),
        ({"message": {"$contains": "nothing answers"}}, "passed"),
        ({"type": "UnscriptedCall", "node": "b"}, "failed"),
        ({"type": "ValueError"}, "error"),
        ({"message": "another"}, "error"),
    ],
)
def test_a_scenario_that_expects_the_unanswered_call_is_judged(error: Any, verdict: Any) -> None:
    observed = Observation(status="failed", error=UNSCRIPTED)

    assert judge({"status": "failed", "error": error}, observed).verdict == verdict


def test_a_turn_may_expect_the_unanswered_call() -> None:
    observed = Observation(status="failed", error=UNSCRIPTED)
    turn = Expectations({"status": "failed", "error": {"type": "UnscriptedCall"}})

    judgement = judgement_of([], observed, Expectations(), timeout_s=10, turns=[(observed, turn)])

    assert judgement.verdict == "passed"


BROKEN = {"checks": [{"that": "true"}, {"that": "state.nope > 1"}]}


@pytest.mark.parametrize("pass_score", [0.0, 0.5, 1.0])
def test_a_check_that_cannot_be_evaluated_is_an_error_whatever_the_pass_score(pass_score: Any) -> None:
    assert judge(BROKEN, Observation(state={}), pass_score=pass_score) == Judgement("error", 0.0, 0.0)


def test_what_a_run_that_failed_does_not_have_is_its_failure_and_no_error() -> None:
    observed = Observation(
        status="failed", state={}, error={"type": "ValueError", "code": None, "message": "x"}
    )

    assert judge(BROKEN, observed).verdict == "failed"
    assert judge(BROKEN, observed, pass_score=0.0).verdict == "error"


def test_a_check_with_the_weight_0_is_ignored_though_it_cannot_be_evaluated() -> None:
    assert judge(BROKEN, Observation(state={}), pass_score=0.5, weights={"checks": 0}).verdict == "passed"


def test_a_manifest_that_is_refused_is_an_error_unless_expected() -> None:
    observed = Observation(
        status="invalid", error={"type": "ManifestError", "code": "unknown-key", "message": "x"}
    )

    assert judge({}, observed).verdict == "error"
    assert judge({"status": "invalid"}, observed).verdict == "passed"


def test_an_error_that_is_malformed_expects_nothing() -> None:
    observed = Observation(status="failed", error=UNSCRIPTED)

    assert judge({"status": "failed", "error": {"type": {"$regex": "("}}}, observed).verdict == "error"


# --- laws --------------------------------------------------------------------------------------------------

shares = st.floats(0, 1)
weights = st.floats(0, 1e6)
checks_of_any_kind = st.lists(st.builds(check, shares, weights), max_size=6)


@given(checks_of_any_kind, st.floats(0, 100), st.floats(0, 50), st.floats(0.1, 60))
def test_law_scores_and_penalties_are_shares(checks: Any, seconds: Any, bound: Any, timeout_s: Any) -> None:
    expect = Expectations({"latency": {"total": bound}})

    score, penalty = scenario_score(checks, took(seconds), expect, timeout_s)

    assert 0 <= score <= 1 + 1e-12
    assert 0 <= penalty <= 1


@given(checks_of_any_kind, st.randoms(use_true_random=False))
def test_law_the_order_of_checks_is_irrelevant(checks: Any, random: Any) -> None:
    before = scenario_score(checks, Observation(), Expectations(), 10)
    random.shuffle(checks)

    assert scenario_score(checks, Observation(), Expectations(), 10) == before


@given(st.integers(1, 400).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs))))
def test_law_the_interval_holds_the_rate(pair: Any) -> None:
    passes, runs = pair
    low, high = wilson(passes, runs)

    assert 0 <= low <= passes / runs <= high <= 1
