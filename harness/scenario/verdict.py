"""The verdict on one run: passed, failed, or error if it could not be judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from harness.scenario.checks.bounds import TOLERANCE
from harness.scenario.checks.run import Gate
from harness.scenario.model import Expectations
from harness.scenario.outcome import CheckResult, Observation, Verdict
from harness.scenario.score import Turns, expects_value, scenario_score

UNJUDGED: Final = frozenset(
    {
        "world",
        "unknown-name",
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
