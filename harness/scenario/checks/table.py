"""The checks by their key in `expect`, in the order in which results list them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from harness.scenario.checks import bounds, calls, conditions, ending, path, values
from harness.scenario.checks.finding import Finding

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
