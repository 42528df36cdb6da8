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

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from harness.engine.context import RunContext
from harness.engine.pauses import Question
from harness.graph.effects import HumanCall
from harness.graph.model import Graph, Reducer, State, Writes
from harness.graph.to_json import to_json


class People:
    """Asks the world's people the questions of a run. The scheduler decides when."""

    def __init__(self, run: RunContext) -> None:
        self._run = run

    def can_answer(self, questions: Iterable[Question], state: State) -> bool:
        """True if there are questions and the world has an answer to each. None may be a static breakpoint."""
        calls = [self._call(question) for question in questions]
        return bool(calls) and self._run.world.has_answers(calls, state)

    async def answer(self, question: Question, state: State) -> Any:
        """Return the answer of a person, in the form that the paused node receives (`Lifecycle.answer`).

        Raises:
            Exception: the world's answer is an error. It is recorded in `RunContext.failure`.
        """
        run = self._run
        try:
            reply = await run.perform(self._call(question), state, question.node)
        except Exception as error:
            run.failure = (error, question.node)
            raise
        return await run.graph.lifecycle.answer(reply, run)

    def _call(self, question: Question) -> HumanCall:
        run, node = self._run, question.node
        name = run.caller.name if run.caller and run.caller.attribute_to_caller else node
        value = to_json(question.value)
        # `{question, options}` if the pause has a question, else `{value}`.
        if isinstance(value, dict) and "question" in value:
            args = {key: value[key] for key in ("question", "options") if key in value}
        else:
            args = {"value": value}
        return HumanCall(node=run.effect_node(node), name=name, args=args)


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


def initial_state(graph: Graph, update: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first state of a thread: the channels' initial values, updated with the first input."""
    defaults = {channel.name: channel.initial() for channel in graph.channels if channel.initial}
    return merged(graph, defaults, update)


def merged(graph: Graph, state: State, update: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state with an update: reduced, if the channel has a reducer and a value. Unknown keys are dropped.

    With an open state, the update is the whole new state.
    """
    if graph.open_state:
        return dict(update) if graph.merges is None else merged_writes(graph.merges, state, update)
    result = dict(state)
    for channel in graph.channels:
        if channel.name in update:
            old, new = result.get(channel.name), update[channel.name]
            result[channel.name] = channel.reducer(old, new) if channel.reducer and old is not None else new
    return result


def merged_writes(reducers: Mapping[str, Reducer], state: State, update: Mapping[str, Any]) -> dict[str, Any]:
    """Return an open state with the keys that a node wrote, or the whole new state."""
    if not isinstance(update, Writes):
        return dict(update)
    result = dict(state)
    for key, new in update.items():
        result[key] = reducers[key](result.get(key), new) if key in reducers else new
    return result


def with_partial_updates(graph: Graph, state: State, questions: Iterable[Question]) -> State:
    """Return the state with the partial updates of paused visits, applied in the order of the graph's nodes."""
    order = {node.name: rank for rank, node in enumerate(graph.nodes)}
    paused = {id(question.replay): question.replay for question in questions}
    partial = [
        (order[replay.node], replay.pause.partial_update)
        for replay in paused.values()
        if replay.pause is not None and replay.pause.partial_update is not None
    ]
    for _, update in sorted(partial, key=lambda item: item[0]):
        state = merged(graph, state, update)
    return state
