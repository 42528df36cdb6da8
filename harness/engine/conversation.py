"""One thread of a graph: inputs and answers go in, an ending comes out. A scheduler runs what is in between.

A `Conversation` is driven from inside an event loop; `harness.time` has the virtual one.
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
    """How an invocation ended.

    `state` is the last one reached; of an interrupted run, with the partial updates of its paused nodes
    (`NodeContext.pause`). `node` is where it failed, where that is known. `output` is None unless it completed, or
    `Lifecycle.salvage` or `so_far` made one.
    """

    status: Literal["completed", "interrupted", "failed"]
    state: State
    output: Any = None
    error: Exception | None = None
    node: str | None = None


class NotInterrupted(RunError):
    """A resume of a run that does not wait for an answer."""

    code = "not-interrupted"


class NotAnEdit(RunError):
    """A resume of a run that is paused at a static breakpoint, with something that is no mapping."""

    code = "not-an-edit"


class Conversation:
    """One thread of a graph: `prepare` it, then `send` inputs and `resume` pauses, in any number.

    Args:
        graph: what runs.
        simulation: the world, clock, seed and trace it runs in.
        caller: the node it runs inside, for a nested graph.
        single: only one input will be sent.
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
        """The state reached so far; while the run is paused, with the partial updates of its paused nodes."""
        return self._scheduler.state

    @property
    def pending(self) -> Mapping[str, Question]:
        """The questions that wait for an answer, in order, by id."""
        return self._scheduler.pending

    async def prepare(self) -> None:
        """Do what the dialect does before a run.

        Raises:
            ManifestError: the manifest is refused after all (an MCP server that cannot be reached).
        """
        await self.graph.lifecycle.prepare(self.run)

    async def send(self, value: Any, *, ask: bool = True) -> Ending:
        """Start at the entry with an input; on a thread that ran before, the state is kept.

        Pauses are answered by the world's people as long as they have answers, unless `ask` is False.
        """
        self.run.begin()
        recorded = getattr(value, "recorded", None)
        self.run.record("input", value=to_json(recorded() if callable(recorded) else value))
        return await self._ending(self._start(value, self._people if ask else None))

    async def resume(self, *values: Any, ask: bool = True) -> Ending:
        """Answer the pending pauses and go on: one value answers all of them, else each has its own, in order.

        Static breakpoints ask nothing. When nothing else is pending, None or an empty mapping goes on, and a mapping
        first updates the state of this graph (`Lifecycle.update_state`): as the last node that ran would write it,
        whose router is asked again. A node in which a nested graph paused then starts anew.
        """
        for value in values:
            self.run.record("resume", value=to_json(value))
        return await self._ending(self._resume(values, self._people if ask else None))

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

    async def _ending(self, going: Awaitable[None]) -> Ending:
        """Have the run go as far as it can, and record how it ended."""
        ending = await self._reached(going)
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

    async def _reached(self, going: Awaitable[None]) -> Ending:
        run = self.run
        run.failure = None
        try:
            await going
            run.simulation.raise_if_aborted()  # something in between may have caught it
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
    """What runs the graph, as it says. Imported when it is needed first: LangGraph takes its time."""
    if isinstance(run.graph, EventGraph):
        from harness.engine.event import EventScheduler

        return EventScheduler(run, run.graph)
    from harness.engine.superstep import SuperstepScheduler

    return SuperstepScheduler(run, single=single)
