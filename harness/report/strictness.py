"""The strictness of a scenario, as far as its results tell: its checks with their weights, and the bounds in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.report.reading import Check
from harness.units import is_number

_UPPER: Final = ("latency", "usage", "max_visits")
"""Checks whose values are upper bounds."""
_LARGER_IS_WIDER: Final = {"$lt": True, "$lte": True, "$gt": False, "$gte": False}
"""Matchers with a bound."""
_ALL: Final = "$all"
"""The matcher that lists several for one place. In other lists, items have no place of their own: they may move."""


@dataclass(slots=True)
class Strictness:
    """The checks of a scenario.

    checks  the weight of each check, by name. A gate, such as `status`, has 0
    bounds  the numbers that are bounds, by where they are: `latency.nodes.read`, `state.count.$lte`
    """

    checks: dict[str, float] = field(default_factory=dict)
    bounds: dict[str, float] = field(default_factory=dict)

    def add(self, checks: Iterable[Check]) -> None:
        """Add the checks of a run; one that ended early lacks those of the turns that it did not reach."""
        for check in checks:
            name = check["name"]
            self.checks[name] = check["weight"]
            self.bounds.update(_bounds(name, check["expected"], always=_lists_upper_bounds(name)))


def _bounds(place: str, expected: Any, *, always: bool) -> Iterator[tuple[str, float]]:
    if is_number(expected):
        if always or place.rpartition(".")[2] in _LARGER_IS_WIDER:
            yield place, expected
    elif isinstance(expected, Mapping):
        for key, value in expected.items():
            if key == _ALL and isinstance(value, list):
                for each in value:
                    yield from _bounds(place, each, always=always)
            else:
                yield from _bounds(f"{place}.{key}", value, always=always)


def weaker(before: Strictness, after: Strictness) -> list[str]:
    """Return what is expected less than before, a text each. Empty if one of the two is not known.

    A check that another one replaces is not weaker: which of the two expects more cannot be told.
    """
    if not before.checks or not after.checks:
        return []
    gone = sorted(before.checks.keys() - after.checks.keys())
    found = [f"no check '{name}'" for name in gone] if len(after.checks) < len(before.checks) else []
    for name, weight in sorted(after.checks.items()):
        if weight < before.checks.get(name, 0.0):
            found.append(f"the weight of '{name}' {before.checks[name]:g} → {weight:g}")
    for place, bound in sorted(after.bounds.items()):
        was = before.bounds.get(place, bound)
        if bound > was if _LARGER_IS_WIDER.get(place.rpartition(".")[2], True) else bound < was:
            found.append(f"{place} {was:g} → {bound:g}")
    lost = sorted(before.bounds.keys() - after.bounds.keys())
    found += [f"no bound {place}" for place in lost if _is_of_upper_bounds(place, after.checks)]
    return found


def _is_of_upper_bounds(place: str, checks: Mapping[str, float]) -> bool:
    """True for a bound in one of these checks in which everything is a bound; others may expect a value instead."""
    check = place.partition(".")[0]
    return check in checks and _lists_upper_bounds(check)


def _lists_upper_bounds(check: str) -> bool:
    return check.rpartition(": ")[2] in _UPPER
