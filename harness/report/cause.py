"""Find out why a run did not pass: the cause, and the failed checks that are only its consequences.

A run that ends early fails most of its checks, and none of them explains why. The cause is then the error that ended
it (or the check of `status`, if it paused or timed out). The other checks are consequences, except those that an
early end cannot explain: something ran that never should, an upper bound was exceeded, the path had diverged before
the end, or the check belongs to an earlier turn. If a run ends normally, each failed check is a cause, except those
that only restate that the path was not the expected one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.report.encoding import encode
from harness.report.repeats import NOT_PASSED
from harness.scenario.outcome import CheckResult, Origin, Outcome
from harness.scenario.score import could_not_be_judged

_ENDS_EARLY: Final = ("failed", "timeout", "invalid", "interrupted")
_BY_ITS_CODE: Final = ("cassette-missing",)
"""Codes of faults that are the same fault whatever their message."""
_EACH_ITS_OWN: Final = ("worker-died",)
_LOOPS: Final = ("too-many-steps", "too-many-starts", "endless-loop")
"""Codes of endless loops: the path and the visit counts are consequences of the loop, not faults of their own."""

_OF_AN_EARLIER_TURN: Final = ("not-interrupted",)
"""Codes of a turn that could not begin because the turn before it did not pause: that turn's status is the cause."""

_TURN: Final = re.compile(r"turn (\d+): ")


@dataclass(frozen=True)
class Reasons:
    """Why a run did not pass.

    is_error      True if the error that ended the run is the cause
    checks        failed checks that are causes, or that nothing else explains
    consequences  failed checks that are consequences of the cause
    cause         the check among `checks` that `consequences` result from; None if that is the error
    """

    is_error: bool
    checks: Sequence[CheckResult]
    consequences: Sequence[CheckResult]
    cause: CheckResult | None


def reasons(outcome: Outcome) -> Reasons:
    """Return why a run did not pass. Checks that could not be evaluated come first, `unused` last."""
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
            if not (
                _follows(check, since) or (loops and Origin.LOOP in check.origin and _turn(check) >= since)
            )
        ]
        kept += [] if is_error else ends
    else:
        astray = {_turn(check) for check in failed if _key(check) == "path"}
        kept = [check for check in failed if not (Origin.PATH in check.origin and _turn(check) in astray)]
    kept.sort(key=_order)
    cause = next((check for check in kept if _key(check) in ("status", "path")), None)
    consequences = [check for check in failed if check not in kept]
    return Reasons(is_error, kept, consequences, None if is_error else cause)


def fault(outcome: Outcome) -> str:
    """Return a key that is the same for all runs with the same fault; "" if a run has causes of its own.

    Such a fault is a refused manifest, a missing module, a provider that is down, or an exception from one line.
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
    """True if an early end explains the failed check. `since` is the turn it ended in; 0 for a run without turns."""
    turn, key = _turn(check), _key(check)
    if Origin.EXCESS in check.origin or 0 < turn < since:
        return False
    return key != "path" or _begins_with(check.expected, check.actual)


def _begins_with(expected: Any, actual: Any) -> bool:
    """True if the run followed the expected path until it ended. The order within a superstep does not matter."""
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
