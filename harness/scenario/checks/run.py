"""Runs the checks of an `expect` mapping on the observation of a run or a turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.errors import CannotEvaluate, SourceError
from harness.scenario.checks.finding import Finding, trim
from harness.scenario.document_expect import CHECKS
from harness.scenario.model import Expectations
from harness.scenario.outcome import CheckResult, Gate, Observation, Origin, Status
from harness.scenario.real_limit import progress

_FIRST: Final = ("status", "unused", "error", "interrupt")
"""Checks of the end of the run, which explains most of what follows."""
_KEYS: Final = {*CHECKS, *(check.option for check in CHECKS.values())}
_ORDER: Final = (*_FIRST, *(key for key in CHECKS if key not in _FIRST))


@dataclass(frozen=True)
class _Part:
    """One check to run. `item` is its index in a list of checks."""

    key: str
    expected: Any
    item: int | None = None

    @property
    def name(self) -> str:
        if self.item is None:
            return self.key
        named = self.expected.get("name") if isinstance(self.expected, Mapping) else None
        return str(named) if named else f"{self.key}[{self.item}]"

    def weight(self, expect: Expectations) -> float:
        weight = expect.weights.get(self.key, 1.0)
        if self.item is not None and isinstance(self.expected, Mapping):
            weight = self.expected.get("weight", weight)
        return float(weight)


def run_checks(
    expect: Expectations,
    observed: Observation,
    *,
    allow_unused: bool = False,
    default_status: Status = "completed",
) -> list[CheckResult]:
    """Return the results of all checks: first of how the run ended, then in the order of `CHECKS`.

    Each item of `checks`, `custom` and `judge` is a check of its own. `status` (`default_status` if it is not
    written) and `unused` (unless `allow_unused`) are always checked. They are `Gate`s unless `expect.weights`
    gives them a weight. The weight of an item has priority over that of its key. A check that cannot be
    evaluated is `broken` and has a message; nothing is raised.
    """
    values = {"status": default_status, **expect.values, "unused": []}
    if allow_unused:
        del values["unused"]
    return [result for part in _parts(values) for result in _results(part, expect, observed)]


def _parts(values: Mapping[str, Any]) -> Iterator[_Part]:
    for key in _ORDER:
        if CHECKS[key].items:
            yield from (_Part(key, item, index) for index, item in enumerate(values.get(key, ())))
        elif key in values:
            yield _Part(key, values[key])
    yield from (_Part(key, value) for key, value in values.items() if key not in _KEYS)


def _results(part: _Part, expect: Expectations, observed: Observation) -> Iterator[CheckResult]:
    finding = _finding(part, expect, observed)
    if finding is None:
        return
    check = CHECKS.get(part.key)
    gate = check is not None and check.gate and part.key not in expect.weights
    yield (Gate if gate else CheckResult)(
        name=part.name,
        passed=finding.score == 1,
        score=finding.score,
        weight=0.0 if gate else part.weight(expect),
        expected=part.expected,
        actual=trim(finding.actual),
        message=finding.message,
        broken=finding.broken,
        span=expect.spans.get(f"{part.key}[{part.item}]", expect.spans.get(part.key)),
        origin=check.origin if check is not None else Origin.RESULT,
    )


def _finding(part: _Part, expect: Expectations, observed: Observation) -> Finding | None:
    if part.key not in CHECKS:
        return Finding(0.0, None, f"there is no check {part.key}", broken=True)
    check = CHECKS[part.key]
    more = (
        [part.item] if check.items else [expect.values[key] for key in [check.option] if key in expect.values]
    )
    progress.check(part.name)
    try:
        finding = check.function(part.expected, observed, *more)
        if finding is not None and not 0 <= finding.score <= 1:
            raise ValueError(f"its score is {finding.score}")
    except CannotEvaluate as error:
        return Finding(0.0, None, f"cannot be evaluated: {error}", broken=True)
    except SourceError as error:
        return Finding(0.0, None, str(error), broken=True)
    except Exception as error:  # an exception in a check must not end the suite
        return Finding(0.0, None, f"check broke: {type(error).__name__}: {error}", broken=True)
    return finding
