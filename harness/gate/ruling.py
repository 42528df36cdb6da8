"""The ruling on a rule: its figure, its bound, the verdict, and the affected scenarios."""

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
class AffectedScenario:
    """A scenario affected by a ruling, with its figure before (None if not known) and now, and its changed checks."""

    id: str
    variant: str | None
    before: Any
    after: Any
    checks: Sequence[str] = ()

    @classmethod
    def of(cls, scenario: ScenarioRuns, pair: Pair | None, before: Any, after: Any) -> AffectedScenario:
        """Create it for a scenario, with its changed checks, or the failing ones if it is not in the baseline."""
        return cls(
            scenario.id, scenario.variant, before, after, (pair or Pair(_NOTHING, scenario)).changed_checks
        )

    @property
    def label(self) -> str:
        """The id, with the variant in brackets."""
        return label(self.id, self.variant)

    def as_json(self) -> dict[str, Any]:
        """Return the scenario as `--json` writes it."""
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
    """The result of applying a rule.

    actual     its figure; None if there is none, for the reason in `note`
    interval   the interval of the figure, if the rule tests for significance
    scenarios  the affected scenarios, the worst first; a rule that holds may have some
    details    other causes, one line each
    """

    rule: str
    scope: tuple[Scope, str] | None
    actual: Any
    bound: Any
    passed: bool
    interval: tuple[float, float] | None = None
    scenarios: Sequence[AffectedScenario] = ()
    note: str = ""
    details: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the ruling as `--json` writes it; infinite values are null."""
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
