"""The record of a rule of the gate, and the types of bounds, as a policy writes them.

Policy, verdict, texts and warnings read the record, so a new rule is one record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, NamedTuple, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from harness.gate.ruling import Part, Ruling
from harness.report.formatting import plural
from harness.source.models import Mistake, describe, mistaken
from harness.units import is_number
from harness.world.field_types import LEFT_OUT, Strict

TOLERANCE: Final = 1e-9
"""Tolerance for rounding errors in sums."""


class NothingToJudge(Exception):
    """Raised by a rule that has nothing to look at. `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = message, hint
        super().__init__(message)


class Terms(NamedTuple):
    """The terms that rules share.

    confidence     of intervals and tests
    history        the history that the run was appended to, if any
    allow_removed  True if scenarios of the baseline may be missing
    """

    confidence: float
    history: Path | None = None
    allow_removed: bool = False


def plain(rule: Callable[[Part, Any], Ruling]) -> Callable[[Part, Any, Terms], Iterable[Ruling]]:
    """Return the `judge` of a rule that needs no more than the part and the bound."""
    return lambda part, bound, _terms: [rule(part, bound)]


def number(value: float) -> str:
    """Return a figure without a unit."""
    return f"{value:,.10g}"


@dataclass(frozen=True)
class GateRule:
    """A rule.

    name            its key in a policy
    bound           the type of its bound of those below; a rule of type bool is a switch, or a permission
    description     of the key, in the JSON Schema of policies
    judge           applies it; raises `NothingToJudge` rather than hold trivially
    needs_baseline  True if it compares
    is_switch       True if false is the same as not set
    shown           formats the figure and the bound
    counted         the noun for what it counts, if it does
    found, wanted   write the figure and the bound of a ruling, where they are more than a number
    of_scenario     formats the figure of one scenario; None: as `shown`
    figure          the figure of a `Repeat` that it bounds, where 0 may mean that nothing was measured
    is_time         True if the bound is in seconds
    cannot_fail     returns why no run can fail it, from its bound and the number of scenarios; "" if one can
    """

    name: str
    bound: Any
    description: str
    judge: Callable[[Part, Any, Terms], Iterable[Ruling]]
    needs_baseline: bool = False
    is_switch: bool = False
    shown: Callable[[float], str] = number
    counted: str = ""
    found: Callable[[Ruling], str] | None = None
    wanted: Callable[[Ruling], str] | None = None
    of_scenario: Callable[[float, Ruling], str] | None = None
    figure: Callable[[Any], str] = lambda _bound: ""
    is_time: bool = False
    cannot_fail: Callable[[Any, int], str] = lambda _bound, _scenarios: ""

    def figure_text(self, ruling: Ruling) -> str:
        """Return the figure of a ruling, with its unit."""
        if ruling.actual is None:
            return "–"
        if self.found is not None:
            return self.found(ruling)
        return plural(ruling.actual, self.counted) if self.counted else self.shown(ruling.actual)

    def bound_text(self, ruling: Ruling) -> str:
        """Return the bound of a ruling."""
        if self.wanted is not None:
            return self.wanted(ruling)
        return f"at {'least' if self.name.startswith('min_') else 'most'} {self.shown(ruling.bound)}"

    def scenario_text(self, ruling: Ruling, value: Any) -> str:
        """Return the figure of one scenario."""
        if value is None or isinstance(value, str):
            return value or "–"
        return self.shown(value) if self.of_scenario is None else self.of_scenario(value, ruling)


def _share(value: Any) -> Any:
    if isinstance(value, str) and value.strip().endswith("%"):
        raise mistaken(
            Mistake(f"expected a share from 0 to 1, found {describe(value)}", hint=_as_share(value))
        )
    if is_number(value) and not 0 <= value <= 1:
        hint = _as_share(f"{value}%") if value > 1 else ""
        raise mistaken(Mistake(f"expected a share from 0 to 1, found {describe(value)}", hint=hint))
    return value


def _as_share(percentage: str) -> str:
    number = percentage.strip().removesuffix("%").strip()
    try:
        share = float(number) / 100
    except ValueError:
        return ""
    return f"{number} % is {share:g}" if 0 <= share <= 1 else ""


def _confidence(value: Any) -> Any:
    if is_number(value) and not 0.5 <= value < 1:
        raise mistaken(Mistake(f"expected a confidence from 0.5 to below 1, found {describe(value)}"))
    return value


Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(_share)]
Amount = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]
Confidence = Annotated[float, Field(ge=0.5, lt=1), BeforeValidator(_confidence)]


class Shares(Strict):
    """A rule with several shares, at least one of which is set."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})
    without_any: ClassVar[str]

    @model_validator(mode="after")
    def _has_a_share(self) -> Self:
        if not self.bounds:
            raise mistaken(Mistake(self.without_any, hint=f"known: {', '.join(type(self).model_fields)}"))
        return self

    @property
    def bounds(self) -> dict[str, float]:
        """The shares that are set."""
        return {name: getattr(self, name) for name in self.written(*type(self).model_fields)}


class MinCoverage(Shares):
    """Minimum shares of each graph that must be covered."""

    model_config = ConfigDict(title="min_coverage")
    without_any = "min_coverage bounds nothing"

    nodes: Share = Field(default=LEFT_OUT, description="The least share of nodes.")
    edges: Share = Field(default=LEFT_OUT, description="The least share of edges.")
    branches: Share = Field(default=LEFT_OUT, description="The least share of branches.")


class ProvenNoWorse(Shares):
    """Shares by which figures may be worse than in the baseline, which the run has to prove."""

    model_config = ConfigDict(title="proven_no_worse")
    without_any = "proven_no_worse names no figure"

    fitness: Share = Field(default=LEFT_OUT, description="The largest share by which it may be lower.")
    latency: Share = Field(default=LEFT_OUT, description="The largest share by which it may be higher.")
    cost: Share = Field(default=LEFT_OUT, description="The largest share by which it may be higher.")
