"""Joins as data: the predecessors that a node waits for before it starts.

A requirement is an expression over names of nodes: `Member`, `AllOf` (AND) and `AnyOf` (OR), nested to any depth. An
optional member never delays the start and never satisfies the requirement; if it has arrived by the start, it is part
of the input. A requirement with optional members only holds as soon as one of them arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from functools import cached_property

from harness.errors import RunError


@dataclass(frozen=True)
class Member:
    """A node that is waited for, unless it is `optional`."""

    name: str
    optional: bool = False

    def __str__(self) -> str:
        return f"{self.name}?" if self.optional else self.name


@dataclass(frozen=True)
class AllOf:
    """A requirement that holds if every item does (AND)."""

    items: tuple[Requirement, ...]

    def __str__(self) -> str:
        return " AND ".join(f"({item})" if isinstance(item, AnyOf) else str(item) for item in self.items)


@dataclass(frozen=True)
class AnyOf:
    """A requirement that holds if any item does (OR)."""

    items: tuple[Requirement, ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.items))


Requirement = Member | AllOf | AnyOf


class JoinTimeout(RunError):
    """A join whose requirement did not hold in time. The message names the missing nodes."""

    code = "join-timeout"


@dataclass(frozen=True)
class Join:
    """The predecessors that a node waits for, and the time limit.

    `timeout_s` is in virtual seconds after the first arrival; None for no limit. When it has passed, the node
    does not start, but fails with the error that `timed_out` makes from a message.
    """

    requirement: Requirement
    timeout_s: float | None = None
    timed_out: Callable[[str], Exception] = JoinTimeout

    @cached_property
    def members(self) -> frozenset[str]:
        """The names in the requirement, including those of optional members."""
        return _names(self.requirement)

    def missing(self, arrived: Set[str]) -> Requirement | None:
        """Return the part of the requirement that these arrivals leave open, or None if it holds."""
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
    """Return the requirement without its optional members, or None if nothing is left."""
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
    """Return the simplest expression of these items; None for no items."""
    return kind(tuple(items)) if len(items) > 1 else items[0] if items else None
