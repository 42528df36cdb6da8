"""Pauses around nodes, and edits of the state while a run is paused so.

LangGraph takes an edit as the writing of the last node that ran: what was chosen after the last superstep is
void, and the router of that node is asked again. It gets no runtime context then, so it finds the run here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.errors import RunError
from harness.graph.model import Edge

if TYPE_CHECKING:
    from harness.engine.context import RunContext

# Stands for a pause around nodes where other pauses have an id of LangGraph's.
AROUND: Final = "around"


class NotAnEdit(RunError):
    """A resume of a run that paused around a node, with something that is no mapping."""

    code = "not-an-edit"


@dataclass
class Superstep:
    """The last superstep of a thread: what ran in it, and the routes chosen after it, which nothing followed yet."""

    number: int | None = None
    nodes: list[str] = field(default_factory=list)
    routes: list[Edge] = field(default_factory=list)
    ended: bool = False

    def enter(self, number: int | None, *nodes: str) -> None:
        """A node starts in a superstep, or goes on in it; None: nothing has run, there is a new input."""
        if number is None or number != self.number:
            self.number, self.nodes, self.routes, self.ended = number, [], [], False
        self.nodes.extend(nodes)

    def ends_before(self, pauses: frozenset[str]) -> bool:
        """Whether a run that has ended pauses after one of its last nodes. It does so once."""
        pauses_here = not self.ended and not pauses.isdisjoint(self.nodes)
        self.ended = True
        return pauses_here


@dataclass
class Edit:
    """An edit of the state of a run, and the routes its router chose."""

    run: RunContext
    routes: list[Edge] = field(default_factory=list)


_EDIT: ContextVar[Edit | None] = ContextVar("EDIT", default=None)


def current_edit() -> Edit | None:
    """The edit that a router is asked for, if it is not asked after its node."""
    return _EDIT.get()


@contextmanager
def editing(run: RunContext) -> Iterator[None]:
    """While the state of a run is edited. In the trace, routes that change take the place of the earlier ones."""
    edit = Edit(run)
    token = _EDIT.set(edit)
    try:
        yield
    finally:
        _EDIT.reset(token)
    superstep = run.superstep
    if not edit.routes or edit.routes == superstep.routes:
        return
    if superstep.routes:
        run.simulation.trace.record("reroute", run.now, graph=run.prefix, instead_of=len(superstep.routes))
    superstep.routes = []
    run.record_routes(edit.routes)
