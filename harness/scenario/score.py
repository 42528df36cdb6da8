"""Scores: the formulas of docs/scenario-format.md ("Fitness"), and the statistics of repeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import comb, fsum, sqrt
from typing import Any, Final, NamedTuple

from harness.errors import CannotEvaluate, FormatError
from harness.matchers.value import matches
from harness.scenario.checks.finding import TOLERANCE
from harness.scenario.model import Expectations
from harness.scenario.outcome import JSON, CheckResult, Gate, Observation, Verdict
from harness.statistics.ratio_interval import student_quantile

Turns = Sequence[tuple[Observation, Expectations]]
"""The observation and the expectations of each turn of a conversation."""

Z_95: Final = 1.959963984540054


def scenario_score(
    checks: Sequence[CheckResult],
    observed: Observation,
    expect: Expectations,
    timeout_s: float,
    turns: Turns = (),
) -> tuple[float, float]:
    """Return the scenario's score and its latency penalty, both from 0 to 1.

    score = (Σ weight × check score ÷ Σ weight) × (1 - penalty), over the `checks` of the scenario and of all
    its turns; the penalty is the largest of the whole run's and of its turns'. The score is 0 if a gate failed,
    or if the run timed out and no expectation has `status: timeout`. If no check counts, the mean is 1.
    """
    judged = [(observed, expect), *turns]
    penalty = max(latency_penalty(one, wanted, timeout_s) for one, wanted in judged)
    timed_out = observed.status == "timeout" and not any(
        expects_value(wanted, "status", "timeout") for _, wanted in judged
    )
    if timed_out or any(isinstance(check, Gate) and not check.passed for check in checks):
        return 0.0, penalty
    return _mean((check.weight, check.score) for check in checks) * (1 - penalty), penalty


def latency_penalty(observed: Observation, expect: Expectations, timeout_s: float) -> float:
    """Return 0 up to `expect.latency.total` seconds, rising linearly to 1 at `timeout_s`; 0 without a bound."""
    bound = (expect.values.get("latency") or {}).get("total")
    if bound is None or (over := observed.latency.get("total", 0.0) - bound) <= TOLERANCE:
        return 0.0
    return float(min(over / (timeout_s - bound), 1.0)) if timeout_s > bound else 1.0


def suite_fitness(pairs: Iterable[tuple[float, float]]) -> float:
    """Return Σ weight × score ÷ Σ weight over `(weight, score)` of scenarios; 0 if there are none."""
    return _mean(pairs, nothing=0.0)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the probability that at least one of `k` runs passes, estimated from `c` passes in `n` runs.

    The estimate is 1 - C(n-c, k) ÷ C(n, k).

    Raises:
        ValueError: not 0 ≤ c ≤ n and 1 ≤ k ≤ n.

    Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code", section 2.1 (unbiased).
    """
    _require(n, c, k)
    return 1 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Return the probability that all of `k` runs pass (pass^k), estimated from `c` passes in `n` runs.

    The estimate is C(c, k) ÷ C(n, k).

    Raises:
        ValueError: not 0 ≤ c ≤ n and 1 ≤ k ≤ n.

    Source: Yao et al. 2024, "τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains",
    section 3 (unbiased).
    """
    _require(n, c, k)
    return comb(c, k) / comb(n, k)


def wilson(passes: float, runs: float) -> tuple[float, float]:
    """Return the 95 % confidence interval of a pass rate; (0, 1) if nothing ran.

    Raises:
        ValueError: not 0 ≤ passes ≤ runs.

    Source: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference" (score
    interval, without continuity correction).
    """
    if not 0 <= passes <= runs:
        raise ValueError(f"{passes} passes of {runs} runs")
    if runs == 0:
        return 0.0, 1.0
    rate, z2 = passes / runs, Z_95**2
    centre = rate + z2 / (2 * runs)
    spread = Z_95 * sqrt(rate * (1 - rate) / runs + z2 / (4 * runs**2))
    scale = 1 + z2 / runs
    low = 0.0 if passes == 0 else (centre - spread) / scale
    high = 1.0 if passes == runs else (centre + spread) / scale
    return low, high


def clustered_wilson(scenarios: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Return the 95 % interval of the mean pass rate of scenarios, each with its `(runs, passes)`; (0, 1) for none.

    Repeats of a scenario are more alike than runs of different scenarios, so ten repeats of ten scenarios say
    less than a hundred scenarios. It is Wilson's interval for the number of independent runs whose pass rate
    would vary as much as the mean does, which lies between the number of scenarios and that of runs. The
    variance of the mean is estimated from few scenarios, for which Student's quantile corrects.

    Source: Korn and Graubard 1998, "Confidence Intervals for Proportions with Small Expected Number of Positive
    Counts Estimated from Survey Data"; Dean and Pagano 2015, "Evaluating Confidence Interval Methods for Binomial
    Proportions in Clustered Surveys" (Wilson's interval with the effective sample size).
    """
    n, runs = len(scenarios), sum(of for of, _ in scenarios)
    if n == 0:
        return 0.0, 1.0
    shares = [passes / of for of, passes in scenarios]
    rate = fsum(shares) / n
    if runs == n or n == 1 or rate in (0.0, 1.0):
        return wilson(fsum(shares), n) if n > 1 else wilson(scenarios[0][1], runs)
    variance = fsum((share - rate) ** 2 for share in shares) / (n - 1) / n
    independent = rate * (1 - rate) / variance if variance else float(runs)
    corrected = independent * (Z_95 / student_quantile(0.975, n - 1.0)) ** 2
    effective = min(float(runs), max(float(n), corrected))
    return wilson(rate * effective, effective)


def expects_value(expect: Expectations, key: str, actual: JSON) -> bool:
    """True if the key is written and matches `actual`. False if it cannot be evaluated, which its check reports."""
    try:
        return key in expect.values and matches(expect.values[key], actual)
    except (CannotEvaluate, FormatError):
        return False


def _mean(pairs: Iterable[tuple[float, float]], nothing: float = 1.0) -> float:
    weighed = list(pairs)
    total = fsum(weight for weight, _ in weighed)
    return fsum(weight * score for weight, score in weighed) / total if total > 0 else nothing


def _require(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"pass@{k} of {c} passes in {n} runs")


UNJUDGED: Final = frozenset(
    {
        "world",
        "unknown-name",
        "missing-file",
        "unscripted-call",
        "network-closed",
        "cassette",
        "cassette-missing",
        "cassette-broken",
        "cassette-mismatch",
        "cassette-too-old",
        "budget",
        "provider",
        "provider-down",
        "extra-missing",
        "program-missing",
        "key-missing",
        "broken-dialect",
        "harness-broke",
        "worker-died",
        "real-timeout",
    }
)
"""Codes of errors that are not the agent's fault: its world could not answer."""


class Judgement(NamedTuple):
    """The verdict on a run. `score` and `latency_penalty` are from 0 to 1; the score of an error is 0."""

    verdict: Verdict
    score: float
    latency_penalty: float


def judgement_of(
    checks: Sequence[CheckResult],
    observed: Observation,
    expect: Expectations,
    *,
    timeout_s: float,
    pass_score: float = 1.0,
    turns: Turns = (),
) -> Judgement:
    """Return the verdict on a scenario, given the checks of the scenario and of its turns.

    A check that cannot be evaluated makes the verdict `error` whatever the `pass_score`, unless a gate failed,
    such as the status: then the run is `failed`.

    Args:
        checks: the results of all checks.
        observed: the whole run.
        expect: the expectations of the scenario.
        timeout_s: virtual seconds after which the run is cut off.
        pass_score: the lowest score that passes.
        turns: the observation and the expectations of each turn of a conversation.
    """
    score, penalty = scenario_score(checks, observed, expect, timeout_s, turns)
    wanted = (expect, *(of_turn for _, of_turn in turns))
    if could_not_be_judged(observed) and not any(expects_failure(one, observed) for one in wanted):
        return Judgement("error", 0.0, penalty)
    failed = Judgement("failed", score, penalty)
    if (
        any(isinstance(check, Gate) and not check.passed for check in checks)
        and score + TOLERANCE < pass_score
    ):
        return failed  # checks that could not be evaluated are a consequence of that
    if any(check.broken and (check.weight or isinstance(check, Gate)) for check in checks):
        return Judgement("error", 0.0, penalty)
    return Judgement("passed", score, penalty) if score + TOLERANCE >= pass_score else failed


def could_not_be_judged(observed: Observation) -> bool:
    """True if an effect was not answered, a cassette is missing, a provider is down, or the manifest is refused."""
    return observed.status == "invalid" or (observed.error or {}).get("code") in UNJUDGED


def expects_failure(expect: Expectations, observed: Observation) -> bool:
    """True if the scenario expects this failure: by `status: invalid`, or by its `error` (its type, if it has one).

    `status: failed` alone does not expect a missing stub.
    """
    if observed.status == "invalid" and expects_value(expect, "status", "invalid"):
        return True
    error: Any = expect.values.get("error")
    if not isinstance(error, Mapping) or observed.error is None:
        return False
    named = {"type": error["type"]} if "type" in error else error
    return expects_value(Expectations({"error": named}), "error", observed.error)
