"""Checks of what a run made: by expected values and schemas, CEL conditions, functions of the user, and grades."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from harness.errors import CannotEvaluate, ExpressionError
from harness.expressions.cel import ITEM, Path
from harness.matchers.json_schema import schema_errors
from harness.matchers.plain import ABSENT, kind_of
from harness.matchers.schema_flaws import keywords_of_other_types
from harness.matchers.vacuous import VacuousPart, vacuous_schema
from harness.matchers.value import compare, is_matcher, matches
from harness.scenario.checks.check import check, empty, saying_nothing
from harness.scenario.checks.finding import (
    Finding,
    difference_text,
    one_line,
    pass_or_fail,
)
from harness.scenario.mentions import Mention, Role
from harness.scenario.outcome import JSON, Observation, Origin
from harness.source.document import Document, DocumentPath

if TYPE_CHECKING:
    from harness.expressions.cel import Expression

_TYPED: Final = "say which `type` it has to be; of JSON in a text: {$json: {$schema: …}}"
_OF_ONE: Final = ("$all", "$some", "$json", "$exact")
"""Matchers whose argument is compared with the same value, or with a part of it."""
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


def _missing_keys(key: str, at: Document) -> Iterator[Mention]:
    """Yield the keys that are allowed to be missing: with a typo, they always are."""
    for path in _absent(at.value[key], (key,)):
        yield Mention(key, "absent", str(path[-1]), at.key_span(path))


def _absent(value: Any, path: DocumentPath, *, negated: bool = False) -> Iterator[DocumentPath]:
    """Yield the paths of keys that match if they are missing: `$missing: true`, and keys under `$not`."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _absent(item, (*path, index), negated=negated)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            is_matcher = str(key).startswith("$")
            if key in _OF_ONE or (key == "$not" and not negated):
                yield from _absent(item, (*path, key), negated=key == "$not")
            elif not is_matcher and (negated or item == {"$missing": True}):
                yield *path, key
            elif not is_matcher:
                yield from _absent(item, (*path, key))


def _silent_schema(key: str, expect: Mapping[str, Any], observed: Observation) -> Iterator[tuple[str, str]]:
    """Tell of a schema whose keywords all apply to other types: any text is valid under `properties`."""
    value = observed.state if key == "state_schema" else observed.output
    yield from _silent_parts(key, expect[key], value)


def _silent_matchers(key: str, expect: Mapping[str, Any], observed: Observation) -> Iterator[tuple[str, str]]:
    yield from _silent_values(key, expect[key], observed.state if key == "state" else observed.output)


def _silent_values(place: str, expected: Any, value: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(expected, Mapping):
        return
    if is_matcher(expected):
        yield from _silent_parts(place, expected.get("$schema", {}), value)
    elif isinstance(value, Mapping):
        for name, wanted in expected.items():
            if name in value:
                yield from _silent_values(f"{place}.{name}", wanted, value[name])


def _silent_parts(place: str, schema: Any, value: Any) -> Iterator[tuple[str, str]]:
    """Tell of the schema and of those of its properties, each for the value that it is compared with."""
    if keywords := keywords_of_other_types(schema, value):
        what = f"{place} does not constrain {kind_of(value)}"
        yield f"{what}: '{keywords[0]}' applies to values of another type", _TYPED
    elif isinstance(schema, Mapping) and isinstance(value, Mapping):
        for name, of_property in schema.get("properties", {}).items():
            if name in value:
                yield from _silent_parts(f"{place}.{name}", of_property, value[name])


@check(
    names=(_missing_keys,),
    vacuous=(saying_nothing,),
    untried=(_silent_matchers,),
    reads=("state",),
    exact=True,
    apart=True,
    origin=Origin.RESULT,
)
def state(expected: Any, observed: Observation) -> Finding:
    """The final state matches (mappings as subsets); else the share of leaf keys that match."""
    return _value(expected, observed.state)


@check(
    names=(_missing_keys,),
    vacuous=(saying_nothing,),
    untried=(_silent_matchers,),
    reads=("output",),
    exact=True,
    apart=True,
    origin=Origin.RESULT,
)
def output(expected: Any, observed: Observation) -> Finding:
    """The result matches (mappings as subsets); else the share of leaf keys that match."""
    return _value(expected, observed.output)


@check(names=(), vacuous=(empty,), untried=(), reads=("store",), origin=Origin.RESULT)
def store(expected: Any, observed: Observation) -> Finding:
    """The store has these items, or not (`$missing`); else the share of leaf keys that match.

    An item without a `key` is any one of its namespace.
    """
    wanted, found = {}, {}
    for item in expected:
        label = "/".join([*item["namespace"], item.get("key", "*")])
        wanted[label] = item["value"]
        values = [
            each["value"]
            for each in observed.store or ()
            if each["namespace"] == item["namespace"] and item.get("key", each["key"]) == each["key"]
        ]
        if values:
            found[label] = next((value for value in values if matches(item["value"], value)), values[0])
    return _value(wanted, found)


def _optional(key: str, at: Document) -> Iterator[Mention]:
    """Yield the properties that a schema lists but does not require."""
    schema = at.value[key]
    if isinstance(schema, Mapping) and isinstance(schema.get("properties"), Mapping):
        for name in schema["properties"]:
            if name not in schema.get("required", ()):
                yield Mention(key, "absent", name, at.key_span((key, "properties", name)))


def _vacuous_schema(key: str, expect: Mapping[str, Any]) -> Iterator[VacuousPart]:
    yield from vacuous_schema(expect[key])


@check(
    names=(_optional,),
    vacuous=(_vacuous_schema,),
    untried=(_silent_schema,),
    reads=("state",),
    origin=Origin.RESULT,
)
def state_schema(expected: Any, observed: Observation) -> Finding:
    """The final state is valid under this JSON Schema (2020-12); else 0."""
    return _valid(expected, observed.state)


@check(
    names=(_optional,),
    vacuous=(_vacuous_schema,),
    untried=(_silent_schema,),
    reads=("output",),
    origin=Origin.RESULT,
)
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


# ---------------------------------------------------------------- conditions, functions and grades


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
