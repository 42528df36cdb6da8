"""Perturbation: the observations of other runs, each with one change of an observed run.

A check that holds for all of them says nothing (`harness.scenario.believed`). The changes stay within the `Limits` of
what a run of this graph can do. Within them they go too far rather than not far enough: a value may become anything.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple, get_args

from harness.graph.effects import EFFECTS
from harness.matchers.plain import ABSENT
from harness.matchers.value import is_matcher, matches
from harness.scenario.checks.calls import call_matches
from harness.scenario.checks.finding import as_list, one_line
from harness.scenario.outcome import JSON, Observation, Status
from harness.units import is_number

_SHOWN: Final = 40
_LONGEST: Final = 10_000
"""The length of the longest text and list that is tried, and the largest number of visits and calls."""
_MOST: Final = {"llm_calls": 10 * _LONGEST, "input_tokens": 10**11, "output_tokens": 10**11}
"""The most that a run uses."""
_KINDS: Final[tuple[JSON, ...]] = (
    *(None, 0, 1, -1, 2, 0.5, -1e9, 1e9, "", "a", True, False, [], {}, [None], {"a": None}),
)
"""Values of every JSON type."""
_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": is_number,
}
TYPES: Final = frozenset(_TYPES)
"""The types that `Limits.output_types` may give."""


_CALL: Final = {"kind": "tool", "name": "a", "node": "a", "args": {}, "ok": True, "latency": 0.0}


class Perturbation(NamedTuple):
    """A changed observation, and the change in words: `state.count is "1"`."""

    observed: Observation
    change: str


@dataclass(frozen=True)
class Limits:
    """The facts that are the same in all runs.

    Attributes:
        seconds: the virtual time after which a run is cut off.
        always: the nodes that every run visits.
        output_types: the JSON types that keys of the output are cast to, and which are always there.
        fails: every run that counts fails.
    """

    seconds: float = math.inf
    always: Collection[str] = ()
    output_types: Mapping[str, str] = field(default_factory=dict)
    fails: bool = False


def perturb(
    observed: Observation,
    limits: Limits | None = None,
    *,
    fields: Collection[str] | None = None,
    expected: Any = None,
) -> Iterator[Perturbation]:
    """Yield changed observations; those that most checks notice come first.

    Args:
        observed: the run. It is not modified.
        limits: what no change may exceed.
        fields: the fields of the observation to change; by default, all that a change is known of.
        expected: the expected value. Its keys lead to the values to change, and its literals are tried there.
    """
    limits = limits or Limits()
    for name in _CHANGES if fields is None else fields:
        yield from _CHANGES[name](observed, limits, expected)


def literals(expected: Any) -> list[JSON]:
    """Return the texts, keys and numbers in an expected value, without duplicates."""
    return [*{(type(each), each): each for each in _literals(expected)}.values()]


def _literals(expected: Any) -> Iterator[JSON]:
    if isinstance(expected, Mapping):
        for key, value in expected.items():
            yield str(key)
            yield from _literals(value)
    elif isinstance(expected, list | tuple):
        for item in expected:
            yield from _literals(item)
    elif isinstance(expected, str | int | float | None):
        yield expected


# ---------------------------------------------------------------- values


def values_near(expected: Any, type_: str | None = None) -> Iterator[JSON]:
    """Yield values of every JSON type, or of one: plain ones, the literals of an expected value, and near ones."""
    fits = _TYPES[type_] if type_ else lambda _: True
    found = literals(expected)
    numbers = sorted({number for each in found if (number := _number(each)) is not None})
    texts = [each for each in found if isinstance(each, str)]
    counts = [each for each in _counts(expected) if each <= _LONGEST]
    near = [
        *found,
        *(each + step for each in numbers for step in (-1, 1)),
        *numbers,
        *((low + high) / 2 for low, high in pairwise(numbers)),
        *map(one_text, found),
        "".join(texts),
        *(text + "a" for text in texts),
        *("a" + text for text in texts),
        *("a" * count for count in counts),
        *([None] * count for count in counts),
        *([each] for each in found),
    ]
    yield from (value for value in (*_KINDS, *near) if fits(value))


def one_text(value: JSON) -> str:
    """Return a scalar as text: a text as it is, others as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def _number(value: JSON) -> float | None:
    """Return a number, or the one that a text is."""
    try:
        number = json.loads(value) if isinstance(value, str) else value
        return number if is_number(number) and math.isfinite(number) else None
    except (ValueError, OverflowError, RecursionError):
        return None


def _counts(expected: Any) -> list[int]:
    """Return counts: none, one, two, and those around the numbers in an expected value."""
    near = {
        math.floor(number) + step
        for each in literals(expected)
        if (number := _number(each)) is not None
        for step in (-1, 0, 1, 2)
    }
    return sorted({0, 1, 2, *(min(max(each, 0), _LONGEST) for each in near)})


def _changed(actual: Any, expected: Any, types: Mapping[str, str], at: str) -> Iterator[tuple[Any, str]]:
    """Yield other values in place of `actual`: changed where a key of `expected` leads, or as a whole."""
    leads = isinstance(expected, Mapping) and not is_matcher(expected)
    if not leads or not types:
        yield from ((value, f"{at} is {_shown(value)}") for value in _KINDS)
    if leads:
        held = actual if isinstance(actual, Mapping) else {}
        for key, wanted in expected.items():
            place = f"{at}.{key}"
            if type_ := types.get(key):
                near = values_near(wanted, type_)
                inside: Iterator[tuple[Any, str]] = ((value, f"{place} is {_shown(value)}") for value in near)
            else:
                yield {name: value for name, value in held.items() if name != key}, f"{place} is missing"
                inside = _changed(held.get(key, ABSENT), wanted, {}, place)
            yield from (({**held, key: value}, change) for value, change in inside)
    else:
        yield from ((value, f"{at} is {_shown(value)}") for value in values_near(expected))


def _shown(value: Any) -> str:
    return one_line(value, _SHOWN)


def _in_value(name: str) -> _Change:
    def changes(observed: Observation, limits: Limits, expected: Any) -> Iterator[Perturbation]:
        types = limits.output_types if name == "output" else {}
        actual = getattr(observed, name)
        for value, change in _changed(actual, expected, types, name):
            if name == "state" and isinstance(actual, Mapping) and not isinstance(value, Mapping):
                continue  # only its keys have values of any type
            yield Perturbation(observed.but(**{name: value}), change)

    return changes


def _in_list(name: str, made: Callable[[Any], Iterator[JSON]]) -> _Change:
    """Return the changes of a list: without its items, and with one more."""

    def changes(observed: Observation, _: Limits, expected: Any) -> Iterator[Perturbation]:
        yield Perturbation(observed.but(**{name: []}), f"{name} are none")
        for item in made(expected):
            added = [*(getattr(observed, name) or ()), item]
            yield Perturbation(observed.but(**{name: added}), f"{name} contain {_shown(item)}")

    return changes


def _texts(expected: Any) -> Iterator[JSON]:
    yield from map(one_text, values_near(expected, "string"))
    yield from map(one_text, literals(expected))


def _stored(expected: Any) -> Iterator[JSON]:
    for item in as_list(expected):
        for value in ({}, {"a": None}) if isinstance(item, Mapping) and "namespace" in item else ():
            yield {"namespace": item["namespace"], "key": item.get("key", "a"), "value": value}


def _statuses(observed: Observation, _: Limits, _expected: Any) -> Iterator[Perturbation]:
    for status in get_args(Status):
        if status != observed.status:
            yield Perturbation(observed.but(status=status), f"the status is {status}")


def _failures(observed: Observation, limits: Limits, expected: Any) -> Iterator[Perturbation]:
    if not limits.fails:
        yield Perturbation(observed.but(error=None), "there is no failure")
    elsewhere = {**(observed.error or {}), "node": None}
    yield Perturbation(observed.but(error=elsewhere), "it fails in no node")
    for text in _texts(expected):
        error = {"type": text, "code": None, "message": text, "node": text, "where": None, "traceback": []}
        yield Perturbation(observed.but(error=error), f"it fails: {_shown(text)}")


# ---------------------------------------------------------------- the way of the run


def _paths(observed: Observation, limits: Limits, expected: Any) -> Iterator[Perturbation]:
    """Change the path, with its visits and routes: nodes dropped, added, and visited more often."""
    ran = [name for step in observed.path for name in as_list(step)]
    always = [name for name in dict.fromkeys(ran) if name in limits.always]
    yield _along(observed, always, f"only {_shown(always)} runs" if always else "no node runs")
    for name in dict.fromkeys((*ran, *_texts(expected))):
        if name not in limits.always:
            yield _along(observed, [each for each in ran if each != name], f"{name} does not run")
        yield _along(observed, [*ran, name], f"{name} runs at the end")
        for count in _counts(expected):
            if count or name not in limits.always:
                others = [each for each in ran if each != name]
                yield _along(observed, [*others, *[name] * count], f"{name} runs {count} times")


def _along(observed: Observation, path: Sequence[str], change: str) -> Perturbation:
    ends = ["__start__", *path, "__end__"]
    visits = {name: path.count(name) for name in path}
    routes = [[one, other] for one, other in pairwise(ends)]
    return Perturbation(observed.but(path=list(path), visits=visits, routes=routes), change)


def _calls(observed: Observation, _: Limits, expected: Any) -> Iterator[Perturbation]:
    """Change the calls: dropped, repeated, with other arguments."""
    yield Perturbation(observed.but(calls=[]), "there are no calls")
    for call in (*observed.calls, *_named_calls(observed, expected), _CALL):
        others = [each for each in observed.calls if each is not call]
        for args in _arguments(call, expected):
            change = f"{call['kind']} {call['name']} has the arguments {_shown(args)}"
            yield Perturbation(observed.but(calls=[*others, {**call, "args": args}]), change)
        made = {key: value for key, value in call.items() if key != "refused"}
        for count in _counts(expected):
            change = f"only {call['kind']} {call['name']} is called, {count} times"
            yield Perturbation(observed.but(calls=[made] * count), change)


def _named_calls(observed: Observation, expected: Any) -> Iterator[dict[str, Any]]:
    """Yield a call for each `{kind: name}` and key `kind:name` in an expected value, unless there is one."""
    for item in as_list(expected):
        for key, value in item.items() if isinstance(item, Mapping) else ():
            kind, _, pattern = key.partition(":")
            if kind in EFFECTS:
                name = (value if isinstance(value, str) else pattern) or "a"
                given = {each: item[each] for each in ("node", "ok") if each in item}
                if not any(call_matches({kind: name, **given}, call) for call in observed.calls):
                    yield {**_CALL, "kind": kind, "name": name, **given}


def _arguments(call: Mapping[str, Any], expected: Any) -> Iterator[dict[str, Any]]:
    """Yield arguments that match the expected ones, each in the type that it has in this call."""
    seen = call.get("args") or {}
    for item in as_list(expected):
        wanted = item.get("args") if isinstance(item, Mapping) else None
        if is_matcher(wanted):
            yield from (value for value in values_near(wanted) if isinstance(value, dict))
            yield {str(each): each for each in literals(wanted)}
        elif isinstance(wanted, Mapping):
            yield _fitting(wanted, seen)


def _fitting(wanted: Any, seen: Any) -> Any:
    """Return a value that matches; of the type of the one that was seen, if that is a scalar."""
    if isinstance(wanted, Mapping) and not is_matcher(wanted) and scalar_type(seen) is None:
        held = seen if isinstance(seen, Mapping) else {}
        return {**held, **{key: _fitting(value, held.get(key, ABSENT)) for key, value in wanted.items()}}
    if isinstance(wanted, list) and scalar_type(seen) is None:
        return [_fitting(item, ABSENT) for item in wanted]
    type_ = scalar_type(seen)
    near = values_near(wanted, type_) if is_matcher(wanted) else ()
    return next((value for value in near if matches(wanted, value)), _like(wanted, seen))


def scalar_type(seen: Any) -> str | None:
    """Return `string`, `boolean` or `number`; None for any other value."""
    return next((name for name in ("string", "boolean", "number") if _TYPES[name](seen)), None)


def _like(value: Any, seen: Any) -> Any:
    """Return a value as text where a text was seen, and a text as number where a number was; others as they are."""
    if isinstance(seen, str):
        return one_text(value)
    if is_number(seen) and (number := _number(value)) is not None:
        return number
    return value


# ---------------------------------------------------------------- amounts


def amounts_near(expected: Any) -> list[float]:
    """Return amounts: none, one, and those around the numbers in an expected value."""
    numbers = [float(number) for each in literals(expected) if (number := _number(each)) is not None]
    near = {each + step for each in numbers for step in (-1, -1e-3, 0, 1e-3, 1)}
    middles = {(low + high) / 2 for low, high in pairwise(sorted(numbers))}
    return sorted({0.0, 1.0, *(each for each in near | middles if each >= 0)})


def _latencies(observed: Observation, limits: Limits, expected: Any) -> Iterator[Perturbation]:
    """Change how long the run and its nodes take, up to the limit. A node may run several times at once."""
    for total in _up_to(limits.seconds, expected):
        change = f"the run takes {total:g} s" + (" (its timeout)" if total == limits.seconds else "")
        yield Perturbation(observed.but(latency={**observed.latency, "total": total}), change)
    at_once = (
        {
            name: max((as_list(step).count(name) for step in observed.path), default=1) or 1
            for name in observed.latency["nodes"]
        }
        if observed.has_supersteps
        else {}
    )
    for name in dict.fromkeys((*observed.latency["nodes"], *_names(expected))):
        most = limits.seconds * at_once.get(name, 1) if observed.has_supersteps else math.inf
        for seconds in _up_to(most, expected):
            nodes = {**observed.latency["nodes"], name: seconds}
            change = f"{name} takes {seconds:g} s"
            yield Perturbation(observed.but(latency={**observed.latency, "nodes": nodes}), change)


def _names(expected: Any) -> list[str]:
    return [each for each in literals(expected) if isinstance(each, str)]


def _up_to(most: float, expected: Any) -> list[float]:
    found = [each for each in amounts_near(expected) if each <= most]
    return [most, *found] if math.isfinite(most) else found[::-1]


def _usages(observed: Observation, _: Limits, expected: Any) -> Iterator[Perturbation]:
    for name in ("llm_calls", "input_tokens", "output_tokens", "cost"):
        for amount in reversed(amounts_near(expected)):
            value = amount if name == "cost" else min(math.ceil(amount), _MOST[name])
            usage = {**observed.usage, name: value}
            yield Perturbation(observed.but(usage=usage), f"{name} is {value:g}")


_Change = Callable[[Observation, Limits, Any], Iterator[Perturbation]]
_CHANGES: Final[Mapping[str, _Change]] = {
    "status": _statuses,
    "error": _failures,
    "interrupts": _in_list("interrupts", lambda expected: values_near(expected)),
    "path": _paths,
    "state": _in_value("state"),
    "output": _in_value("output"),
    "store": _in_list("store", _stored),
    "calls": _calls,
    "latency": _latencies,
    "usage": _usages,
    "warnings": _in_list("warnings", _texts),
    "unused": _in_list("unused", _texts),
}
FIELDS: Final = frozenset(_CHANGES)
"""The fields of an observation that can be changed."""
