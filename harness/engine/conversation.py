"""One thread of a graph: it takes inputs and answers, and returns an `Ending` for each.

`Conversation` calls the hooks of the graph's dialect (`Lifecycle`) before and after a run; a scheduler runs the
nodes. It is used inside an event loop: `harness.time` has the one with virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.engine.context import Caller, NodeContext, RunContext
from harness.engine.pauses import PausePoint, Question
from harness.engine.scheduler import People, Scheduler
from harness.engine.standstill import Simulation
from harness.engine.versions import DECLARATIVE_FLOORS, too_old
from harness.errors import RunError, WorldError
from harness.graph.events import EventGraph
from harness.graph.model import Graph, State
from harness.graph.native import NativeGraph
from harness.graph.to_json import error_text, to_json


@dataclass(frozen=True)
class Ending:
    """The result of an invocation (an input, or a resume).

    `state` is the last state reached. That of an interrupted run includes the partial updates of its paused nodes
    (`NodeContext.pause`). `node` is the node that failed, if known. `output` is None unless the run completed, or
    `Lifecycle.salvage` or `so_far` returned one.
    """

    status: Literal["completed", "interrupted", "failed"]
    state: State
    output: Any = None
    error: Exception | None = None
    node: str | None = None


class NotInterrupted(RunError):
    """An attempt to resume a run that is not interrupted."""

    code = "not-interrupted"


class NotAnEdit(RunError):
    """An attempt to resume a run at a static breakpoint with a value that is not a mapping."""

    code = "not-an-edit"


class Conversation:
    """One thread of a graph: call `prepare`, then `send` inputs and `resume` pauses, as often as needed.

    Args:
        graph: the graph to run.
        simulation: the world, clock, seed and trace it runs in.
        caller: for a nested graph, the node it runs inside.
        single: only one input will be sent, so checkpoints may not be needed.
    """

    def __init__(
        self, graph: Graph, simulation: Simulation, *, caller: Caller | None = None, single: bool = False
    ) -> None:
        self.graph = graph
        self.run = RunContext(graph, simulation, caller=caller)
        self._people = People(self.run)
        self._scheduler = _scheduler(self.run, single)

    @property
    def state(self) -> State:
        """The state reached so far. While the run is paused, it includes the partial updates of paused nodes."""
        return self._scheduler.state

    @property
    def pending(self) -> Mapping[str, Question]:
        """The questions that have no answer yet, by id, in order."""
        return self._scheduler.pending

    @property
    def store(self) -> list[dict[str, Any]] | None:
        """The items in the store of an app; None for a graph without one."""
        stored = getattr(self._scheduler, "stored", None)
        return stored() if stored is not None else None

    async def prepare(self) -> None:
        """Call the dialect's `Lifecycle.prepare`.

        Raises:
            ManifestError: the manifest turns out to be unusable (an MCP server that cannot be reached).
        """
        await self.graph.lifecycle.prepare(self.run)

    async def send(self, value: Any, *, ask: bool = True) -> Ending:
        """Run the graph from its entry with an input. A thread that ran before keeps its state.

        While the world's people have answers, they answer the pauses, unless `ask` is False.
        """
        self.run.begin()
        recorded = getattr(value, "recorded", None)
        self.run.record("input", value=to_json(recorded() if callable(recorded) else value))
        return await self._run_and_record(self._start(value, self._people if ask else None))

    async def resume(self, *values: Any, ask: bool = True) -> Ending:
        """Answer the pending pauses and continue. One value answers all of them, unless the graph
        does not share answers (`Graph.shares_answers`); several are matched in order.

        A static breakpoint asks nothing. If only breakpoints are pending, None or an empty mapping continues. Any
        other mapping first updates the state of this graph (`Lifecycle.update_state`): it is written as if by the
        last node that ran, and that node's router is asked again. A node in which a nested graph paused then starts
        over.

        A resume that is refused (`NotInterrupted`, `NotAnEdit`) returns a failed `Ending`.
        """
        for value in values:
            self.run.record("resume", value=to_json(value))
        return await self._run_and_record(self._resume(values, self._people if ask else None))

    async def _start(self, value: Any, people: People | None) -> None:
        update = await self.graph.lifecycle.accept(value, self.run) or {}
        await self._scheduler.start(update, people)

    async def _resume(self, values: Sequence[Any], people: People | None) -> None:
        pending = dict(self.pending)
        if not pending:
            raise NotInterrupted("nothing to resume: the run is not interrupted")
        if all(question.breakpoint for question in pending.values()):
            value = values[0] if values else None
            if value is None or value == {}:
                await self._scheduler.resume(dict.fromkeys(pending), people)
            else:
                await self._scheduler.update_state(await self._state_update(value), people)
            return
        answers = [await self.graph.lifecycle.answer(value, self.run) for value in values]
        if len(answers) == 1 and len(pending) > 1 and not self.graph.shares_answers:
            nodes = ", ".join(f"'{question.node}'" for question in pending.values())
            raise RuntimeError(  # the type and the reason are LangGraph's
                f"one resume cannot answer the questions of {nodes}: when there are multiple pending interrupts, you "
                "must specify the interrupt id when resuming; under `human` each node has its own answer"
            )
        if len(answers) == 1:
            answers *= len(pending)
        await self._scheduler.resume(dict(zip(pending, answers, strict=True)), people)

    async def _state_update(self, value: Any) -> Mapping[str, Any]:
        update = await self.graph.lifecycle.update_state(value, self.run)
        if not isinstance(update, Mapping):
            nodes = ", ".join(question.node for question in self.pending.values())
            raise NotAnEdit(
                f"the run is at a breakpoint ({nodes}), where nothing is asked: expected {{}} to go on, or a mapping "
                f"that updates the state, found {update!r}"
            )
        return update

    async def _run_and_record(self, running: Awaitable[None]) -> Ending:
        """Await the run, and record its end."""
        ending = await self._ending(running)
        error = ending.error
        shown = None if error is None else {"type": type(error).__name__, "message": error_text(error)}
        self.run.record(
            "end",
            status=ending.status,
            output=to_json(ending.output),
            error=shown,
            node=ending.node,
        )
        return ending

    async def _ending(self, running: Awaitable[None]) -> Ending:
        run = self.run
        run.failure = None
        try:
            await running
            run.simulation.raise_if_aborted()  # the graph may have caught the error
        except Exception as raised:
            error, node = run.failure or (raised, None)
            return await self._failed(run.simulation.fatal or run.simulation.down or error, node)
        if self.pending:
            return Ending("interrupted", self.state, await self.graph.lifecycle.so_far(self.run))
        try:
            return await self._completed()
        except Exception as error:
            return await self._failed(error, None)

    async def _completed(self) -> Ending:
        return Ending("completed", self.state, await self.graph.lifecycle.finish(self.state, self.run))

    async def _failed(self, error: Exception, node: str | None) -> Ending:
        if isinstance(error, WorldError):
            return Ending("failed", self.state, None, error, self.run.simulation.fatal_in or node)
        if error is self.run.simulation.fatal:
            return Ending("failed", self.state, None, error, self.run.simulation.fatal_in or None)
        try:
            rescued = await self.graph.lifecycle.rescue(error, self.run)
            if rescued is None:
                return await self._completed()
            output = await self.graph.lifecycle.salvage(self.run)
        except Exception as worse:
            rescued, output = worse, None
        return Ending("failed", self.state, output, rescued, node)


def _scheduler(run: RunContext, single: bool) -> Scheduler:
    """Return the scheduler for the kind of graph. It is imported here because importing LangGraph is slow."""
    if isinstance(run.graph, EventGraph):
        from harness.engine.event import EventScheduler

        return EventScheduler(run, run.graph)
    if isinstance(run.graph, NativeGraph):
        from harness.engine.native import NativeScheduler

        return NativeScheduler(run, run.graph)
    if text := too_old(DECLARATIVE_FLOORS, f"the graph {run.graph.name!r}, which the harness builds,"):
        raise RunError(text)
    from harness.engine.superstep import SuperstepScheduler

    return SuperstepScheduler(run, single=single)


MAX_CALLS = 10
"""The most levels of `run_nested`: sub-agents that call each other in a circle are stopped here."""

MAX_INSIDE = 100
"""The most levels of `run_inside`: a graph that contains itself is stopped here."""

LEVELS_PER_STACK = 8
"""Levels that share a stack. One takes some 30 frames, and Python allows 1000."""

PartialUpdate = Callable[[State], Mapping[str, Any]]


class NestingError(RunError):
    """Graphs nested too deep: agents that call each other in a circle, or too many graphs inside each other."""

    code = "nesting"


@dataclass
class NestedRun:
    """A graph that runs inside a visit. `answered` is the number of its pauses that were answered."""

    caller: Caller
    conversation: Conversation
    ending: Ending
    answered: int = 0


async def run_nested(ctx: NodeContext, graph: Graph, value: Any) -> Ending:
    """Run another graph from its start, on a thread of its own, in this visit's world, clock and trace.

    A pause ends it with the status `interrupted`.

    Raises:
        NestingError: it would be deeper than `MAX_CALLS` levels.
        Exception: the error of the nested run, if it failed.
    """
    caller = _caller(ctx, calls=1)
    if caller.calls > MAX_CALLS:
        raise NestingError(
            f"agents call each other more than {MAX_CALLS} levels deep: {caller.path}{graph.name}"
        )
    conversation = await _prepare(ctx, graph, caller)
    return _checked(await _with_stack(conversation.send(value, ask=False), caller))


async def run_inside(
    ctx: NodeContext,
    graph: Graph,
    value: Any,
    *,
    key: str = "",
    attribute_to_caller: bool = False,
    partial_update: PartialUpdate | None = None,
) -> Ending:
    """Run another graph as a part of this visit: if it pauses and nobody answers, this node pauses.

    When the node is resumed and reaches this call again, the nested run continues where it paused. Several may run
    side by side (`harness.time.gather`): the node pauses when each has ended or paused, for the first of them.

    Args:
        ctx: the visit.
        graph: the graph, which runs on a thread of its own, in this visit's world, clock and trace.
        value: the input of the graph.
        key: identifies the nested run if a re-run of the node may reach its nested runs in another order.
        attribute_to_caller: the graph's effects carry this node's name, as if this node performed them.
        partial_update: makes this node's partial update while it is paused (see `NodeContext.pause`) from the state
            of the nested run.

    Raises:
        NestingError: it would be deeper than `MAX_INSIDE` levels.
        Exception: the error of the nested run, if it failed.
    """
    pauses = ctx.pauses
    point = pauses.reach(f"inside {key}")
    nested: NestedRun | None = pauses.replay.nested.get(point)
    if nested is None:
        caller = _caller(ctx, inside=1, attribute_to_caller=attribute_to_caller)
        if caller.inside > MAX_INSIDE:
            raise NestingError(
                f"graphs run inside each other more than {MAX_INSIDE} levels deep: {caller.path}{graph.name}"
            )
        with pauses.running():
            conversation = await _prepare(ctx, graph, caller)
            nested = NestedRun(caller, conversation, await _with_stack(conversation.send(value), caller))
        pauses.replay.nested[point] = nested
    else:
        pauses.replayed(nested.answered)
    while nested.ending.status == "interrupted":
        await _answer(ctx, nested, point, partial_update)
    return _checked(nested.ending)


async def _answer(
    ctx: NodeContext, nested: NestedRun, point: PausePoint, partial_update: PartialUpdate | None
) -> None:
    """Pause for each pause of a nested run, one after the other, and resume it with the answers."""
    pauses, conversation = ctx.pauses, nested.conversation
    partial = partial_update(conversation.state) if partial_update else None
    questions = dict(conversation.pending)
    if all(question.breakpoint for question in questions.values()):
        questions = dict([questions.popitem()])  # breakpoints ask nothing: one pause stands for all of them
    answers = [
        await pauses.answer(point, question.value, partial, asked=id_, breakpoint=question.breakpoint)
        for id_, question in questions.items()
    ]
    with pauses.running():
        nested.ending = await _with_stack(conversation.resume(*answers), nested.caller)
    nested.answered += len(answers)
    for id_ in questions:
        del pauses.replay.answers[point, id_]


def _caller(
    ctx: NodeContext, *, calls: int = 0, inside: int = 0, attribute_to_caller: bool = False
) -> Caller:
    """Return this visit as the caller of a nested graph. `calls` and `inside` are the levels to add."""
    above = ctx.run.caller
    return Caller(
        path=f"{ctx.run.prefix}{ctx.name}/",
        top=above.top if above else ctx.name,
        name=ctx.name,
        node=ctx.run.effect_node(ctx.name),
        calls=calls + (above.calls if above else 0),
        inside=inside + (above.inside if above else 0),
        attribute_to_caller=attribute_to_caller,
    )


async def _prepare(ctx: NodeContext, graph: Graph, caller: Caller) -> Conversation:
    """Return a conversation with a nested graph that is ready for its input."""
    conversation = Conversation(graph, ctx.run.simulation, caller=caller, single=True)
    await conversation.prepare()
    return conversation


async def _with_stack(running: Coroutine[Any, Any, Ending], caller: Caller) -> Ending:
    """Await a nested run; every `LEVELS_PER_STACK` levels in a new task, which has a new stack."""
    if (caller.calls + caller.inside) % LEVELS_PER_STACK:
        return await running
    return await asyncio.create_task(running)


def _checked(ending: Ending) -> Ending:
    if ending.error is not None:
        raise ending.error
    return ending
