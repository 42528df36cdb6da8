"""Graphs for the event scheduler, with joins, limits, inputs and the handling of failures as data.

`harness.engine.event` has the theory of operation. Nodes, edges, conditions and routers are those of any graph.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.graph.joins import Join
from harness.graph.model import Graph, Router, Routes, RunContext, State


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
