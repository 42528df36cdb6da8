"""The interface of a scheduler, which decides which node is visited when.

A `Conversation` makes one scheduler for a thread, according to the kind of its graph, and turns inputs and answers
into calls of it. The scheduler keeps the state of the thread between these calls:

    start(update, people)    apply a new input to the state, run from START, and return when nothing can continue
    resume(answers, people)  store each answer (`Question.answer`), re-run the paused visits, and return likewise
    state                    the state reached so far, readable at any time (a time-out may cut a run off); while the
                             run is paused, with the partial updates of paused visits (`harness.engine.state`)
    pending                  the questions without an answer, by an id that the scheduler chooses; empty when the run
                             has ended

`start` and `resume` return when every path has ended or is paused, and raise if the run fails. The error to report
and its node are in `RunContext.failure`, which `visit`, `next_edges` and `People` set; an exception that is not
recorded there is reported without a node. The scheduler calls `visit` for each visit (see there for pauses) and
records the routes it follows (`RunContext.record_routes`). It asks `people`, unless that is None: the superstep
scheduler when no node can run and every question has an answer, the event scheduler as soon as a visit pauses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from harness.engine.pauses import Question
from harness.engine.people import People
from harness.graph.model import State


class Scheduler(Protocol):
    """Runs the visits of one thread of a graph; see the module."""

    @property
    def state(self) -> State:
        """The state reached so far."""
        ...

    @property
    def pending(self) -> Mapping[str, Question]:
        """The questions without an answer, by id, in order."""
        ...

    async def start(self, update: Mapping[str, Any], people: People | None) -> None:
        """Run from START with an input. A thread that ran before keeps its state."""
        ...

    async def resume(self, answers: Mapping[str, Any], people: People | None) -> None:
        """Continue with answers, by the ids of `pending`. The answer to a static breakpoint is None."""
        ...

    async def update_state(self, update: Mapping[str, Any], people: People | None) -> None:
        """Continue after static breakpoints with an update of the state, written as if by the last node that ran."""
        ...
