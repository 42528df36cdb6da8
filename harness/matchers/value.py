"""Comparison of an expected value, which may contain matchers, with an actual value.

    a plain value     equals (`1` is `1.0`, but `true` is not `1`; text is compared exactly)
    a mapping         a mapping that contains it
    a list            a list of the same length, item by item
    {$name: argument} a mapping whose only key starts with `$`: the matcher of that name in `MATCHERS`

The actual value of a missing key is `ABSENT`. Only `$missing: true` matches it; every other matcher fails, `$not` and
`$any` too, since they test a value that exists (`null` does).

Partial scores count *leaves*. A matcher and a plain value are one leaf each; a mapping and a list have the leaves of
their items, and one leaf if they are empty. If the actual value is not a mapping, or is a list of another length, all
leaves below it fail at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import islice
from typing import Any, Final, NamedTuple
from unicodedata import normalize

from harness.errors import CannotEvaluate, FormatError, Problem
from harness.matchers import plain
from harness.matchers.plain import ABSENT, Kind, Test, bad_argument, kind_of, matcher, shown
from harness.source.display import did_you_mean

MISMATCHES_KEPT: Final = 100
"""Maximum number of mismatches that are kept; there may be millions."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A place where the values differ. `path` is like `messages[2].content`, and empty for the whole value."""

    path: str
    expected: Any
    actual: Any
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


def matches(expected: Any, actual: Any) -> bool:
    """True if `actual` matches `expected`.

    Raises:
        FormatError: a matcher in `expected` is malformed.
        CannotEvaluate: a `$cel` expression in it has no value for `actual`.
    """
    return all(leaf.mismatch is None for leaf in _leaves(expected, actual, None, subset=True))


class Comparison(NamedTuple):
    """The result of `compare`.

    Attributes:
        score: the share of leaves (0 to 1) that match.
        mismatches: the first `MISMATCHES_KEPT` mismatches.
        mismatch_count: the number of all mismatches.
    """

    score: float
    mismatches: list[Mismatch]
    mismatch_count: int


def compare(expected: Any, actual: Any) -> Comparison:
    """Compare leaf by leaf. The score is 1 exactly when `matches` is true.

    Raises:
        FormatError: a matcher in `expected` is malformed.
        CannotEvaluate: a `$cel` expression in it has no value for `actual`.
    """
    total = missed = count = 0
    found: list[Mismatch] = []
    for leaf in _leaves(expected, actual, None, subset=True):
        total += leaf.leaves
        if leaf.mismatch is not None:
            missed += leaf.leaves
            count += 1
            if len(found) < MISMATCHES_KEPT:
                found.append(leaf.mismatch())
    return Comparison((total - missed) / total, found, count)


@dataclass(frozen=True, slots=True)
class MalformedMatcher:
    """A malformed matcher; `path` leads to its argument, or to its key if its name is wrong (`on_name`)."""

    path: tuple[str | int, ...]
    message: str
    hint: str = ""
    code: str = "bad-matcher"
    on_name: bool = False


def malformed(expected: Any, path: tuple[str | int, ...] = ()) -> Iterator[MalformedMatcher]:
    """Yield each malformed matcher in `expected`; of nested ones, only the inner."""
    if is_matcher(expected):
        ((name, argument),) = expected.items()
        inner = list(malformed(argument, (*path, name))) if name in NESTING else []
        yield from inner or _flaws_of(name, argument, (*path, name))
    elif isinstance(expected, Mapping):
        yield from _misplaced_matchers(expected, path)
        for key, value in expected.items():
            yield from malformed(value, (*path, key))
    elif isinstance(expected, list | tuple):
        for index, item in enumerate(expected):
            yield from malformed(item, (*path, index))


def _flaws_of(name: str, argument: Any, path: tuple[str | int, ...]) -> Iterator[MalformedMatcher]:
    if name not in MATCHERS:
        hint = did_you_mean(name, MATCHERS)
        yield MalformedMatcher(path, f"unknown matcher '{name}'", hint, code="unknown-matcher", on_name=True)
        return
    try:
        MATCHERS[name].build(argument)
    except FormatError as error:
        yield MalformedMatcher(path, error.problems[0].message)


def _misplaced_matchers(
    expected: Mapping[Any, Any], path: tuple[str | int, ...]
) -> Iterator[MalformedMatcher]:
    """Report a matcher that stands beside other keys: there it is a plain key, which is never intended."""
    first = next((key for key in expected if key in MATCHERS), None)
    if first is not None:
        several = all(key in MATCHERS for key in expected)
        hint = f"write $all: [{', '.join(f'{{{key}: …}}' for key in expected)}]" if several else ""
        message = f"'{first}' is a matcher only when it is the only key of its mapping"
        yield MalformedMatcher((*path, first), message, hint, on_name=True)


def is_matcher(expected: Any) -> bool:
    """True if `expected` is a mapping whose only key starts with `$`."""
    if not isinstance(expected, Mapping) or len(expected) != 1:
        return False
    key = next(iter(expected))
    return isinstance(key, str) and key.startswith("$")


# --- comparing ---------------------------------------------------------------------------------------------


class _Leaf(NamedTuple):
    """A number of leaves that match or fail together; `mismatch` builds the mismatch if they fail."""

    leaves: int
    mismatch: Callable[[], Mismatch] | None = None


_MATCHED: Final = _Leaf(1)
_MOST_KEYS: Final = 100
"""In a larger mapping the nearest key is not searched for."""

_Position = tuple[Any, Any] | None
"""A position in a value: the parent position, and the key or index; None is the whole value."""


def _leaves(expected: Any, actual: Any, at: _Position, *, subset: bool) -> Iterator[_Leaf]:
    """Compare two values. With `subset` False (inside `$exact`), keys that are not expected are mismatches."""
    if is_matcher(expected):
        try:
            test = _test_of(expected)  # raises for a malformed matcher even if there is no value to test
            reason = "missing" if actual is ABSENT and "$missing" not in expected else test(actual)
        except CannotEvaluate as error:
            raise CannotEvaluate(f"{_path(at)}: {error}" if at else str(error)) from None
        yield _leaf(1, reason, at, expected, actual)
    elif isinstance(expected, Mapping):
        yield from _mapping_leaves(expected, actual, at, subset)
    elif isinstance(expected, list | tuple):
        yield from _list_leaves(expected, actual, at, subset)
    else:
        yield _MATCHED if _equal(expected, actual) else _leaf(1, "differs", at, expected, actual)


def _mapping_leaves(expected: Mapping[Any, Any], actual: Any, at: _Position, subset: bool) -> Iterator[_Leaf]:
    if not isinstance(actual, Mapping):
        reason = f"expected a mapping, was {kind_of(actual)}"
        name = f"${next(iter(expected), '')}" if len(expected) == 1 else ""  # a matcher without its `$`
        leaf = _leaf(_count(expected), reason, at, expected, actual)
        yield _hinted(leaf, lambda: f"did you mean '{name}'?") if name in MATCHERS else leaf
        return
    if not expected:
        yield _MATCHED
    for key, value in expected.items():
        leaves = _leaves(value, actual.get(key, ABSENT), (at, key), subset=subset)
        if key not in actual:
            leaves = map(partial(_hinted, hint=partial(_nearest_key, key, actual)), leaves)
        yield from leaves
    for key in () if subset else actual:
        if key not in expected:
            yield _leaf(1, "not expected", (at, key), ABSENT, actual[key])


def _hinted(leaf: _Leaf, hint: Callable[[], str]) -> _Leaf:
    """Return a leaf whose mismatch, if it is one, has a hint."""
    missed = leaf.mismatch
    return leaf if missed is None else _Leaf(leaf.leaves, lambda: replace(missed(), hint=hint()))


def _nearest_key(key: Any, actual: Mapping[Any, Any]) -> str:
    """Return a hint with the existing key that is nearest to a missing one."""
    return "" if len(actual) > _MOST_KEYS else did_you_mean(str(key), [*map(str, actual)], listing=False)


def _list_leaves(expected: Sequence[Any], actual: Any, at: _Position, subset: bool) -> Iterator[_Leaf]:
    reason = None
    if not isinstance(actual, list | tuple):
        reason = f"expected a list, was {kind_of(actual)}"
    elif len(actual) != len(expected):
        reason = f"expected {_items(len(expected))}, was {_items(len(actual))}"
    if reason is not None or not expected:
        yield _leaf(_count(expected), reason, at, expected, actual)
        return
    for index, (wanted, item) in enumerate(zip(expected, actual, strict=True)):
        yield from _leaves(wanted, item, (at, _Index(index)), subset=subset)


def _leaf(count: int, reason: str | None, at: _Position, expected: Any, actual: Any) -> _Leaf:
    if reason is None:
        return _Leaf(count)
    why = "missing" if actual is ABSENT else reason
    return _Leaf(count, lambda: Mismatch(_path(at), expected, actual, why, _unicode_hint(expected, actual)))


def _unicode_hint(expected: Any, actual: Any) -> str:
    """Return a hint if two texts differ only in Unicode form: an accented letter may be one character or two."""
    if not (isinstance(expected, str) and isinstance(actual, str)):
        return ""
    same = normalize("NFC", expected) == normalize("NFC", actual)
    return "the same letters, in another Unicode form" if same else ""


class _Index(int):
    """An index of a list. A mapping may have integer keys, so that a plain int would be ambiguous."""


def _path(at: _Position) -> str:
    if at is None:
        return ""
    above, step = at
    return f"{_path(above)}[{step:d}]" if isinstance(step, _Index) else _below(_path(above), step)


def _count(expected: Any) -> int:
    """Return the number of leaves of an expected value."""
    if is_matcher(expected):
        return 1
    items = expected.values() if isinstance(expected, Mapping) else expected
    return sum(map(_count, items)) or 1 if isinstance(expected, Mapping | list | tuple) else 1


def _equal(expected: Any, actual: Any) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    return bool(expected == actual)


def _below(path: str, key: Any) -> str:
    if not isinstance(key, str) or not re.fullmatch(r"[\w$-]+", key):
        return f"{path}[{json.dumps(key, ensure_ascii=False, default=str)}]"
    return f"{path}.{key}" if path else key


def _items(count: int) -> str:
    return f"{count} item" if count == 1 else f"{count} items"


# --- matchers ----------------------------------------------------------------------------------------------


def _test_of(expected: Mapping[str, Any]) -> Test:
    for flaw in malformed(expected):
        steps = [step for step in flaw.path if isinstance(step, int) or not step.startswith("$")]
        path = reduce(_below, steps, "")
        message = f"{path}: {flaw.message}" if path else flaw.message
        raise FormatError(Problem(flaw.code, message, hint=flaw.hint))
    ((name, argument),) = expected.items()
    return MATCHERS[name].build(argument)


def _reason(expected: Any, actual: Any) -> str | None:
    """Return the first mismatch as text, or None if `actual` matches."""
    leaves = _leaves(expected, actual, None, subset=True)
    failed = next((leaf.mismatch for leaf in leaves if leaf.mismatch is not None), None)
    if failed is None:
        return None
    first = failed()
    return str(first) if first.path or is_matcher(expected) else f"is not {shown(expected)}"


VALUE_REF: Final = "#/$defs/ExpectedValue"
"""The reference to an expected value, matchers included, in JSON Schemas of arguments."""

_VALUE: Final = {"$ref": VALUE_REF}
_VALUES: Final = {"type": "array", "items": _VALUE}
_COUNT: Final = {"type": "integer", "minimum": 0}
_MATCHER: Final = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "propertyNames": {"pattern": r"^\$"},
    **_VALUE,
}


@matcher(_VALUE, "A text, a list or a mapping that contains this text, item or key.")
def _contains(argument: Any) -> Test:
    def test(actual: Any) -> str | None:
        if isinstance(actual, str):
            # A number is searched for as written, so that it needs no quotes in YAML and in tables of cases.
            number = isinstance(argument, int | float) and not isinstance(argument, bool)
            held = (number and str(argument) in actual) or (isinstance(argument, str) and argument in actual)
        elif isinstance(actual, Mapping):
            held = any(_equal(argument, key) for key in actual)
        elif isinstance(actual, list | tuple):
            held = _any_matches(argument, actual)
        else:
            return f"{kind_of(actual)} contains nothing"
        return None if held else f"does not contain {shown(argument)}"

    return test


@matcher(_VALUE, "A value that does not match this.")
def _not(argument: Any) -> Test:
    return lambda actual: f"must not match {shown(argument)}" if matches(argument, actual) else None


@matcher(_VALUES, "A value that matches one of these.")
def _in(argument: Any) -> Test:
    if not isinstance(argument, list | tuple):
        raise bad_argument("$in", "a list", argument)
    held = f"is not one of {shown(argument)}"
    return lambda actual: None if any(matches(item, actual) for item in argument) else held


@matcher({"anyOf": [_COUNT, _MATCHER]}, "A text, list or mapping of this length.")
def _len(argument: Any) -> Test:
    is_count = isinstance(argument, int) and not isinstance(argument, bool) and argument >= 0
    if not (is_count or is_matcher(argument)):
        raise bad_argument("$len", "a count, or a matcher for one", argument)

    def test(actual: Any) -> str | None:
        if not isinstance(actual, str | list | tuple | Mapping):
            return f"{kind_of(actual)} has no length"
        reason = _reason(argument, len(actual))
        return None if reason is None else f"its length {len(actual)} {reason}"

    return test


@matcher(_VALUES, "A value that matches each of these.")
def _all(argument: Any) -> Test:
    if not isinstance(argument, list | tuple):
        raise bad_argument("$all", "a list of matchers", argument)
    return lambda actual: next(filter(None, (_reason(item, actual) for item in argument)), None)


@matcher(_VALUE, "A list with an item that matches this.")
def _some(argument: Any) -> Test:
    def test(actual: Any) -> str | None:
        if not isinstance(actual, list | tuple):
            return f"expected a list, was {kind_of(actual)}"
        held = _any_matches(argument, actual)
        return None if held else f"none of {_items(len(actual))} matches {shown(argument)}"

    return test


@matcher(_VALUE, "A text that is JSON for a value that matches this.")
def _json(argument: Any) -> Test:
    def test(actual: Any) -> str | None:
        if not isinstance(actual, str):
            return f"expected JSON text, was {kind_of(actual)}"
        try:
            value = json.loads(actual, parse_constant=_no_json)
        except ValueError as error:
            return f"is not JSON: {error}"
        return _reason(argument, value)

    return test


def _no_json(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON value")


@matcher({"type": ["object", "array"], **_VALUE}, "A mapping or list that equals this, without further keys.")
def _exact(argument: Any) -> Test:
    if not isinstance(argument, Mapping | list | tuple):
        raise bad_argument("$exact", "a mapping or a list", argument)

    def test(actual: Any) -> str | None:
        leaves = _leaves(argument, actual, None, subset=False)
        failed = (str(leaf.mismatch()) for leaf in leaves if leaf.mismatch is not None)
        return "; ".join(islice(failed, MISMATCHES_KEPT)) or None

    return test


def _any_matches(wanted: Any, items: Sequence[Any]) -> bool:
    """True if an item matches; like CEL's `||`, a match absorbs items that cannot be evaluated."""
    unclear = None
    for item in items:
        try:
            if matches(wanted, item):
                return True
        except CannotEvaluate as error:
            unclear = error
    if unclear is not None:
        raise unclear
    return False


MATCHERS: Final[Mapping[str, Kind]] = {
    "$contains": _contains,
    "$icontains": plain.icontains,
    "$regex": plain.regex,
    "$not": _not,
    "$in": _in,
    "$gt": plain.gt,
    "$gte": plain.gte,
    "$lt": plain.lt,
    "$lte": plain.lte,
    "$approx": plain.approx,
    "$len": _len,
    "$type": plain.type_,
    "$any": plain.any_,
    "$missing": plain.missing,
    "$schema": plain.schema,
    "$all": _all,
    "$some": _some,
    "$json": _json,
    "$cel": plain.cel,
    "$exact": _exact,
}

NESTING: Final = frozenset(name for name, kind in MATCHERS.items() if VALUE_REF in str(kind.argument))
"""Matchers whose argument may contain matchers."""
