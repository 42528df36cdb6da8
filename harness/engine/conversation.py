"""One thread of a graph: it takes inputs and answers, and returns an `Ending` for each.

`Conversation` calls the hooks of the graph's dialect (`Lifecycle`) before and after a run; a scheduler runs the
nodes. It is used inside an event loop: `harness.time` has the one with virtual time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.engine.context import Caller, RunContext
from harness.engine.pauses import Question
from harness.engine.people import People
from harness.engine.scheduler import Scheduler
from harness.engine.simulation import Simulation
from harness.errors import RunError, WorldError
from harness.graph.events import EventGraph
from harness.graph.model import Graph, State
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
            return await self._failed(run.simulation.fatal or error, node)
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
    from harness.engine.superstep import SuperstepScheduler

    return SuperstepScheduler(run, single=single)
