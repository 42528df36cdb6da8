"""The joins of a run: arrivals, late arrivals and time-outs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.engine.pauses import Replay
from harness.engine.standstill import Unending, last_steps
from harness.graph.events import Arrival, ConcurrencyLimit, Join
from harness.graph.model import Graph, Node, State


@dataclass(eq=False)
class OpenJoin:
    """The arrivals at a node's join since it last started the node, or timed out."""

    node: str
    join: Join
    arrivals: list[Arrival] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)
    holds: bool = False
    is_due: bool = False
    timer: asyncio.TimerHandle | None = None

    def add(self, arrival: Arrival) -> bool:
        """Add an arrival. True if the requirement holds now, and did not before; the timer is then stopped."""
        self.arrivals.append(arrival)
        self.sources.add(arrival.source)
        if self.holds or self.join.missing(self.sources) is not None:
            return False
        self.holds = True
        self.stop_timer()
        return True

    def stop_timer(self) -> None:
        """Cancel the time-out of the join."""
        self.is_due = False
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def error(self) -> Exception:
        """Return the error of a node whose join has timed out."""
        missing = self.join.missing(self.sources)
        return self.join.timed_out(
            f"'{self.node}' waited {self.join.timeout_s:g} s for {missing}, which did not arrive"
        )


class Joins:
    """The open joins of a run, by node.

    `began` and `starts` are numbers of starts, counted over all nodes from 1. The arrival of an activation that began
    before the join was closed is late, and ignored. One that began later opens the join again, so that in a loop the
    node waits again.
    """

    def __init__(self, joins: Mapping[str, Join], on_timeout: Callable[[], None]) -> None:
        self._joins = joins
        self._on_timeout = on_timeout
        self._open: dict[str, OpenJoin] = {}
        self._closed: dict[str, int] = {}
        self._stopped_at: float | None = None

    def waits_for(self, node: str, source: str) -> bool:
        """True if `source` is a member of the join of `node`."""
        return node in self._joins and source in self._joins[node].members

    def arrive(self, node: str, arrival: Arrival, began: int) -> OpenJoin | None:
        """Add an arrival from an activation. Return the join if its requirement holds now, and did not before."""
        if began <= self._closed.get(node, 0):
            return None
        opened = self._open.get(node)
        if opened is None:
            opened = self._open[node] = OpenJoin(node, self._joins[node])
            if opened.join.timeout_s is not None:
                self._set_timer(opened, asyncio.get_running_loop().time() + opened.join.timeout_s)
        return opened if opened.add(arrival) else None

    def stop_clock(self) -> None:
        """Suspend all timers: the run waits for an answer from outside, and this time does not count."""
        self._stopped_at = asyncio.get_running_loop().time()
        for opened in self._open.values():
            if opened.timer is not None:
                opened.timer.cancel()

    def start_clock(self) -> None:
        """Continue the timers where `stop_clock` suspended them."""
        if self._stopped_at is None:
            return
        waited, self._stopped_at = asyncio.get_running_loop().time() - self._stopped_at, None
        for opened in self._open.values():
            if opened.timer is not None:
                self._set_timer(opened, opened.timer.when() + waited)

    def _set_timer(self, opened: OpenJoin, due: float) -> None:
        opened.timer = asyncio.get_running_loop().call_at(due, self._on_timer, opened)

    def _on_timer(self, opened: OpenJoin) -> None:
        opened.is_due = True
        self._on_timeout()

    @property
    def are_timed(self) -> bool:
        """True if a join has a running timer."""
        return any(opened.timer is not None for opened in self._open.values())

    def timed_out(self) -> list[OpenJoin]:
        """Return the joins that have timed out, in the order of their first arrivals."""
        return [opened for opened in self._open.values() if opened.is_due]

    def close(self, opened: OpenJoin, starts: int) -> None:
        """Close a join, as its node starts or the join times out. Arrivals that began up to here are late."""
        del self._open[opened.node]
        self._closed[opened.node] = starts

    def stop_timers(self) -> None:
        """Stop all timers: the joins are no longer needed."""
        for opened in self._open.values():
            opened.stop_timer()


@dataclass(eq=False)
class Activation:
    """A request to run a node, made by another activation (`cause`), by a join, or by the input.

    `began` and `start` are the numbers of its first and its current start, counted over all nodes from 1;
    `attempt` counts its starts. After a failure, `context` overrides values of the node's input. `replay` is the
    saved state of its paused visit.
    """

    node: Node
    arrivals: Sequence[Arrival]
    cause: Activation | None
    join: OpenJoin | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    state: State = field(default_factory=dict)
    attempt: int = 0
    began: int = 0
    start: int = 0
    replay: Replay | None = None

    def count_start(self, number: int) -> None:
        """Record a start of the activation. `number` counts the starts of all nodes."""
        self.start, self.attempt = number, self.attempt + 1
        self.began = self.began or number

    def lineage(self) -> list[str]:
        """Return the nodes on the chain of causes up to this one, in order, each repeated for every start."""
        names: list[str] = []
        activation: Activation | None = self
        while activation is not None:
            names += [activation.node.name] * activation.attempt
            activation = activation.cause
        return names[::-1]


class TooManyStarts(Unending):
    """A run that exceeded its limit of node starts. The message names the cycle."""

    code = "too-many-starts"

    def __init__(self, graph: Graph, limit: int, last: Activation) -> None:
        text = f"graph '{graph.name}' did not come to an end within {limit} starts of nodes"
        super().__init__(text, last_steps([[name] for name in last.lineage()], graph))


class Limits:
    """The concurrency limits of a run, and the number of visits that currently count against each."""

    def __init__(self, limits: Iterable[ConcurrencyLimit], nodes: Iterable[str]) -> None:
        self._running = Counter[ConcurrencyLimit]()
        self._of: dict[str, list[ConcurrencyLimit]] = {node: [] for node in nodes}
        for limit in dict.fromkeys(limits):
            for node in self._of if limit.nodes is None else limit.nodes:
                self._of[node].append(limit)

    def acquire(self, node: str) -> bool:
        """Count one more visit of the node and return True, or return False if a limit is reached."""
        limits = self._of[node]
        if any(self._running[limit] >= limit.at_once for limit in limits):
            return False
        self._running.update(limits)
        return True

    def release(self, node: str) -> None:
        """Count a visit of the node as ended."""
        self._running.subtract(self._of[node])
