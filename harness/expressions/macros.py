"""Macros: calls that control which of their arguments are evaluated, and with which variables bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from celpy.celtypes import ListType

from harness.expressions.operators import Code, Frame, attempt, reduce_logic
from harness.expressions.values import FALSE, TRUE, Failure, Fragment, type_of

Macro = Callable[[Code, int, Code, Fragment], Code]
"""Builds code from: the list, the slot of the variable in the frame, the body, and the fragment of the call."""


def has(member: Code) -> Code:
    """`has(e)`: true if `e` has a value."""
    return lambda frame: FALSE if isinstance(attempt(member, frame), Failure) else TRUE


def default(wanted: Code, fallback: Code) -> Code:
    """`default(a, b)`: `a`, or `b` if `a` has no value. False, 0, "" and [] are values."""

    def run(frame: Frame) -> Any:
        try:
            return wanted(frame)
        except Failure:
            return fallback(frame)

    return run


def _iterate(items: Code, frame: Frame, fragment: Fragment) -> Iterator[Any]:
    """Yield the items of a list, the keys of a map, or the characters of a text."""
    value = items(frame)
    if not isinstance(value, (list, dict, str)):
        raise Failure(f"a value of type {type_of(value)} is not a list", fragment)
    budget = frame[-1]
    for item in value:
        budget.left -= 1
        if budget.left < 0:
            budget.exceeded()
        yield item


def _map(items: Code, slot: int, body: Code, fragment: Fragment) -> Code:
    return lambda frame: ListType([body(frame) for frame[slot] in _iterate(items, frame, fragment)])


def _filter(items: Code, slot: int, body: Code, fragment: Fragment) -> Code:
    return lambda frame: ListType(
        [frame[slot] for frame[slot] in _iterate(items, frame, fragment) if body(frame)]
    )


def _exists_one(items: Code, slot: int, body: Code, fragment: Fragment) -> Code:
    def run(frame: Frame) -> Any:
        found = sum(bool(body(frame)) for frame[slot] in _iterate(items, frame, fragment))
        return TRUE if found == 1 else FALSE

    return run


def _quantifier(symbol: str) -> Macro:
    def build(items: Code, slot: int, body: Code, fragment: Fragment) -> Code:
        def verdicts(frame: Frame, items: Iterator[Any]) -> Iterator[Any]:
            for frame[slot] in items:
                yield attempt(body, frame)

        return lambda frame: reduce_logic(symbol, verdicts(frame, _iterate(items, frame, fragment)), fragment)

    return build


MACROS: dict[str, Macro] = {
    "map": _map,
    "filter": _filter,
    "all": _quantifier("&&"),
    "exists": _quantifier("||"),
    "exists_one": _exists_one,
}


def reduction(items: Code, slots: tuple[int, int], start: Code, body: Code, fragment: Fragment) -> Code:
    """`list.reduce(sum, item, start, body)`, a macro of cel-python."""
    total, item = slots

    def run(frame: Frame) -> Any:
        result = start(frame)
        for element in _iterate(items, frame, fragment):
            frame[item], frame[total] = element, result
            result = body(frame)
        return result

    return run
