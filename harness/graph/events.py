"""Graphs for the event scheduler, with joins, limits, inputs and the handling of failures as data.

`harness.engine.event` has the theory of operation. Nodes, edges, conditions and routers are those of any graph.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.errors import RunError
from harness.graph.model import Graph, Router, Routes, RunContext, State


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


@dataclass(frozen=True)
class Arrival:
    """An edge that was followed to a node. `state` is the state that a dispatch carries; None for a plain edge."""

    source: str
    state: State | None = None


def merged_input(arrivals: Sequence[Arrival], state: State) -> State:
    """Return the dispatched states merged, later arrivals over earlier; without any, the state of the run."""
    dispatched = [arrival.state for arrival in arrivals if arrival.state is not None]
    return {key: value for own in dispatched for key, value in own.items()} if dispatched else state


@dataclass(frozen=True)
class ConcurrencyLimit:
    """The most visits of these nodes that may run at once. None stands for all nodes of the graph.

    A visit that waits for a person's answer counts.
    """

    at_once: int
    nodes: frozenset[str] | None = None


@dataclass(frozen=True)
class NodeFailure:
    """The failure of an activation of a node.

    `state` is the input of the activation. `attempt` counts its starts; it is 0 if the join of the node timed out, so
    that it never started. `handled` is True if `EventGraph.on_failure` returned edges to follow.
    """

    node: str
    error: Exception
    state: State
    attempt: int
    handled: bool = False


@dataclass(frozen=True)
class Restart:
    """An instruction to start the node again, with the same arrivals. `context` overrides values of its input."""

    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Detour:
    """An instruction to follow these edges and run `beside` concurrently. Only the end of the run waits for it."""

    routes: Routes
    beside: Callable[[], Awaitable[None]]


FailureHandler = Callable[[NodeFailure, RunContext], Awaitable[Routes | Restart | Detour]]
"""Chooses how a run continues after a failure: along the returned edges, with the same node again, or, without edges,
with the other branches only. An exception that it raises ends the whole run."""

RunFailure = Callable[[Sequence[NodeFailure], RunContext], Awaitable[NodeFailure | None]]
"""Chooses the failure that the run fails with, or None. It is called once, when the run has nothing left to do."""


async def end_branch(_failure: NodeFailure, _run: RunContext) -> Routes:
    """End the branch of the failure; other branches continue."""
    return ()


async def first_unhandled(failures: Sequence[NodeFailure], _run: RunContext) -> NodeFailure | None:
    """Return the first failure that was not handled, or None."""
    return next((failure for failure in failures if not failure.handled), None)


@dataclass(frozen=True, eq=False)
class EventGraph(Graph):
    """A graph whose nodes start as soon as their predecessors have settled.

    `recursion_limit` is in starts of nodes for one input. Breakpoints (`pause_before`, `pause_after`) are not
    supported.

    Attributes:
        joins: the requirements of nodes that wait for several predecessors, by node. An edge from a node that is not
            a member of the join, and an edge on error, activate the node at once.
        limits: the limits on concurrent visits. Activations over a limit wait in the order in which they were made.
        input_of: makes the input of a node when it starts, from its arrivals and the state of the run.
        late_routers: choose more edges after `routers`, by node. They may take virtual time; only the nodes they
            choose wait for them.
        on_failure: chooses how the run continues after the failure of a node.
        run_failure: chooses the failure of the run among those of its nodes, or none.
    """

    joins: Mapping[str, Join] = field(default_factory=dict)
    limits: tuple[ConcurrencyLimit, ...] = ()
    input_of: Callable[[Sequence[Arrival], State], State] = merged_input
    late_routers: Mapping[str, Router] = field(default_factory=dict)
    on_failure: FailureHandler = end_branch
    run_failure: RunFailure = first_unhandled
    recursion_limit: int = 1000
