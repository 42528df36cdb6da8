"""Why a run did not pass: the cause, and the failed checks that only follow from it.

A run that ended before its time fails most of its checks, and none of them says why. Then the cause is the error that
ended it (or its `status`, where it paused or ran out of time), and the others follow, except those that an early end
cannot explain: something that ran although it never should, a bound that was exceeded, a path that had gone astray
before, and the turns before that one. Of a run that came to its end each failed check is a cause, but what repeats in
other words that the path was not the expected one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.report.encoding import encode
from harness.report.verdicts import NOT_PASSED
from harness.scenario.outcome import CheckResult, Outcome
from harness.scenario.verdict import could_not_be_judged

_ENDS_EARLY: Final = ("failed", "timeout", "invalid", "interrupted")
_UPPER_BOUNDS: Final = ("never", "max_visits", "never_calls", "latency", "usage", "never_warnings")
"""Checks that fail for what did happen."""
_OF_THE_PATH: Final = ("path_includes", "visits", "routes", "unused")
"""Checks that say in other words that the path was another."""
_BY_ITS_CODE: Final = ("cassette-missing",)
"""Faults that are the same whatever the message says."""
_EACH_ITS_OWN: Final = ("worker-died",)
_LOOPS: Final = ("too-many-steps", "too-many-starts", "endless-loop")
"""Errors of runs that went round: their path, and how often they were where, are no other fault."""
_OF_A_LOOP: Final = ("path", "max_visits", "usage")

_OF_AN_EARLIER_TURN: Final = ("not-interrupted",)
"""Errors of a turn that begins where the one before it did not lead: the status of that one is the cause."""

_TURN: Final = re.compile(r"turn (\d+): ")


@dataclass(frozen=True)
class Reasons:
    """Why a run did not pass.

    is_error    the error that ended the run is the cause
    checks      failed checks that are causes, or that nothing else explains
    followers   failed checks that follow from the cause
    cause       the one of `checks` that they follow from, where it is not the error
    """

    is_error: bool
    checks: Sequence[CheckResult]
    followers: Sequence[CheckResult]
    cause: CheckResult | None


def reasons(outcome: Outcome) -> Reasons:
    """Why this run did not pass. What could not be evaluated goes first, `unused` last."""
    failed = sorted((check for check in outcome.checks if not check.passed), key=_order)
    observed = outcome.observed
    ends = [check for check in failed if _key(check) == "status"] if observed.status in _ENDS_EARLY else []
    is_error = observed.error is not None and (bool(ends) or could_not_be_judged(observed))
    if is_error and (observed.error or {}).get("code") in _OF_AN_EARLIER_TURN and any(map(_turn, ends)):
        first = min(_turn(check) for check in ends if _turn(check))
        is_error, ends = False, [check for check in ends if _turn(check) == first]
    if is_error or ends:
        since = min((_turn(check) for check in ends), default=0)
        loops = is_error and (observed.error or {}).get("code") in _LOOPS
        kept = [
            check
            for check in failed
            if not (_follows(check, since) or (loops and _key(check) in _OF_A_LOOP and _turn(check) >= since))
        ]
        kept += [] if is_error else ends
    else:
        astray = {_turn(check) for check in failed if _key(check) == "path"}
        kept = [check for check in failed if not (_key(check) in _OF_THE_PATH and _turn(check) in astray)]
    kept.sort(key=_order)
    cause = next((check for check in kept if _key(check) in ("status", "path")), None)
    followers = [check for check in failed if check not in kept]
    return Reasons(is_error, kept, followers, None if is_error else cause)


def fault(outcome: Outcome) -> str:
    """The same text for all runs that failed for the same reason; "" where a run has reasons of its own.

    A manifest that is refused, a module that is missing, a provider that is down, an exception at one line of code.
    """
    error, why = outcome.observed.error, reasons(outcome)
    if outcome.verdict not in NOT_PASSED or error is None or not why.is_error or why.checks:
        return ""
    code = error.get("code")
    if code in _EACH_ITS_OWN:
        return ""
    parts: list[Any] = [error.get("type"), code]
    if code not in _BY_ITS_CODE:
        parts.append(_without_names(str(error.get("message")), outcome))
        parts.append([(frame["file"], frame["line"]) for frame in error.get("traceback") or ()])
        parts.append(None if code else error.get("where"))
    return hashlib.sha256(encode(parts).encode()).hexdigest()[:16]


def _without_names(message: str, outcome: Outcome) -> str:
    return message.replace(outcome.id, "").replace(outcome.scenario, "")


def _follows(check: CheckResult, since: int) -> bool:
    """True if an early end in turn `since` (0: in a run without turns, or anywhere) explains the failed check."""
    turn, key = _turn(check), _key(check)
    if key in _UPPER_BOUNDS or 0 < turn < since:
        return False
    return key != "path" or _begins_with(check.expected, check.actual)


def _begins_with(expected: Any, actual: Any) -> bool:
    """True if the run was on the expected path as far as it came. Of a superstep the order does not matter."""
    if not isinstance(expected, list | tuple) or not isinstance(actual, list):
        return True
    return [_step(step) for step in expected[: len(actual)]] == [_step(step) for step in actual]


def _step(step: Any) -> Any:
    return sorted(map(str, step)) if isinstance(step, list | tuple) else step


def _order(check: CheckResult) -> int:
    return 0 if check.broken else 2 if _key(check) == "unused" else 1


def _turn(check: CheckResult) -> int:
    found = _TURN.match(check.name)
    return int(found[1]) if found else 0


def _key(check: CheckResult) -> str:
    return _TURN.sub("", check.name, count=1)
