"""The operators: what each changes, and how a value is changed.

A variation is a function that yields changes of a place: a name for the id, and operations of a JSON Patch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

from harness.errors import FormatError, Problem
from harness.mutation.places import Place
from harness.source.display import did_you_mean
from harness.units import is_number

OPERATORS: Final[Mapping[str, str]] = {
    "route": "a condition negated; a target swapped with a sibling's; a branch, a default, an edge dropped; two "
    "conditions in another order",
    "node": "skipped (its update is empty); run twice",
    "state": "one key of an update dropped; a reducer replaced by overwrite and the reverse; a default changed",
    "call": "a tool taken away, a tool's name changed, response schema dropped, temperature/params dropped, model "
    "changed",
    "prompt": "a sentence dropped; the whole emptied; a placeholder dropped",
    "guard": "a retry, time-out, fallback, error handler, approval or pause dropped; a limit raised",
    "output": "an output key dropped or renamed; its schema loosened",
}
"""The operators, each with what it changes."""


def check_operators(names: Sequence[str]) -> list[str]:
    """Return the operators with these names; all if none is given.

    Raises:
        FormatError: there is none of that name (code `unknown-operator`).
    """
    for name in names:
        if name not in OPERATORS:
            hint = did_you_mean(name, OPERATORS)
            raise FormatError(Problem("unknown-operator", f"there is no operator '{name}'", hint=hint))
    return [name for name in OPERATORS if not names or name in names]


class Change(NamedTuple):
    """A change of a document: its name, the operations, and names that it takes away."""

    name: str
    operations: tuple[Mapping[str, Any], ...]
    names: frozenset[str] = frozenset()


Variation = Callable[[Place], Iterator[Change]]
_RENAMED: Final = "renamed"


def _set(place: Place, value: Any) -> Mapping[str, Any]:
    return {"op": "replace", "path": place.pointer, "value": value}


def drop(place: Place) -> Iterator[Change]:
    """Leave out a key, or an item of a list."""
    value = place.value
    told = [value.get("name"), value.get("id")] if isinstance(value, dict) else [value, place.path[-1]]
    known = frozenset(name for name in told if isinstance(name, str))
    yield Change("dropped", ({"op": "remove", "path": place.pointer},), known)


def negate(form: str) -> Variation:
    """Return the variation that negates a condition; `form` has a `{}` for it."""

    def negated(place: Place) -> Iterator[Change]:
        if isinstance(place.value, str) and place.value not in ("always", "true", ""):
            yield Change("negated", (_set(place, form.format(place.value)),))

    return negated


def reorder(place: Place) -> Iterator[Change]:
    """Exchange two neighbours of a list."""
    items = place.value if isinstance(place.value, list) else []
    for at, (one, other) in enumerate(pairwise(items)):
        if one != other:
            yield Change(f"order-{at + 1}", (_set(place.below(at), other), _set(place.below(at + 1), one)))


def swap(targets: Sequence[Place]) -> Iterator[tuple[Place, Change]]:
    """Exchange the targets of neighbours that belong to one node."""
    for one, other in pairwise(targets):
        if one.value != other.value:
            yield one, Change("swapped", (_set(one, other.value), _set(other, one.value)))


def raise_limit(place: Place) -> Iterator[Change]:
    """Double a limit."""
    if is_number(place.value):
        yield Change("raised", (_set(place, place.value * 2 or 1),))


def change_default(place: Place) -> Iterator[Change]:
    """Change a value to another one of its type; an empty list or mapping stays."""
    old = place.value
    if isinstance(old, bool):
        new: Any = not old
    elif is_number(old):
        new = old + 1
    elif isinstance(old, str):
        new = "" if old else "changed"
    else:
        new = type(old)() if isinstance(old, list | dict) else None
    if new != old:
        yield Change("changed", (_set(place, new),))


def rename(place: Place) -> Iterator[Change]:
    """Change a name."""
    if isinstance(place.value, str) and place.value:
        yield Change(_RENAMED, (_set(place, f"{place.value}_{_RENAMED}"),), frozenset({place.value}))


def rename_key(place: Place) -> Iterator[Change]:
    """Change the name of a key."""
    key = str(place.path[-1])
    new = replace(place, path=(*place.path[:-1], f"{key}_{_RENAMED}"))
    move = {"op": "move", "from": place.pointer, "path": new.pointer}
    yield Change(_RENAMED, (move,), frozenset({key}))


def other_model(place: Place) -> Iterator[Change]:
    """Change the name of a model."""
    if isinstance(place.value, str) and place.value:
        yield Change("other", (_set(place, f"{place.value}-other"),), frozenset({place.value}))


def loosen(place: Place) -> Iterator[Change]:
    """Loosen a JSON Schema: no key is required, values have any type."""
    schema = place.value
    if not isinstance(schema, dict):
        return
    if schema.get("required"):
        remove = {"op": "remove", "path": place.below("required").pointer}
        yield Change("required-dropped", (remove,))
    properties = schema.get("properties")
    for name, of in properties.items() if isinstance(properties, dict) else ():
        for key in ("type", "enum"):
            if isinstance(of, dict) and key in of:
                remove = {"op": "remove", "path": place.below("properties", name, key).pointer}
                yield Change(f"{name}-{key}-dropped", (remove,))


def put(**values: Any) -> Variation:
    """Return the variation that gives keys of a mapping these values."""

    def changed(place: Place) -> Iterator[Change]:
        operations = [
            {"op": "add", "path": place.below(key).pointer, "value": of} for key, of in values.items()
        ]
        yield Change("dropped", tuple(operations))

    return changed


def value_of(new: Any) -> Variation:
    """Return the variation that writes a value, unless it is there already."""

    def written(place: Place) -> Iterator[Change]:
        if place.value != new:
            yield Change("dropped", (_set(place, new),))

    return written
