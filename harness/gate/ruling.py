"""What came of a rule: its figure, its bound, whether it holds, and the scenarios responsible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from harness.gate.policy import Scope
from harness.report.pairing import Pair
from harness.report.repeats import label
from harness.report.scenario_runs import ScenarioRuns


@dataclass(frozen=True, slots=True)
class Responsible:
    """A scenario, what it was (None where that is not known) and is now; `checks` are those that changed."""

    id: str
    variant: str | None
    before: Any
    after: Any
    checks: Sequence[str] = ()

    @classmethod
    def of(cls, scenario: ScenarioRuns, pair: Pair | None, before: Any, after: Any) -> Responsible:
        """A scenario that is there, with the checks that changed, if it is in the baseline, or that fail."""
        return cls(
            scenario.id, scenario.variant, before, after, (pair or Pair(_NOTHING, scenario)).changed_checks
        )

    @property
    def label(self) -> str:
        """Its id, and its variant in brackets."""
        return label(self.id, self.variant)

    def as_json(self) -> dict[str, Any]:
        """The scenario as `--json` has it."""
        variant = {"variant": self.variant} if self.variant else {}
        return {
            "id": self.id,
            **variant,
            "before": self.before,
            "after": self.after,
            "checks": list(self.checks),
        }


_NOTHING = ScenarioRuns("")


@dataclass(frozen=True)
class Ruling:
    """What came of a rule.

    actual     its figure; None where there is none, and `note` says why
    interval   that of the figure, where the rule asks whether it is more than chance
    scenarios  those responsible, the worst first; also of a rule that holds, where some lost something
    details    what else is responsible, a line each
    """

    rule: str
    scope: tuple[Scope, str] | None
    actual: Any
    bound: Any
    passed: bool
    interval: tuple[float, float] | None = None
    scenarios: Sequence[Responsible] = ()
    note: str = ""
    details: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """The ruling as `--json` has it; a figure or a bound that is infinite is null."""
        return {
            "rule": self.rule,
            "scope": dict([self.scope]) if self.scope else None,
            "actual": _finite(self.actual),
            "bound": self.bound,
            "passed": self.passed,
            "interval": None if self.interval is None else [_finite(end) for end in self.interval],
            "scenarios": [] if self.passed else [each.as_json() for each in self.scenarios],
            "note": self.note,
            "details": list(self.details),
        }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value
