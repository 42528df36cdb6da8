"""The record of a rule of the gate: policy, verdict, texts and warnings read it, so a new rule is one record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.gate.ruling import Part, Ruling
from harness.report.formatting import plural

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
    bound           the type of its bound (`harness.gate.bounds`); a rule of type bool is a switch, or a permission
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
