"""A graph for the event scheduler: joins, limits, inputs and failures as data.

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
    """An edge that was followed to a node. `state` is what a dispatch carries; it is None for a plain edge."""

    source: str
    state: State | None = None


def merged_input(arrivals: Sequence[Arrival], state: State) -> State:
    """A node's input: its dispatched states merged, later arrivals over earlier; without any, the run's state."""
    dispatched = [arrival.state for arrival in arrivals if arrival.state is not None]
    return {key: value for own in dispatched for key, value in own.items()} if dispatched else state


@dataclass(frozen=True)
class ConcurrencyLimit:
    """So many visits of these nodes may run at once; None stands for all nodes of the graph.

    A visit that waits for a person's answer still counts.
    """

    at_once: int
    nodes: frozenset[str] | None = None


@dataclass(frozen=True)
class NodeFailure:
    """An activation of a node that failed.

    `state` is the input it had. `attempt` counts its starts; it is 0 when the join of the node timed out, so that it
    never started. `handled`: `EventGraph.on_failure` had the run go on elsewhere.
    """

    node: str
    error: Exception
    state: State
    attempt: int
    handled: bool = False


@dataclass(frozen=True)
class Restart:
    """Start the node again, with the same arrivals; `context` is laid over its input."""

    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Detour:
    """Go on by these edges. `beside` is done at the same time; only the end of the run waits for it."""

    routes: Routes
    beside: Callable[[], Awaitable[None]]


FailureHandler = Callable[[NodeFailure, RunContext], Awaitable[Routes | Restart | Detour]]
"""Chooses how a run goes on after a failure: by these edges, with the same node again, or (no edges) with the other
branches only. What it raises ends the whole run."""

RunFailure = Callable[[Sequence[NodeFailure], RunContext], Awaitable[NodeFailure | None]]
"""Chooses the failure that a run fails with, if any. It is asked once, when the run has nothing left to do."""


async def end_branch(_failure: NodeFailure, _run: RunContext) -> Routes:
    """A failure ends its branch; the others go on."""
    return ()


async def first_unhandled(failures: Sequence[NodeFailure], _run: RunContext) -> NodeFailure | None:
    """A run fails with the first failure that was not handled."""
    return next((failure for failure in failures if not failure.handled), None)


@dataclass(frozen=True, eq=False)
class EventGraph(Graph):
    """A graph whose nodes start when what they wait for has settled. Beside what any graph has:

    joins         what nodes wait for, by name; an edge from a node that is no member activates it at once, and so
                  does an edge on error
    limits        how many visits run at once; activations over a limit wait in the order in which they were made
    input_of      makes the input of a node when it starts, from its arrivals and the state of the run
    late_routers  choose more edges after `routers`; they may take their time, and nobody else waits for them
    on_failure    chooses how the run goes on when a node fails
    run_failure   chooses the failure of the run among those of its nodes, or none

    `recursion_limit` is in starts of nodes for one input. Breakpoints (`pause_before`, `pause_after`) are for
    supersteps only.
    """

    joins: Mapping[str, Join] = field(default_factory=dict)
    limits: tuple[ConcurrencyLimit, ...] = ()
    input_of: Callable[[Sequence[Arrival], State], State] = merged_input
    late_routers: Mapping[str, Router] = field(default_factory=dict)
    on_failure: FailureHandler = end_branch
    run_failure: RunFailure = first_unhandled
    recursion_limit: int = 1000
