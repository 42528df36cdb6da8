"""The verdict on one run: passed, failed, or not to be judged at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from harness.scenario.checks.bounds import TOLERANCE
from harness.scenario.checks.run import Gate
from harness.scenario.model import Expectations
from harness.scenario.outcome import CheckResult, Observed, Verdict
from harness.scenario.score import Turns, asks_for, scenario_score

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
        "key-missing",
        "harness-broke",
        "worker-died",
        "real-timeout",
    }
)
"""Codes of errors that say nothing about the agent: its world could not answer."""


class Judgement(NamedTuple):
    """`score` and `latency_penalty` are 0 to 1; an error scores 0."""

    verdict: Verdict
    score: float
    latency_penalty: float


def judged(
    checks: Sequence[CheckResult],
    observed: Observed,
    expect: Expectations,
    *,
    timeout_s: float,
    pass_score: float = 1.0,
    turns: Turns = (),
) -> Judgement:
    """The verdict on a scenario from the checks of it and of its turns.

    `observed` is the whole run, `turns` what each turn of a conversation did and what was expected of it. A check
    that cannot be evaluated makes it an error whatever the `pass_score`, unless the run failed already by its status.
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
        return failed  # what its checks did not find follows from that
    if any(check.broken and (check.weight or isinstance(check, Gate)) for check in checks):
        return Judgement("error", 0.0, penalty)
    return Judgement("passed", score, penalty) if score + TOLERANCE >= pass_score else failed


def could_not_be_judged(observed: Observed) -> bool:
    """An unanswered effect, a missing cassette, a provider that is down, or a manifest that is refused."""
    return observed.status == "invalid" or (observed.error or {}).get("code") in UNJUDGED


def expects_failure(expect: Expectations, observed: Observed) -> bool:
    """The scenario asks for this failure: by `status: invalid`, or by its `error` (the type, where it names one).

    `status: failed` alone does not ask for a stub to be missing.
    """
    if observed.status == "invalid" and asks_for(expect, "status", "invalid"):
        return True
    error: Any = expect.values.get("error")
    if not isinstance(error, Mapping) or observed.error is None:
        return False
    named = {"type": error["type"]} if "type" in error else error
    return asks_for(Expectations({"error": named}), "error", observed.error)
