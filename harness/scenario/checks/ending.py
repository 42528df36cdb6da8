"""Checks of the end of a run: its status, its failure, its pauses, its warnings and its left-over stubs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from harness.matchers.json_schema import schema_errors
from harness.matchers.plain import ABSENT
from harness.matchers.regex import last_part_matches
from harness.matchers.value import compare, is_matcher, matches
from harness.scenario.checks.finding import (
    Finding,
    as_list,
    difference_text,
    one_line,
    partial_credit,
    pass_or_fail,
    readable_diff,
)
from harness.scenario.outcome import JSON, Observation
from harness.source.display import clip
from harness.source.project import PYPROJECT

_NAME_LENGTH: Final = 60
_MOST_NAMED: Final = 5
_PLACE: Final = re.compile(r"\A[^\n]*?:\d+:\d+: ")


def status(expected: Any, observed: Observation) -> Finding:
    """`completed` (default), `interrupted`, `failed`, `timeout` or `invalid`; else 0."""
    if matches(expected, observed.status):
        return Finding(1.0, observed.status)
    message = f"expected {one_line(expected)}, was {observed.status}"
    if observed.error:
        message += f": {_failure_text(observed.error)}"
    elif observed.status == "interrupted":
        message += _pause_text(observed)
    elif observed.status == "timeout":
        message += _timeout_text(observed)
    return Finding(0.0, observed.status, message)


def _timeout_text(observed: Observation) -> str:
    """Describe a timeout: after how long, and the nodes that were scheduled but had not started."""
    begun = {*observed.visits, "__end__"}
    waiting = dict.fromkeys(
        clip(str(target), _NAME_LENGTH) for _, target in observed.routes if target not in begun
    )
    text = f": cut off by `timeout` after {observed.latency['total']:g} s of virtual time"
    return text + (f"; called and never started: {', '.join(list(waiting)[:_MOST_NAMED])}" if waiting else "")


def error(expected: Any, observed: Observation) -> Finding:
    """`{type?, message?, node?}` of the failure; else the share that hold. `null`: there was none."""
    actual = observed.error
    if not isinstance(expected, Mapping):
        return pass_or_fail(matches(expected, actual), actual, readable_diff(expected, actual))
    if actual is None:
        return Finding(0.0, None, "there was no failure")
    faults = [_error_fault(key, wanted, actual.get(key, ABSENT)) for key, wanted in expected.items()]
    return partial_credit(faults, actual)


def interrupt(expected: Any, observed: Observation) -> Finding:
    """The values with which the run paused, in order; else the share that match, of the longer of both lists.

    A list is the values in order, or the value of a single pause that is a list. A matcher may also apply to
    the list of all values (`{$len: 2}`).
    """
    actual = observed.interrupts
    wanted = as_list(expected)
    if is_matcher(expected) and matches(expected, actual):
        return Finding(1.0, actual)
    if len(actual) == 1 and isinstance(actual[0], list) and matches(expected, actual[0]):
        return Finding(1.0, actual)
    count = max(len(wanted), len(actual))
    faults = [_pause_fault(index, wanted[index:][:1], actual[index:][:1]) for index in range(count)]
    return partial_credit(faults, actual)


def warnings(expected: Any, observed: Observation) -> Finding:
    """Each of these is the text of a warning (a plain text must be equal); else the share found."""
    raised = "; ".join(map(one_line, observed.warnings)) or "none"
    faults = [
        None if any(_fits(text, wanted) for text in observed.warnings) else f"no warning {one_line(wanted)}"
        for wanted in as_list(expected)
    ]
    finding = partial_credit(faults, observed.warnings)
    message = f"{finding.message}\n  raised: {raised}"
    return finding if finding.score == 1 else replace(finding, message=message)


def never_warnings(expected: Any, observed: Observation) -> Finding:
    """None of these is the text of a warning; else 0."""
    raised = [text for text in observed.warnings if any(_fits(text, wanted) for wanted in as_list(expected))]
    return pass_or_fail(not raised, observed.warnings, "\n".join(f"warned: {text}" for text in raised))


def _fits(text: str, wanted: Any) -> bool:
    """True if a warning matches, with or without the location at its beginning."""
    return matches(wanted, text) or matches(wanted, _PLACE.sub("", text))


def unused(_: Any, observed: Observation) -> Finding:
    """No stub is left over; else 0."""
    return pass_or_fail(
        not observed.unused, observed.unused, "\n".join(f"never used: {text}" for text in observed.unused)
    )


def _pause_fault(index: int, wanted: list[Any], paused: list[Any]) -> str | None:
    """Describe the mismatch of one pause, or return None; an empty list means that there is no such pause."""
    if not wanted:
        return f"pause {index + 1}: expected none, was {one_line(paused[0])}"
    difference = readable_diff(wanted[0], paused[0] if paused else ABSENT)
    return f"pause {index + 1}: {difference}" if difference else None


def _error_fault(key: str, wanted: Any, actual: Any) -> str | None:
    if key == "node" and isinstance(wanted, str) and isinstance(actual, str):
        holds = last_part_matches(wanted, actual)
    else:
        holds = matches(wanted, actual)
    return None if holds else readable_diff({key: wanted}, {} if actual is ABSENT else {key: actual})


def _pause_text(observed: Observation) -> str:
    """Describe the nodes that wait for an answer, their questions, and how to answer."""
    paused = _paused(observed)
    if not paused:
        return ""
    nodes = list(dict.fromkeys(paused))
    values = [value for value in observed.interrupts[-len(paused) :] if value not in nodes]
    asking = f", asking: {'; '.join(map(one_line, values))}" if values else ""
    answer = one_line({"human": {clip(node, _NAME_LENGTH): "…" for node in nodes}})[1:-1]
    return (
        f": paused in {', '.join(clip(node, _NAME_LENGTH) for node in nodes)}{asking}\n"
        f"  answer under `{answer}`, or in a turn with `resume`"
    )


def _paused(observed: Observation) -> list[str]:
    """Return the nodes of the last superstep (of a turn that only resumed nodes: those) that have not been left."""
    last = as_list(observed.path[-1]) if observed.path else list(observed.latency["nodes"])
    return [node for node in last if not _was_left(node, observed.routes)] or last


def _was_left(node: str, routes: Sequence[Sequence[str]]) -> bool:
    """True if a route leads away from the node after the last one that leads to it."""
    ends = [(origin == node, target == node) for origin, target in routes]
    since = max((at + 1 for at, (_, reached) in enumerate(ends) if reached), default=0)
    return any(left for left, _ in ends[since:])


def _failure_text(failure: Mapping[str, Any]) -> str:
    where = f" (node {failure['node']})" if failure.get("node") else ""
    first, _, rest = str(failure.get("message")).partition("\n")
    return f"{failure.get('type')}: {first}{' …' if rest else ''}{where}"


def state(expected: Any, observed: Observation) -> Finding:
    """The final state matches (mappings as subsets); else the share of leaf keys that match."""
    return _value(expected, observed.state)


def output(expected: Any, observed: Observation) -> Finding:
    """The result matches (mappings as subsets); else the share of leaf keys that match."""
    return _value(expected, observed.output)


def state_schema(expected: Any, observed: Observation) -> Finding:
    """The final state is valid under this JSON Schema (2020-12); else 0."""
    return _valid(expected, observed.state)


def output_schema(expected: Any, observed: Observation) -> Finding:
    """The result is valid under this JSON Schema (2020-12); else 0."""
    return _valid(expected, observed.output)


def _value(expected: Any, actual: JSON) -> Finding:
    compared = compare(expected, actual)
    return Finding(compared.score, _expected_part(expected, actual), difference_text(compared))


def _valid(schema: Any, actual: JSON) -> Finding:
    errors = schema_errors(schema, actual)
    return pass_or_fail(not errors, actual, "\n".join(errors))


def _expected_part(expected: Any, actual: JSON) -> JSON:
    """Return the part of `actual` whose keys `expected` names."""
    if not (isinstance(expected, Mapping) and isinstance(actual, Mapping)) or is_matcher(expected):
        return actual
    return {key: _expected_part(wanted, actual[key]) for key, wanted in expected.items() if key in actual}


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
