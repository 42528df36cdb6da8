"""The smallest changes of a failed expectation with which it would hold.

A literal is replaced by what the run has there. A matcher keeps its name, and its argument changes where only one
other would do (`$len: 3` → `$len: 2`); everything else is left to a person.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from harness.errors import CannotEvaluate, FormatError
from harness.matchers.plain import ABSENT
from harness.matchers.regex import last_part_matches as is_node
from harness.matchers.value import is_matcher, matches
from harness.report.encoding import encode
from harness.scenario.believed import unfailing_parts
from harness.scenario.checks.calls import (
    ALIGNMENTS,
    OTHER_KEYS,
    call_matches,
    common_subsequence,
)
from harness.scenario.checks.finding import as_list
from harness.scenario.document_expect import CHECKS, Expect
from harness.scenario.model import Expectations
from harness.scenario.outcome import Observation
from harness.scenario.perturbation import Limits
from harness.source.document import DocumentPath, parse
from harness.source.editing import changed
from harness.source.models import validate
from harness.units import is_number


class Change(NamedTuple):
    """A new value at a path of the `expect` mapping; `BY_HAND` if only a person can tell it."""

    path: DocumentPath
    new: Any


BY_HAND: Final = object()


def changes(expect: Mapping[str, Any], key: str, actual: Any) -> list[Change]:
    """Return the changes with which the check `key` of `expect` would hold.

    Args:
        expect: the expected values, by check.
        key: the check that failed.
        actual: what the check found (`CheckResult.actual`), not cut.
    """
    wanted, at = expect[key], (key,)
    new: Any
    if key == "error":
        if actual is None or not isinstance(wanted, Mapping):
            return [Change(at, BY_HAND)]
        failing = actual.get("node") or ""
        if isinstance(node := wanted.get("node"), str) and is_node(node, failing):
            actual = {**actual, "node": node}
        return [*_value(wanted, actual, at)]
    if key in ("visits", "call_counts", "state", "output"):
        return [*_value(wanted, actual, at)]
    if key in ("max_visits", "usage"):
        return [*_bounds(wanted, actual, at)]
    if key == "latency":
        return [*_bounds(wanted.get("nodes") or {}, actual, (key, "nodes"))]
    if key == "store":
        found = {
            "/".join([*item["namespace"], item.get("key", "*")]): index for index, item in enumerate(wanted)
        }
        return [
            change
            for label, index in found.items()
            for change in _value(wanted[index]["value"], actual.get(label, ABSENT), (key, index, "value"))
        ]
    if key == "interrupt":
        is_one = len(actual) == 1 and not isinstance(wanted, list) and not is_matcher(wanted)
        return [*_value(wanted, actual[0] if is_one else actual, at)]
    if key == "calls":
        new = _calls(wanted, actual, expect.get("calls_order", "in_order"))
    else:
        make = _WHOLE.get(key)
        new = BY_HAND if make is None else make(wanted, actual)
    return [Change(at, BY_HAND if _is_open(new) else new)] if new != wanted else []


def _value(expected: Any, actual: Any, at: DocumentPath) -> Iterator[Change]:
    """Yield the changes with which an expected value would match."""
    if _fits(expected, actual):
        return
    if is_matcher(expected):
        ((name, argument),) = expected.items()
        yield from _argument(name, argument, actual, (*at, name))
    elif isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key, value in expected.items():
            yield from _value(value, actual.get(key, ABSENT), (*at, key))
    elif isinstance(expected, list) and isinstance(actual, list):
        pairs = common_subsequence(expected, actual, _fits)
        if len(expected) != len(actual) or len(pairs) > sum(map(_fits, expected, actual)):
            yield Change(at, _items(expected, actual, pairs))
            return
        for index, value in enumerate(expected):
            yield from _value(value, actual[index], (*at, index))
    elif actual is ABSENT:
        yield Change(at, {"$missing": True} if len(at) > 1 else BY_HAND)
    else:
        yield Change(at, _literal(actual))


def _fits(expected: Any, actual: Any) -> bool:
    try:
        return matches(expected, actual)
    except CannotEvaluate:
        return False


def _argument(name: str, argument: Any, actual: Any, at: DocumentPath) -> Iterator[Change]:
    """Yield the changes with which a matcher would match, if they are the only ones."""
    if name == "$all" and isinstance(argument, list):
        for index, item in enumerate(argument):
            yield from _value(item, actual, (*at, index))
    elif name == "$len" and isinstance(actual, str | list | Mapping):
        yield from _value(argument, len(actual), at)
    elif name == "$json" and isinstance(actual, str) and (parsed := _parsed(actual)) is not ABSENT:
        yield from _value(argument, parsed, at)
    elif name == "$exact" and isinstance(actual, list | Mapping):
        yield Change(at, actual)
    elif name == "$approx" and is_number(actual):
        yield Change((*at, "value"), actual)
    elif name in ("$gte", "$lte") and is_number(actual) and is_number(argument):
        yield Change(at, actual)
    else:
        yield Change(at, BY_HAND)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return ABSENT


def _literal(actual: Any) -> Any:
    """Return an expected value that matches this one. An empty mapping would match every mapping."""
    return {"$exact": {}} if actual == {} else actual


def _items(expected: list[Any], actual: list[Any], pairs: Iterable[tuple[int, int]]) -> list[Any]:
    """Return the items of a list: expected ones where they match, and else with the keys that they have."""
    known = {index: expected[at] for at, index in pairs}
    plain = [item for item in expected if isinstance(item, Mapping) and not is_matcher(item)]
    keys = {key for item in plain for key in item} if len(plain) == len(expected) else set()
    return [known.get(index, _kept(item, keys)) for index, item in enumerate(actual)]


def _kept(item: Any, keys: set[str]) -> Any:
    kept = {key: value for key, value in item.items() if key in keys} if isinstance(item, Mapping) else {}
    return kept or _literal(item)


def _bounds(bounds: Mapping[str, Any], actual: Mapping[str, Any], at: DocumentPath) -> Iterator[Change]:
    over = (name for name, most in bounds.items() if (actual.get(name) or 0) > most)
    return (Change((*at, name), short(actual[name])) for name in over)


def short(amount: float) -> float:
    """Return an amount as people write it: without the fraction of a whole one."""
    return int(amount) if amount == int(amount) else amount


# ---------------------------------------------------------------- lists of what happened


def _gaps(
    expected: Sequence[Any], pairs: Iterable[tuple[int, int]], length: int
) -> Iterator[tuple[int | None, Sequence[int], range]]:
    """Yield the expected items between those that were found, with what happened there, each before a found item."""
    before = (-1, -1)
    for pair in (*pairs, (len(expected), length)):
        yield (
            pair[0] if pair[0] < len(expected) else None,
            range(before[0] + 1, pair[0]),
            range(before[1] + 1, pair[1]),
        )
        before = pair


def _includes(expected: Sequence[str], path: Sequence[Any]) -> list[str]:
    """Return the expected nodes that ran, with those that ran in place of others."""
    ran = [name for step in path for name in as_list(step)]
    found: list[str] = []
    for item, missing, instead in _gaps(expected, common_subsequence(expected, ran, str.__eq__), len(ran)):
        found += [ran[index] for index in instead] if missing else []
        found += [] if item is None else [expected[item]]
    return found


def _calls(expected: Sequence[Any], made: Sequence[Any], order: str) -> list[Any]:
    """Return the expected calls, those that were not found with the properties of what was called in their place."""

    def found(item: Any, call: Any) -> bool:
        return call_matches(item, call) and (not call.get("refused") or item.get("ok") is False)

    pairs = ALIGNMENTS[order](expected, made, found)  # type: ignore[index]
    if order == "any":
        taken, places = {index for _, index in pairs}, dict(pairs)
        left = [index for index in range(len(made)) if index not in taken]
        instead = _instead(
            expected, [at for at in range(len(expected)) if at not in places], made, left, every=False
        )
        return [expected[at] for at in places] + instead
    result = []
    for item, missing, between in _gaps(expected, pairs, len(made)):
        if missing or order == "exact":
            result += _instead(expected, missing, made, between, every=order == "exact")
        result += [] if item is None else [expected[item]]
    return result


def _instead(
    expected: Sequence[Any],
    missing: Sequence[int],
    made: Sequence[Any],
    between: Sequence[int],
    *,
    every: bool,
) -> list[Any]:
    """Return what was called in place of missing calls: all of it, or what is of their kinds."""
    kinds = {_kind(expected[at]) for at in missing}
    shown = [made[index] for index in between if every or made[index]["kind"] in kinds]
    named = dict(
        common_subsequence(shown, [expected[at] for at in missing], lambda call, item: _is_named(item, call))
    )
    has_args = any("args" in item for item in expected)
    return [
        _called(expected[missing[named[at]]] if at in named else None, call, has_args)
        for at, call in enumerate(shown)
    ]


def _kind(item: Mapping[str, Any]) -> str:
    return next(iter(item.keys() - set(OTHER_KEYS)), "")


def _is_named(item: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    return call_matches({key: value for key, value in item.items() if key not in OTHER_KEYS}, call)


def _called(item: Mapping[str, Any] | None, call: Mapping[str, Any], has_args: bool) -> dict[str, Any]:
    """Return an expected call as it was made; a new one has its arguments if others have theirs."""
    if item is None:
        made = {
            call["kind"]: call.get("name"),
            **({"args": call["args"]} if has_args and call.get("args") else {}),
        }
        return made if call.get("ok", True) else {**made, "ok": False}
    seen = {"node": call.get("node"), "ok": call.get("ok", True), "args": call.get("args")}
    new: Any = dict(item)
    for key in seen.keys() & item.keys():
        if not call_matches({_kind(item): "*", key: item[key]}, call):
            for path, value in _value(item[key], seen[key], ()):
                new = changed(new, (key, *path), value)
    return dict(new)


def _is_open(value: Any) -> bool:
    """True if a part of a value has to be written by hand."""
    if isinstance(value, list | dict):
        return any(map(_is_open, value.values() if isinstance(value, dict) else value))
    return value is BY_HAND


def _without(expected: Sequence[Any], happened: Callable[[Any], bool]) -> list[Any]:
    return [item for item in expected if not happened(item)]


_WHOLE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "status": lambda _, status: status,
    "path": lambda _, path: path,
    "path_includes": _includes,
    "never": lambda nodes, path: _without(nodes, [n for step in path for n in as_list(step)].__contains__),
    "never_calls": lambda calls, made: _without(
        calls, lambda item: any(call_matches(item, call) for call in made)
    ),
    "never_warnings": lambda texts, raised: _without(
        texts, lambda item: any(matches(item, text) for text in raised)
    ),
}
"""Checks whose value changes as a whole."""


@dataclass(frozen=True)
class Finding:
    """A failed check.

    Attributes:
        expect: the expected values of its run or turn, by check.
        key: the check.
        actual: what it found.
        observed: the run or turn, as far as it is known.
        limits: what is the same in all runs.
        above: the path of `expect` in the scenario.
        is_total: it is the bound of the latency of the whole run, which is no check.
    """

    expect: Mapping[str, Any]
    key: str
    actual: Any
    observed: Observation
    limits: Limits
    above: DocumentPath
    is_total: bool = False

    def changes(self) -> list[Change]:
        """Return the changes with which the check would hold."""
        if self.is_total:
            return [Change(("latency", "total"), short(self.actual))]
        return changes(self.expect, self.key, self.actual)

    def objection(self, path: DocumentPath, new: Any) -> str:
        """Return why a new value at a path of `expect` cannot be written; "" if it can be."""
        value = changed(self.expect[self.key], path[1:], new)
        try:
            written = parse(encode({self.key: value}), file="value", json=True, error=FormatError)
            validate(Expect, written, error=FormatError)
        except FormatError as error:
            return error.problems[0].message
        left = changes({**self.expect, self.key: value}, self.key, self.actual) if not self.is_total else ()
        if any(each.path[: len(path)] == path for each in left):
            return "it does not hold for this run"
        told = [*self._always(value)]
        before = [*self._always(self.expect[self.key])] if told else []
        return next((text for text in told if text not in before), "")

    def _always(self, value: Any) -> Iterator[str]:
        """Yield what of a value any run satisfies."""
        check = CHECKS[self.key]
        expect = {self.key: value}
        expect |= {check.option: self.expect[check.option]} if check.option in self.expect else {}
        yield from (part.message for rule in check.vacuous for part in rule(self.key, expect))
        for problem in unfailing_parts(Expectations(expect), self.observed, self.limits):
            yield problem.message
