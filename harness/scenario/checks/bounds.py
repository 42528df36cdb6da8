"""Checks of virtual time, tokens, model calls and cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness.scenario.checks.finding import Finding, partial_credit
from harness.scenario.outcome import Observation
from harness.source.project import PYPROJECT

TOLERANCE: Final = 1e-9
"""Allowed excess over a bound, since sums of floats are inexact: 0.1 + 0.2 is within 0.3."""


def latency(expected: Mapping[str, Any], observed: Observation) -> Finding | None:
    """Upper bounds in virtual seconds by node; else the share that hold.

    `total` is not a check: it only determines the latency penalty. None if there is no other bound.
    """
    bounds = expected.get("nodes") or {}
    return _bounded(bounds, observed.latency.get("nodes", {}), " s") if bounds else None


def usage(expected: Mapping[str, Any], observed: Observation) -> Finding:
    """Upper bounds: `{input_tokens, output_tokens, llm_calls, cost}`; else the share that hold.

    A bound on the cost cannot be evaluated if tokens were reported and none of their models has a price.
    """
    reported = {name: each for name, each in observed.usage.get("by_model", {}).items() if each["cost"] != 0}
    if "cost" in expected and reported and all(each["cost"] is None for each in reported.values()):
        names = ", ".join(f"'{name}'" for name in reported)
        message = f"cost: no price is known of {names}; add it to [tool.harness.prices] in {PYPROJECT}"
        return Finding(0.0, None, message, broken=True)
    return _bounded(expected, observed.usage, "")


def _bounded(bounds: Mapping[str, Any], amounts: Mapping[str, Any], unit: str) -> Finding:
    actual = {key: amounts.get(key) or 0 for key in bounds}
    faults = [
        None
        if actual[key] <= most + TOLERANCE
        else f"{key}: expected at most {most:.10g}{unit}, was {actual[key]:.10g}{unit}"
        for key, most in bounds.items()
    ]
    return partial_credit(faults, actual)
