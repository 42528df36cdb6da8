"""The ruling on a rule: its figure, its bound, the verdict, and the affected scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, Literal

from harness.report.group import GraphCoverage
from harness.report.repeats import Key, Line, label
from harness.report.scenario_runs import Pair, Pairing, Run, ScenarioRuns

Scope = Literal["tag", "suite", "manifest"]
SCOPES: Final[tuple[Scope, ...]] = ("tag", "suite", "manifest")


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

    @property
    def label(self) -> str:
        """The name of the rule, and of the part it applies to."""
        return self.rule + (f" [{self.scope[0]} {self.scope[1]}]" if self.scope else "")

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


@dataclass(frozen=True)
class Part:
    """Scenarios of a run with their part of the summary.

    scope      the kind and name of the part; None for the whole run
    group      its figures, a group of summary.json (`harness.report.summary`)
    coverage   its graphs, as in `coverage` of summary.json
    pairing    its scenarios paired with those of the baseline; None without a baseline
    baseline   the baseline; None without one
    """

    scope: tuple[Scope, str] | None
    scenarios: tuple[ScenarioRuns, ...]
    group: Mapping[str, Any]
    coverage: Mapping[str, Any]
    pairing: Pairing | None = None
    baseline: Run | None = None

    @property
    def pairs_by_key(self) -> Mapping[Key, Pair]:
        """The pairs, by scenario; empty without a baseline."""
        return {} if self.pairing is None else self.pairing.by_key


class ScopedCoverage:
    """A collector of the coverage of a part, line by line."""

    def __init__(self, scope: tuple[Scope, str] | None) -> None:
        self._scope, self._graphs = scope, GraphCoverage()

    def add(self, line: Line) -> None:
        """Count a line of results.jsonl, if it belongs to the part."""
        if self._scope is None or self._scope[1] in _names(line, self._scope[0]):
            self._graphs.add(line)

    def summary(self) -> dict[str, Any]:
        """Return the coverage as `GraphCoverage.summary` does."""
        return self._graphs.summary()


def _names(line: Line, kind: Scope) -> Iterable[str]:
    return line["tags"] if kind == "tag" else (line[kind],)


def part_of(
    scope: tuple[Scope, str] | None,
    run: Run,
    summary: Mapping[str, Any],
    coverage: Mapping[str, Any],
    pairing: Pairing | None,
    baseline: Run | None,
) -> Part | None:
    """Return a part of a run; None if it has no scenarios."""
    if scope is None:
        return Part(None, tuple(run.scenarios.values()), summary["total"], coverage, pairing, baseline)
    kind, name = scope
    group = summary[f"{kind}s"].get(name)
    if group is None:
        return None
    scenarios = tuple(each for each in run.scenarios.values() if _is_in(each, scope))
    paired = None
    if pairing is not None:
        paired = Pairing(
            [pair for pair in pairing.pairs if _is_in(pair.after, scope)],
            [gone for gone in pairing.gone if _is_in(gone, scope)],
            [added for added in pairing.added if _is_in(added, scope)],
        )
    return Part(scope, scenarios, group, coverage, paired, baseline)


def _is_in(scenario: ScenarioRuns, scope: tuple[Scope, str]) -> bool:
    kind, name = scope
    return name in scenario.tags if kind == "tag" else getattr(scenario, kind) == name
