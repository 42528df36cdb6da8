"""The runtime context of a LangGraph thread: data that its nodes and routers share with the scheduler.

LangGraph treats an update of the state between two supersteps as written by the last node that ran: it discards the
routes chosen after the last superstep, and asks that node's router again. It passes no runtime context then, so the
router finds the thread in a context variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from harness.engine.collision import Write
from harness.engine.context import RunContext
from harness.engine.pauses import Question, Replay
from harness.graph.model import Edge, Update


@dataclass
class Superstep:
    """The last superstep of a thread: its nodes, their writes, and the chosen routes that were not followed yet."""

    number: int | None = None
    nodes: list[str] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    routes: list[Edge] = field(default_factory=list)
    ended: bool = False

    def enter(self, number: int | None, *nodes: str) -> None:
        """Add nodes that start or resume in a superstep. The number None begins a new input, before any superstep."""
        if number is None or number != self.number:
            self.number, self.nodes, self.writes, self.routes, self.ended = number, [], [], [], False
        self.nodes.extend(nodes)

    def stops_at_end(self, breakpoints: frozenset[str]) -> bool:
        """True if a run that has ended stops at a breakpoint after one of its last nodes. True only once."""
        stops_here = not self.ended and not breakpoints.isdisjoint(self.nodes)
        self.ended = True
        return stops_here


@dataclass
class Thread:
    """A thread of a run.

    Attributes:
        run: the context of the run.
        invocation: the number of LangGraph invocations so far, this one included.
        replays: the saved states of paused visits, by LangGraph's task id.
        pending: the questions without an answer, by LangGraph's interrupt id.
        updates: the updates of nodes whose router was not asked yet, by LangGraph's task id.
        steps: the nodes of each superstep of this invocation.
        last: the last superstep.
    """

    run: RunContext
    invocation: int = 0
    replays: dict[str, Replay] = field(default_factory=dict)
    pending: dict[str, Question] = field(default_factory=dict)
    updates: dict[str, Update] = field(default_factory=dict)
    steps: dict[int, list[str]] = field(default_factory=dict)
    last: Superstep = field(default_factory=Superstep)

    def record_routes(self, edges: Sequence[Edge]) -> None:
        """Record the transitions that are taken after the last superstep."""
        self.last.routes += edges
        self.run.record_routes(edges)


@dataclass
class StateUpdate:
    """An update of the state of a thread, and the routes that the router chose for it."""

    thread: Thread
    routes: list[Edge] = field(default_factory=list)


_UPDATE: ContextVar[StateUpdate | None] = ContextVar("_UPDATE", default=None)


def current_state_update() -> StateUpdate | None:
    """Return the state update for which a router is being asked, or None if it is asked after its node."""
    return _UPDATE.get()


@contextmanager
def updating_state(thread: Thread) -> Iterator[None]:
    """Make an update of the thread's state available to its router, and record the new routes afterwards.

    If they differ from those chosen before, they replace them in the trace (`reroute`).
    """
    update = StateUpdate(thread)
    token = _UPDATE.set(update)
    try:
        yield
    finally:
        _UPDATE.reset(token)
    last = thread.last
    if not update.routes or update.routes == last.routes:
        return
    if last.routes:
        thread.run.record("reroute", instead_of=len(last.routes))
    last.routes = []
    thread.record_routes(update.routes)
