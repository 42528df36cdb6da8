"""Checks by CEL conditions, by functions of the user, and by grades of models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from harness.errors import CannotEvaluate, ExpressionError
from harness.expressions.cel import ITEM, Path
from harness.matchers.plain import ABSENT
from harness.matchers.vacuous import VacuousPart
from harness.scenario.checks.check import check, empty
from harness.scenario.checks.finding import Finding, one_line, pass_or_fail
from harness.scenario.mentions import Mention, Role
from harness.scenario.outcome import JSON, Observation, Origin
from harness.source.document import Document

if TYPE_CHECKING:
    from harness.expressions.cel import Expression

DEFAULT_THRESHOLD: Final = 0.5
_LOOKUP_ROLES: Final[Mapping[tuple[Path, bool], Role]] = {
    (("path",), False): "node",
    (("path", ITEM), True): "node",
    (("visits",), False): "node",
    (("latency", "nodes"), False): "timed",
    (("state",), False): "absent",
    (("output",), False): "absent",
    (("calls", ITEM, "kind"), True): "kind",
    (("calls", ITEM, "name"), True): "anything",
    (("calls", ITEM, "node"), True): "caller",
}
"""The role of a name that a CEL condition looks up, by (path, is_value); see `NameLookup`."""


def _looked_up(key: str, at: Document) -> Iterator[Mention]:
    from harness.expressions.inspection import looked_up_names

    for index, item in enumerate(at.value[key]):
        for lookup in looked_up_names(item["that"]):
            if role := _LOOKUP_ROLES.get((lookup.path, lookup.is_value)):
                yield Mention(key, role, lookup.name, at.span((key, index, "that")))


def _of_nothing(key: str, expect: Mapping[str, Any], observed: Observation) -> Iterator[tuple[str, str]]:
    """Tell of conditions on all items of a list that is empty."""
    from harness.expressions.cel import compile as compile_cel
    from harness.expressions.inspection import universal_ranges

    for item in expect[key]:
        for source in universal_ranges(item["that"]):
            try:
                items = compile_cel(source).evaluate(bindings(observed))
            except ExpressionError:  # the check itself reports it
                continue
            if not items:
                text = f"'{item['that']}' holds for nothing, since {source} is empty"
                yield text, f"add `size({source}) > 0`"


@check(
    names=(_looked_up,),
    vacuous=(empty,),
    untried=(_of_nothing,),
    reads=("latency", "usage"),
    apart=True,
    origin=Origin.RESULT,
    items=True,
)
def condition(expected: Mapping[str, Any], observed: Observation, _: int) -> Finding:
    """One item of `checks`: the CEL expression `that` is true; else 0.

    Raises:
        CannotEvaluate: it has no value, or one that is not a boolean.
    """
    from harness.expressions.cel import compile as compile_cel

    source = expected["that"]
    sees = bindings(observed)
    try:
        expression = compile_cel(source)
        result = expression.evaluate(sees)
    except ExpressionError as error:
        hint = "\n  has(…) asks for what may be absent" if "no such key" in str(error) else ""
        raise CannotEvaluate(f"{source}: {error}{hint}") from None
    values = _values_of(expression, sees)
    if not isinstance(result, bool):
        raise CannotEvaluate(f"{source} is {one_line(result)}, neither true nor false{values}")
    return pass_or_fail(result, result, f"{source} is false{values}")


@check(names=(), vacuous=(empty,), untried=(), reads=(), origin=Origin.RESULT, items=True)
def custom(expected: Mapping[str, Any], observed: Observation, index: int) -> Finding:
    """One item of `custom`: the score that the function returned.

    Broken if it raised, or returned something else.
    """
    if index >= len(observed.custom_verdicts):
        return Finding(0.0, None, f"{expected['call']} was not asked: the run ended before")
    found = observed.custom_verdicts[index]
    reason = found.reason or ("" if found.score == 1 else f"{expected['call']} gave {found.score:g}")
    return Finding(found.score, found.score, reason, broken=found.broken)


def _any_grade(key: str, expect: Mapping[str, Any]) -> Iterator[VacuousPart]:
    one = isinstance(expect[key], Mapping)
    for index, item in enumerate([expect[key]] if one else expect[key]):
        if item.get("threshold") == 0:
            text = "every grade reaches a threshold of 0, so this judge cannot fail"
            yield VacuousPart(("threshold",) if one else (index, "threshold"), text)


@check(names=(), vacuous=(empty, _any_grade), untried=(), reads=(), origin=Origin.RESULT, items=True)
def judge(expected: Mapping[str, Any], observed: Observation, index: int) -> Finding:
    """One item of `judge`: a model's grade is at least `threshold` (default 0.5); else its grade.

    Broken if the run lacks the material that the metric requires.
    """
    grade = str(index)
    metric = f"{expected['metric']}: " if "metric" in expected else ""
    if grade in observed.ungraded:
        return Finding(0.0, None, f"{metric}cannot be judged: {observed.ungraded[grade]}", broken=True)
    if grade not in observed.grades:
        return Finding(0.0, None, "was not graded")
    value, reason = observed.grades[grade]
    value = 0.0 if math.isnan(value) else min(max(float(value), 0.0), 1.0)
    threshold = expected.get("threshold", DEFAULT_THRESHOLD)
    actual = {"metric": expected["metric"]} if metric else {}
    actual |= {"grade": value, "reason": reason}
    if value >= threshold:
        return Finding(1.0, actual)
    # A grade of 1 below a threshold above 1 must not pass.
    message = f"{metric}grade {value:g} is below {threshold:g}: {reason}"
    return Finding(min(value, math.nextafter(1, 0)), actual, message)


def bindings(observed: Observation) -> dict[str, JSON]:
    """Return the variables of a condition, as in a results line.

    Seconds and cost are doubles even if they are whole.
    """
    latency, usage = observed.latency, observed.usage
    nodes = {node: float(seconds) for node, seconds in latency.get("nodes", {}).items()}
    return {
        "state": observed.state,
        "output": observed.output,
        "path": observed.path,
        "calls": observed.calls,
        "visits": observed.visits,
        "latency": {"total": float(latency.get("total", 0)), "nodes": nodes},
        "usage": {**usage, "cost": float(usage.get("cost") or 0)},
        "error": observed.error,
    }


def _values_of(expression: Expression, sees: Mapping[str, JSON]) -> str:
    """Return the values of the names in a condition as text, one per line, for the message of a failed check."""
    fields = {f"{name}.{field}": _field(sees.get(name), field) for name, field in sorted(expression.reads)}
    apart = sorted(set(expression.names) - {name for name, _ in expression.reads})
    known = {**{name: sees[name] for name in apart if name in sees}, **fields}
    return "".join(f"\n  {name} = {one_line(value)}" for name, value in known.items() if value is not ABSENT)


def _field(value: JSON, field: str) -> Any:
    return value.get(field, ABSENT) if isinstance(value, Mapping) else ABSENT
