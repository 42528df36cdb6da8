"""Runs the checks of an `expect` mapping on the observation of a run or a turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.errors import CannotEvaluate, SourceError
from harness.scenario.checks import calls, conditions, ending, path
from harness.scenario.checks import ending as bounds
from harness.scenario.checks import ending as values
from harness.scenario.checks.finding import Finding, trim
from harness.scenario.model import ITEMIZED, Expectations
from harness.scenario.outcome import CheckResult, Observation, Status
from harness.scenario.real_limit import progress

Check = Callable[..., Finding | None]
"""A function of (expected, observed), and for some of an option; returns None if there is nothing to check."""

CHECKS: Final[Mapping[str, Check]] = {
    "status": ending.status,
    "unused": ending.unused,
    "error": ending.error,
    "interrupt": ending.interrupt,
    "path": path.path,
    "path_includes": path.path_includes,
    "visits": path.visits,
    "max_visits": path.max_visits,
    "never": path.never,
    "routes": path.routes,
    "state": values.state,
    "output": values.output,
    "state_schema": values.state_schema,
    "output_schema": values.output_schema,
    "calls": calls.calls,
    "never_calls": calls.never_calls,
    "call_counts": calls.call_counts,
    "latency": bounds.latency,
    "usage": bounds.usage,
    "warnings": ending.warnings,
    "never_warnings": ending.never_warnings,
    "checks": conditions.condition,
    "custom": conditions.custom,
    "judge": conditions.judge,
}


GATES: Final = ("status", "unused")
OPTIONS: Final = ("calls_order",)


@dataclass
class Gate(CheckResult):
    """A check that sets the score to 0 if it fails, and does not count (weight 0) while it holds."""


@dataclass(frozen=True)
class _Check:
    """One check to run. `item` is its index in an itemized key."""

    key: str
    expected: Any
    item: int | None = None


def run_checks(
    expect: Expectations,
    observed: Observation,
    *,
    allow_unused: bool = False,
    default_status: Status = "completed",
) -> list[CheckResult]:
    """Return the results of all checks, in the order of `CHECKS`.

    Each item of `checks`, `custom` and `judge` is a check of its own. `status` (`default_status` if it is not
    written) and `unused` (unless `allow_unused`) are always checked. They are `Gate`s unless `expect.weights`
    gives them a weight. The weight of an item has priority over that of its key. A check that cannot be
    evaluated is `broken` and has a message; nothing is raised.
    """
    return [
        result
        for check in _checks(expect, allow_unused, default_status)
        for result in _results(check, expect, observed)
    ]


def _checks(expect: Expectations, allow_unused: bool, default_status: Status) -> Iterator[_Check]:
    values = {"status": default_status, **expect.values, "unused": []}
    if allow_unused:
        del values["unused"]
    for key in CHECKS:
        if key in ITEMIZED:
            yield from (_Check(key, item, index) for index, item in enumerate(values.get(key, ())))
        elif key in values:
            yield _Check(key, values[key])
    yield from (
        _Check(key, value) for key, value in values.items() if key not in CHECKS and key not in OPTIONS
    )


def _results(check: _Check, expect: Expectations, observed: Observation) -> Iterator[CheckResult]:
    finding = _finding(check, expect, observed)
    if finding is None:
        return
    gate = check.key in GATES and check.key not in expect.weights
    kind = Gate if gate else CheckResult
    yield kind(
        name=_name(check),
        passed=finding.score == 1,
        score=finding.score,
        weight=0.0 if gate else _weight(check, expect),
        expected=check.expected,
        actual=trim(finding.actual),
        message=finding.message,
        broken=finding.broken,
        span=expect.spans.get(f"{check.key}[{check.item}]", expect.spans.get(check.key)),
    )


def _finding(check: _Check, expect: Expectations, observed: Observation) -> Finding | None:
    if check.key not in CHECKS:
        return Finding(0.0, None, f"there is no check {check.key}", broken=True)
    options: dict[str, Any] = {}
    if check.key == "calls" and "calls_order" in expect.values:
        options["order"] = expect.values["calls_order"]
    if check.key == "judge":
        options["grade"] = str(check.item)
    if check.key == "custom":
        options["index"] = check.item
    progress.check(_name(check))
    try:
        finding = CHECKS[check.key](check.expected, observed, **options)
        if finding is not None and not 0 <= finding.score <= 1:
            raise ValueError(f"its score is {finding.score}")
    except CannotEvaluate as error:
        return Finding(0.0, None, f"cannot be evaluated: {error}", broken=True)
    except SourceError as error:
        return Finding(0.0, None, str(error), broken=True)
    except Exception as error:  # an exception in a check must not end the suite
        return Finding(0.0, None, f"check broke: {type(error).__name__}: {error}", broken=True)
    return finding


def _name(check: _Check) -> str:
    if check.item is None:
        return check.key
    named = check.expected.get("name") if isinstance(check.expected, Mapping) else None
    return str(named) if named else f"{check.key}[{check.item}]"


def _weight(check: _Check, expect: Expectations) -> float:
    weight = expect.weights.get(check.key, 1.0)
    if check.item is not None and isinstance(check.expected, Mapping):
        weight = check.expected.get("weight", weight)
    return float(weight)
