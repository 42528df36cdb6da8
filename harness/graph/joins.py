"""Joins as data: which predecessors a node waits for before it starts.

A requirement is an expression over names of nodes: `Member`, `AllOf` (AND) and `AnyOf` (OR), nested as one likes. An
optional member never delays the start and never satisfies the requirement; what has arrived of it by then is part of
the input. A requirement of optional members only holds with the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from functools import cached_property

from harness.errors import RunError


@dataclass(frozen=True)
class Member:
    """A node whose arrival counts. An `optional` one is not waited for."""

    name: str
    optional: bool = False

    def __str__(self) -> str:
        return f"{self.name}?" if self.optional else self.name


@dataclass(frozen=True)
class AllOf:
    """Every item must hold (AND)."""

    items: tuple[Requirement, ...]

    def __str__(self) -> str:
        return " AND ".join(f"({item})" if isinstance(item, AnyOf) else str(item) for item in self.items)


@dataclass(frozen=True)
class AnyOf:
    """One item must hold (OR)."""

    items: tuple[Requirement, ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.items))


Requirement = Member | AllOf | AnyOf


class JoinTimeout(RunError):
    """A join whose requirement did not hold in time. The text names what was still missing."""

    code = "join-timeout"


@dataclass(frozen=True)
class Join:
    """What a node waits for, and for how many virtual seconds after the first arrival (None: without a limit).

    When the time is up, the node does not start: it fails with what `timed_out` makes of a text.
    """

    requirement: Requirement
    timeout_s: float | None = None
    timed_out: Callable[[str], Exception] = JoinTimeout

    @cached_property
    def members(self) -> frozenset[str]:
        """The names in the requirement, those of optional members too."""
        return _names(self.requirement)

    def missing(self, arrived: Set[str]) -> Requirement | None:
        """What is still waited for when these have arrived, or None: the requirement holds."""
        if self._required is None:
            return None if arrived & self.members else self.requirement
        return _missing(self._required, arrived)

    @cached_property
    def _required(self) -> Requirement | None:
        return _required(self.requirement)


def _names(requirement: Requirement) -> frozenset[str]:
    if isinstance(requirement, Member):
        return frozenset({requirement.name})
    return frozenset().union(*map(_names, requirement.items))


def _required(requirement: Requirement) -> Requirement | None:
    """The requirement without its optional members; None if nothing is left."""
    if isinstance(requirement, Member):
        return None if requirement.optional else requirement
    return _of(type(requirement), [item for item in map(_required, requirement.items) if item is not None])


def _missing(requirement: Requirement, arrived: Set[str]) -> Requirement | None:
    if isinstance(requirement, Member):
        return None if requirement.name in arrived else requirement
    left = [_missing(item, arrived) for item in requirement.items]
    if isinstance(requirement, AnyOf) and None in left:
        return None
    return _of(type(requirement), [item for item in left if item is not None])


def _of(kind: type[AllOf] | type[AnyOf], items: list[Requirement]) -> Requirement | None:
    """An expression of these items, as simple as it can be."""
    return kind(tuple(items)) if len(items) > 1 else items[0] if items else None
