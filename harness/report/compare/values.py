"""Find the places where two JSON values differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple


class Absent:
    """The type of `ABSENT`, which stands for a missing value."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = Absent()
_MAX_DEPTH: Final = 50


class ValueChange(NamedTuple):
    """A place where two values differ, such as `city` or `items.2`; "" is the value as a whole."""

    path: str
    before: Any
    after: Any


def value_changes(before: Any, after: Any, path: str = "", depth: int = 0) -> Iterator[ValueChange]:
    """Yield the innermost places that differ, in order.

    >>> [*value_changes({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3], "c": 4})]
    [ValueChange(path='b.1', before=2, after=3), ValueChange(path='c', before=nothing, after=4)]
    """
    if same(before, after):
        return
    if depth < _MAX_DEPTH and isinstance(before, dict) and isinstance(after, dict):
        keys = dict.fromkeys([*before, *after])
        pairs = [(str(key), before.get(key, ABSENT), after.get(key, ABSENT)) for key in keys]
    elif depth < _MAX_DEPTH and isinstance(before, list) and isinstance(after, list):
        size = max(len(before), len(after))
        pairs = [(str(at), _item(before, at), _item(after, at)) for at in range(size)]
    else:
        yield ValueChange(path, before, after)
        return
    for key, one, other in pairs:
        yield from value_changes(one, other, f"{path}.{key}" if path else key, depth + 1)


def same(one: Any, other: Any) -> bool:
    """True if two values are equal and of the same kind: 1 is not True, but 1.0 is 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _item(values: list[Any], at: int) -> Any:
    return values[at] if at < len(values) else ABSENT
