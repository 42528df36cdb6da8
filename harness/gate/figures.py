"""Figures and bounds of rules as text."""

from __future__ import annotations

import math
from typing import Any

from harness.gate.changes import CHANGES, PROVABLE
from harness.gate.ruling import AffectedScenario, Ruling
from harness.report.formatting import cost, p_value, percent, plural, seconds

_SECONDS = ("max_p50_latency", "max_p95_latency")
_SHARES = ("min_pass_rate",)
_COUNTED = {
    "max_flaky": "flaky scenario",
    "max_errors": "error",
    "no_new_failures": "new failure",
    "allow_removed": "removed scenario",
}


def figure_text(ruling: Ruling) -> str:
    """Return the figure of a rule, with its unit."""
    rule, actual = ruling.rule, ruling.actual
    if actual is None:
        return "–"
    if rule in CHANGES or rule == "proven_no_worse":
        return _change(ruling)
    if rule == "no_drift":
        return f"p {p_value(actual)}"
    if rule == "min_coverage":
        return ", ".join(f"{percent(share)} of {kind}" for kind, share in actual.items())
    if rule in _COUNTED:
        return plural(actual, _COUNTED[rule])
    return _amount(rule, actual)


def bound_text(ruling: Ruling) -> str:
    """Return the bound of a rule."""
    rule, value = ruling.rule, ruling.bound
    if rule in CHANGES:
        return f"at most {_share(value)} worse"
    if rule == "proven_no_worse":
        return ", ".join(f"{figure} proven at most {_share(share)} worse" for figure, share in value.items())
    if rule == "no_drift":
        return f"above {value:g}"
    if rule == "min_coverage":
        return "at least " + ", ".join(f"{percent(share)} of {kind}" for kind, share in value.items())
    if rule in ("no_new_failures", "allow_removed"):
        return "any" if value is True else "none"
    return f"at {'least' if rule.startswith('min_') else 'most'} {_amount(rule, value)}"


def change_text(ruling: Ruling, affected: AffectedScenario) -> str:
    """Return the figure of a scenario before and now, or only now if the former is not known."""
    rule = ruling.rule
    if rule == "proven_no_worse":
        rule = next(
            name for name, compared in CHANGES.items() if compared is PROVABLE[next(iter(ruling.bound))]
        )
    before, after = (_value(rule, value) for value in (affected.before, affected.after))
    return after if affected.before is None else f"{before} → {after}"


def _value(rule: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or "–"
    if rule == "max_latency_increase":
        return seconds(value)
    if rule == "max_cost_increase":
        return cost(value)
    return f"{value:.2f}" if rule in ("min_fitness", "max_fitness_drop") else _amount(rule, value)


def _amount(rule: str, value: float) -> str:
    if rule in _SECONDS:
        return seconds(value)
    if rule in _SHARES:
        return percent(value)
    if rule == "max_cost":
        return f"${cost(value)}"
    return f"{value:.3f}" if rule == "min_fitness" else f"{value:,.10g}"


def _change(ruling: Ruling) -> str:
    worse = ruling.actual
    text = "unchanged" if worse == 0 else f"{_share(abs(worse))} {'worse' if worse > 0 else 'better'}"
    if ruling.interval is None:
        return text
    ends = " to ".join(_share(end, signed=True) for end in ruling.interval)
    return f"{text} (interval {ends})"


def _share(share: float, *, signed: bool = False) -> str:
    if math.isinf(share):
        return "-∞" if share < 0 else "∞"
    return f"{share * 100:{'+' if signed else ''}.3g} %"
