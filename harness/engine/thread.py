"""What the nodes and routers of a LangGraph thread share with its scheduler: LangGraph's runtime context.

LangGraph takes an update of the state between two supersteps as written by the last node that ran: the routes chosen
after the last superstep are void, and the router of that node is asked again. LangGraph passes it no runtime context
then, so the router finds the thread in a context variable.
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
    """The last superstep of a thread: its nodes, what they wrote, and the routes that nothing followed yet."""

    number: int | None = None
    nodes: list[str] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    routes: list[Edge] = field(default_factory=list)
    ended: bool = False

    def enter(self, number: int | None, *nodes: str) -> None:
        """A node starts in a superstep, or goes on in it; None: nothing has run, there is a new input."""
        if number is None or number != self.number:
            self.number, self.nodes, self.writes, self.routes, self.ended = number, [], [], [], False
        self.nodes.extend(nodes)

    def ends_before(self, breakpoints: frozenset[str]) -> bool:
        """True if a run that has ended stops at a breakpoint after one of its last nodes. It does so once."""
        stops_here = not self.ended and not breakpoints.isdisjoint(self.nodes)
        self.ended = True
        return stops_here


@dataclass
class Thread:
    """A thread of a run.

    invocation   counts how often LangGraph was invoked, from 1
    replays      of paused visits, by LangGraph's id of the task
    pending      the questions that wait for an answer, by LangGraph's id of the interrupt
    updates      of nodes whose router was not asked yet, by LangGraph's id of the task
    steps        the nodes of each superstep of this invocation
    last         the last superstep
    """

    run: RunContext
    invocation: int = 0
    replays: dict[str, Replay] = field(default_factory=dict)
    pending: dict[str, Question] = field(default_factory=dict)
    updates: dict[str, Update] = field(default_factory=dict)
    steps: dict[int, list[str]] = field(default_factory=dict)
    last: Superstep = field(default_factory=Superstep)

    def record_routes(self, edges: Sequence[Edge]) -> None:
        """Note and record the transitions that are taken after the last superstep."""
        self.last.routes += edges
        self.run.record_routes(edges)


@dataclass
class StateUpdate:
    """An update of the state of a thread, and the routes its router chose."""

    thread: Thread
    routes: list[Edge] = field(default_factory=list)


_UPDATE: ContextVar[StateUpdate | None] = ContextVar("_UPDATE", default=None)


def current_state_update() -> StateUpdate | None:
    """The update of the state for which a router is asked, if it is not asked after its node."""
    return _UPDATE.get()


@contextmanager
def updating_state(thread: Thread) -> Iterator[None]:
    """While the state of a thread is updated. In the trace, routes that change replace the earlier ones."""
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
