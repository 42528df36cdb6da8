"""Expectations that hold whatever a run does: each is a warning, at load and of every run.

They are legal, since a scenario may be under construction; but a test that cannot fail says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.errors import ExpressionError, Problem, Span
from harness.source.document import Document

EMPTY_HOLDS: Final = frozenset(
    {
        *("path_includes", "visits", "max_visits", "never", "routes", "calls", "never_calls", "call_counts"),
        *("latency", "usage", "warnings", "never_warnings", "checks", "judge"),
    }
)
"""Checks that hold when nothing is listed."""
_GATES: Final = ("status", "unused")
_OPTIONS: Final = ("calls_order", "weights")


def without_effect(at: Document, timeout_s: float) -> Iterator[Problem]:
    """A warning for each expectation of the scenario at `at` that cannot fail; a run of it ends at `timeout_s`."""
    if at.value.get("pass_score") == 0:
        yield _warning(
            "pass_score: 0 cannot fail: this scenario passes whatever its run does",
            at.key_span(("pass_score",)),
        )
    turns = at.value.get("turns") or ()
    for part in (at, *(at.at(("turns", number)) for number in range(len(turns)))):
        if isinstance(part.value.get("expect"), dict):
            yield from _in_expectations(part.at(("expect",)), timeout_s)


def _in_expectations(at: Document, timeout_s: float) -> Iterator[Problem]:
    values = at.value
    total = (values.get("latency") or {}).get("total")
    if total is not None and total >= timeout_s:
        text = f"this bound cannot be exceeded: a run ends at its timeout of {timeout_s:g} s"
        yield _warning(text, at.span(("latency", "total")))
    for key, value in values.items():
        is_bound = key == "calls" and values.get("calls_order") == "exact"
        if key in EMPTY_HOLDS and not value and not is_bound:
            yield _warning(f"'{key}' lists nothing, so that it cannot fail", at.key_span((key,)))
    for index, item in enumerate(values.get("checks") or ()):
        if _is_always_true(item["that"]):
            text = f"'{item['that']}' reads nothing of the run, so that it cannot fail"
            yield _warning(text, at.span(("checks", index, "that")))
    for index, item in enumerate(values.get("judge") or ()):
        if item.get("threshold") == 0:
            text = "a threshold of 0 is reached by every grade, so that this judge cannot fail"
            yield _warning(text, at.span(("judge", index, "threshold")))
    weights = values.get("weights")
    if weights and not any(_weights(values, weights)):
        text = "the weight of every check is 0, so that none of them counts"
        yield _warning(text, at.key_span(("weights",)))


def _is_always_true(that: str) -> bool:
    from harness.expressions.cel import compile as compile_cel

    expression = compile_cel(that)
    try:
        return not expression.names and expression.evaluate({}) is True
    except ExpressionError:
        return False


def _weights(values: Mapping[str, Any], weights: Mapping[str, float]) -> Iterator[float]:
    """The weights of all checks. Gates count without one: they take the whole score."""
    for key, value in values.items():
        if key in ("checks", "judge"):
            yield from (item.get("weight", weights.get(key, 1)) for item in value)
        elif key not in _OPTIONS:
            yield weights.get(key, 1)
    yield from (weights.get(key, 1) for key in _GATES if key not in values)


def _warning(text: str, span: Span) -> Problem:
    return Problem("cannot-fail", text, span, severity="warning")
