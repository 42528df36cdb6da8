"""How a scheduler plugs into a conversation.

A `Conversation` accepts inputs and answers and turns what happens into an ending; a scheduler decides which node
is visited when. It is made once for a thread, with the run, and keeps the thread's state between calls:

    start(update, people)    a new input: apply it to the state, go from START, and return when nothing can go on
    resume(answers, people)  keep each answer (`Question.answer`), re-run the paused visits, and return likewise
    state                    the state reached so far, readable at any time (a time-out cuts a run off); while the run
                             is paused, with what paused visits have written (`harness.engine.state`)
    pending                  the questions that nobody has answered, by an id of the scheduler's; it is empty when the
                             run came to its end

`start` and `resume` return when every path has ended or is paused; they raise when the run fails. The error to
report and its node are `RunContext.failure`, which `visit`, `next_edges` and `People` set; an exception without it is
reported without a node. The scheduler calls `visit` for each visit (see there for pauses), records the routes it
follows (`RunContext.record_routes`), and asks `people`, unless they are None, when its semantics say so: the
supersteps when all stand still and everybody has an answer, the events as soon as a visit pauses.

The kind of the graph decides which scheduler runs it, and `harness.engine.conversation` makes it.
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
        """The questions that wait for an answer, in order, by id."""
        ...

    async def start(self, update: Mapping[str, Any], people: People | None) -> None:
        """Go from START with an input; on a thread that ran before, the state is kept."""
        ...

    async def resume(self, answers: Mapping[str, Any], people: People | None) -> None:
        """Go on with answers, by the ids of `pending`; static breakpoints are answered with None."""
        ...

    async def update_state(self, update: Mapping[str, Any], people: People | None) -> None:
        """Go on after static breakpoints with an update of the state, made as if by the last node that ran."""
        ...
