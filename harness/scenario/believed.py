"""Detects checks that no run could fail: each is tried on other observations than the one that it passed.

The first change of the run that fails a check acquits it; one that none fails is a warning (`cannot-fail`). What the
text of a scenario shows by itself is in `vacuous`. `custom` and `judge` are never called again. A `$not` that only
values of another type fail is a warning, too (`untried`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, NamedTuple

from harness.errors import ExpressionError, Problem
from harness.graph.events import EventGraph
from harness.graph.model import START, Graph
from harness.matchers.value import MATCHERS, is_matcher, matches
from harness.scenario.checks.check import Check
from harness.scenario.checks.conditions import bindings
from harness.scenario.checks.finding import one_line
from harness.scenario.document_expect import checks_in
from harness.scenario.model import Expectations, Scenario
from harness.scenario.outcome import Observation
from harness.scenario.perturbation import (
    Limits,
    Perturbation,
    literals,
    one_text,
    perturb,
    scalar_type,
    values_near,
)
from harness.scenario.score import latency_penalty

_MOST_TRIED: Final = 2000
"""A check that more changes are known for is believed."""
_MOST_TOLD: Final = 3
_SHOWN: Final = 40
_MATCHERS: Final = frozenset(MATCHERS)
_OF_ANY_TYPE: Final = frozenset(("$type", "$schema", "$cel", "$in", "$any", "$missing"))
"""Matchers that may be meant for values of several types."""
_UNCLEAR: Final = frozenset(
    (
        *("$regex", "$cel", "$json", "$ref", "$dynamicRef", "pattern", "patternProperties", "format"),
        *("propertyNames", "additionalProperties", "minProperties", "maxProperties", "dependentRequired"),
        *("dependentSchemas", "unevaluatedItems", "unevaluatedProperties", "items", "prefixItems"),
        *("contains", "uniqueItems", "multipleOf", "allOf", "anyOf", "oneOf", "not", "if"),
    )
)
"""Keys that need a particular text or structure, which no list of literals has: a part with one is believed."""
_READ: Final = re.compile(
    r"\b(?:latency\.total|usage\.(?:llm_calls|input_tokens|output_tokens|cost)"
    r"|size\((?P<list>path|calls)\)|(?P<error>error)(?= *[!=]= *null\b))"
)
"""The terms of a condition that are tried: amounts, the lengths of lists, and if there is a failure."""
_VARIABLE: Final = re.compile(r"\b(latency|usage|path|calls|error)\b")
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_ARITHMETIC: Final = re.compile(r"[+*/%]|[\w)\]] *-")


class _Part(NamedTuple):
    """A part of an expected value that can fail by itself: its name, and the value with this part alone."""

    name: str
    expected: Any


def unfailing(
    scenario: Scenario, graph: Graph | None, expected: Sequence[tuple[Observation, Expectations]]
) -> Iterator[Problem]:
    """Yield a warning for each part of a check that no change of its run fails, unless its text told.

    Args:
        scenario: the scenario, which passed.
        graph: the graph that ran.
        expected: the observation and the expectations of each turn and, last, of the whole run.
    """
    told = [warning.span for warning in scenario.warnings if warning.code == "cannot-fail"]
    for observed, expect in expected:
        found = unfailing_parts(expect, observed, _limits(scenario, graph, observed, expect))
        yield from (each for each in found if each.span not in told)


def unfailing_parts(expect: Expectations, observed: Observation, limits: Limits) -> Iterator[Problem]:
    """Yield a warning for each part of a check that holds for a run, and for all others within the limits."""
    for key, check in checks_in(expect.values):
        if check.exact and _keys(expect.values[key]).isdisjoint(_MATCHERS):
            continue
        if any(part.path == () for rule in check.vacuous for part in rule(key, expect.values)):
            continue  # its text tells, at its key
        for index, part in enumerate(_parts(key, expect.values[key], check) if check.reads else ()):
            if tried := _tried(key, check, part, expect, observed, limits):
                span = expect.spans.get(f"{key}[{index}]", expect.spans.get(key))
                yield Problem("cannot-fail", f"{part.name} cannot fail: {tried}", span, severity="warning")
            elif key in ("state", "output"):
                for text in _of_other_type(part.expected, getattr(observed, key), key):
                    yield Problem("untried", text, expect.spans.get(key), severity="warning")


def _tried(
    key: str, check: Check, part: _Part, expect: Expectations, observed: Observation, limits: Limits
) -> str:
    """Return what a part was tried on in vain; "" if it can fail."""
    if key == "checks":
        return _tried_condition(part.expected["that"], observed, limits)
    keys = _keys(part.expected)
    if (check.exact and keys.isdisjoint(_MATCHERS)) or not keys.isdisjoint(_UNCLEAR):
        return ""
    if "$type" in keys or "type" in keys:  # what a manifest declares may well be tested
        limits = replace(limits, output_types={})
    guide = _guide(part.expected) if key in ("state_schema", "output_schema") else part.expected
    more = [expect.values[check.option]] if check.option in expect.values else []
    changes: list[str] = []
    for changed, change in islice(perturb(observed, limits, fields=check.reads, expected=guide), _MOST_TRIED):
        if _fails(key, check, part, changed, limits, more):
            return ""
        changes.append(change)
    return _told(changes)


def _of_other_type(expected: Any, actual: Any, place: str) -> Iterator[str]:
    """Tell of each `$not` that holds for all values of the type of the actual one.

    Of a plain value this is told if both are the same but for their types: another one may be a sentinel.
    """
    if not is_matcher(expected):
        if isinstance(expected, Mapping) and isinstance(actual, Mapping):
            for key, wanted in expected.items():
                if key in actual:
                    yield from _of_other_type(wanted, actual[key], f"{place}.{key}")
        elif isinstance(expected, list) and isinstance(actual, list):
            for index, (wanted, item) in enumerate(zip(expected, actual, strict=False)):
                yield from _of_other_type(wanted, item, f"{place}[{index}]")
        return
    excluded, type_ = expected.get("$not"), scalar_type(actual)
    if excluded is None or not type_ or not _OF_ANY_TYPE.isdisjoint(_keys(excluded)):
        return
    if is_matcher(excluded):
        may_match = type_ == "string" and not _UNCLEAR.isdisjoint(_keys(excluded))
    else:
        may_match = one_text(excluded) != one_text(actual) or excluded == actual
    if not may_match and not any(matches(excluded, value) for value in values_near(excluded, type_)):
        shown = one_line(excluded, _SHOWN)
        yield f"{place} is {one_line(actual, _SHOWN)}, of another type than what {shown} matches"


def _told(changes: Sequence[str]) -> str:
    if not changes or len(changes) == _MOST_TRIED:
        return ""
    shown = list(dict.fromkeys(changes))
    more = f", and for {len(shown) - _MOST_TOLD} other runs" if len(shown) > _MOST_TOLD else ""
    return f"it also holds where {'; where '.join(shown[:_MOST_TOLD])}{more}"


def _fails(
    key: str, check: Check, part: _Part, observed: Observation, limits: Limits, more: Iterable[Any]
) -> bool:
    """True if a part does not hold, or cannot be evaluated."""
    if key == "latency" and "total" in part.expected:
        return latency_penalty(observed, Expectations({key: part.expected}), limits.seconds) > 0
    try:
        finding = check.function(part.expected, observed, *more)
    except Exception:  # as in `run_checks`, where it is an error of the check
        return True
    return finding is None or finding.score < 1


def _limits(scenario: Scenario, graph: Graph | None, observed: Observation, expect: Expectations) -> Limits:
    """Return what is the same in all runs of a graph that end as expected."""
    completes = observed.status == expect.values.get("status", "completed") == "completed"
    if graph is None or not completes:
        return Limits(scenario.timeout_s, fails=expect.values.get("status") in ("failed", "invalid"))
    always = () if scenario.conversation else _entries(graph)
    return Limits(scenario.timeout_s, frozenset(always), graph.output_types)


def _entries(graph: Graph) -> Iterator[str]:
    """Yield the nodes that every run begins with."""
    if isinstance(graph, EventGraph) or START in graph.routers or graph.entries:
        return
    for edge in graph.edges_from(START):
        if edge.condition is None and not edge.on_error:
            yield edge.target


def _parts(key: str, value: Any, check: Check) -> Iterator[_Part]:
    """Yield the parts of the value of a check that can fail by themselves."""
    if not check.apart:
        yield _Part(key, value)
    elif isinstance(value, list | tuple):
        yield from (
            _Part(f"{key}[{index}]", item if check.items else [item]) for index, item in enumerate(value)
        )
    else:
        yield from _leaves(key, value)


def _leaves(name: str, value: Any) -> Iterator[_Part]:
    """Yield the values that a mapping leads to, each in its place, and the matchers that `$all` lists."""
    if is_matcher(value) and isinstance(items := value.get("$all"), list):
        yield from (part for item in items for part in _leaves(name, item))
    elif isinstance(value, Mapping) and value and not is_matcher(value):
        for key, item in value.items():
            yield from (_Part(part.name, {key: part.expected}) for part in _leaves(f"{name}.{key}", item))
    else:
        yield _Part(name, value)


def _keys(expected: Any) -> set[Any]:
    """Return all keys in an expected value."""
    if isinstance(expected, list | tuple):
        return set().union(*(_keys(item) for item in expected if not isinstance(item, str)))
    return set(expected).union(*map(_keys, expected.values())) if isinstance(expected, Mapping) else set()


def _guide(schema: Any) -> Any:
    """Return the properties of a schema as keys that lead to values, with the literals to try there."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return {name: _guide(each) for name, each in properties.items()} if properties else literals(schema)


def _tried_condition(source: str, observed: Observation, limits: Limits) -> str:
    """Return what a condition was tried on in vain. What is not `_READ` has no value then.

    In CEL, `… || true` is true even if the other side has no value. So a condition that holds without these values
    holds whatever they are.
    """
    from harness.expressions.cel import compile as compile_cel
    from harness.expressions.inspection import always_true_reason

    if why := always_true_reason(source):
        return f"it {why}"
    reads = sorted({found[0] for found in _READ.finditer(source)})
    read_otherwise = set(_VARIABLE.findall(_READ.sub("", source)))
    reads = [each for each in reads if _field(each) not in read_otherwise]
    if not reads or _ARITHMETIC.search(source):
        return ""
    expression, changes = compile_cel(source), []
    numbers = [float(each) for each in _NUMBER.findall(source)]
    fields = {_field(each) for each in reads}
    for changed, change in islice(_combined(observed, reads, limits, numbers), _MOST_TRIED):
        seen = {name: value for name, value in bindings(changed).items() if name in fields}
        try:
            if expression.evaluate(seen) is not True:
                return ""
        except ExpressionError:
            return ""
        changes.append(change)
    return _told(changes)


def _field(read: str) -> str:
    """Return the field of the observation that a condition reads by such a term."""
    return read.removeprefix("size(").removesuffix(")").partition(".")[0]


def _combined(
    observed: Observation, reads: Sequence[str], limits: Limits, numbers: Sequence[float]
) -> Iterator[Perturbation]:
    """Yield all combinations of what is read."""
    if not reads:
        yield Perturbation(observed, "")
        return
    field = _field(reads[0])
    wanted = [*reads[0].partition(".")[2:], *numbers]
    for changed, change in perturb(observed, limits, fields=[field], expected=wanted):
        for further, more in _combined(changed, reads[1:], limits, numbers):
            yield Perturbation(further, ", ".join(filter(None, (change, more))))
