"""What a running graph, and each of its nodes, may do: perform effects, wait, pause, warn, make ids.

`Simulation` is shared by a run and all runs nested in it: one world, one clock, one seed, one trace.
`RunContext` is one graph running in it, `NodeContext` one visit of a node.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from harness.engine.breakpoints import Superstep
from harness.engine.pauses import Pauses, Question, Replay
from harness.errors import WorldError
from harness.graph.effects import Effect, World
from harness.graph.model import Edge, Graph, State
from harness.graph.trace import Trace
from harness.time.clock import PRECISION

if TYPE_CHECKING:
    from harness.engine.conversation import Ending
    from harness.engine.nested import Caller

T = TypeVar("T")


class Simulation:
    """One world, clock, seed and trace. `now` is in virtual seconds since the simulation began."""

    def __init__(self, world: World, seed: int = 0) -> None:
        self.world = world
        self.trace = Trace()
        self.random = random.Random(seed)
        self.unanswerable: WorldError | None = None
        self.unanswered_in = ""
        self._began = asyncio.get_running_loop().time()

    @property
    def now(self) -> float:
        """Virtual seconds since the simulation began."""
        return round(asyncio.get_running_loop().time() - self._began, PRECISION)

    def abort(self, error: WorldError, node: str) -> None:
        """Note that the world could not answer `node` of the top graph. The first time counts."""
        if self.unanswerable is None:
            self.unanswerable, self.unanswered_in = error, node

    def raise_if_aborted(self) -> None:
        """Raise what the world could not answer before: whoever caught that, nothing goes on after it."""
        if self.unanswerable is not None:
            raise self.unanswerable

    def new_id(self, prefix: str) -> str:
        """An id that depends on nothing but the seed and how many were made before."""
        return f"{prefix}-{self.random.getrandbits(64):016x}"

    def warn(self, text: str) -> None:
        """Raise a warning: it stands in the trace and in `warnings`."""
        self.trace.record("warning", self.now, text=text)


class RunContext:
    """One graph running in a simulation. `resources` holds what the dialect prepared for this run."""

    def __init__(
        self, graph: Graph, simulation: Simulation, *, caller: Caller | None = None, thread_id: str = ""
    ) -> None:
        self.graph = graph
        self.simulation = simulation
        self.caller = caller
        self.prefix = caller.path if caller else ""
        self.thread_id = thread_id or simulation.new_id("thread")
        self.resources: dict[str, Any] = {}
        self.recursion_limit = graph.recursion_limit
        self.invocation = 0
        self.failure: tuple[Exception, str] | None = None  # the first of an invocation, and its node
        self.paused: dict[str, Replay] = {}  # LangGraph task id → what the paused visit keeps
        self.questions: dict[str, Question] = {}  # interrupt id → what waits for an answer
        self.jumps: dict[str, str] = {}  # LangGraph task id → fallback node
        self.steps: dict[int, list[str]] = {}  # superstep of this invocation → its nodes
        self.superstep = Superstep()

    @property
    def world(self) -> World:
        """Everything outside the graph."""
        return self.simulation.world

    @property
    def now(self) -> float:
        """Virtual seconds since the simulation began."""
        return self.simulation.now

    def warn(self, text: str) -> None:
        """Raise a warning: it stands in the trace and in `warnings`."""
        self.simulation.warn(text)

    def new_id(self, prefix: str) -> str:
        """An id that comes from the seed."""
        return self.simulation.new_id(prefix)

    def record_routes(self, edges: Sequence[Edge]) -> None:
        """Put the transitions that are taken into the trace."""
        self.superstep.routes += edges
        for edge in edges:
            self.simulation.trace.record(
                "route",
                self.now,
                graph=self.prefix,
                source=edge.source,
                target=edge.target,
                condition=edge.label,
            )

    def effect_node(self, node: str) -> str:
        """What effects call a node of this graph: `outer/inner` in a nested one."""
        caller = self.caller
        if caller is None:
            return node
        return caller.node if caller.attribute_to_caller else f"{caller.node}/{node}"

    async def perform(self, effect: Effect, state: State, node: str) -> Any:
        """Have the world answer an effect, and record both.

        Returns the answer's value.

        Raises:
            WorldError: nothing answers. The run ends, whatever catches this.
            Exception: the answer is an error.
        """
        simulation = self.simulation
        simulation.raise_if_aborted()
        effect = dataclasses.replace(effect, node=self.effect_node(node))
        started = simulation.now
        call = simulation.trace.call(effect, started)
        value: Any = None
        error: BaseException | None = None
        try:
            answer = await simulation.world.answer(effect, state)
            if answer.latency_s:
                await asyncio.sleep(answer.latency_s)
            if answer.error is not None:
                raise answer.error
            value = answer.value
        except BaseException as raised:
            error = raised
            if isinstance(raised, WorldError):
                simulation.abort(raised, self.caller.top if self.caller else node)
            raise
        finally:
            now = simulation.now
            simulation.trace.answered(call, now, round(now - started, PRECISION), value, error)
        return value


class NodeContext:
    """One visit of a node. `name` is its name in its own graph; `state` what it was given.

    `replay` is what the visit kept when it paused.
    """

    def __init__(self, run: RunContext, name: str, state: State, replay: Replay | None = None) -> None:
        self.run = run
        self.name = name
        self.state = state
        self._replay = replay

    @cached_property
    def pauses(self) -> Pauses:
        """The pauses of this visit."""
        return Pauses(self._replay or Replay(self.name))

    @property
    def failed_attempts(self) -> int:
        """How many attempts of this visit failed, before it paused as well."""
        return self.pauses.replay.failed_attempts

    def attempt_failed(self) -> None:
        """Tell that what this visit did so far failed, and that it may be done again from its start.

        A node that is resumed must begin with the attempt that paused: `failed_attempts` says which it is.
        """
        self.pauses.attempt_failed()

    async def perform(self, effect: Effect) -> Any:
        """Have the world answer an effect; see `RunContext.perform`."""
        return await self.run.perform(effect, self.state, self.name)

    def uses_backend(self, effect: Effect) -> bool:
        """Whether the real thing, or its recording, would answer an effect, and no stub."""
        effect = dataclasses.replace(effect, node=self.run.effect_node(self.name))
        return self.run.world.uses_backend(effect, self.state)

    async def sleep(self, seconds: float) -> None:
        """Wait, in virtual seconds."""
        await asyncio.sleep(seconds)

    async def pause(self, value: Any, *, partial_update: Mapping[str, Any] | None = None) -> Any:
        """Interrupt the run with a value and return the answer it is resumed with.

        A resumed node runs again from its start, and this call then returns. `partial_update` is what the node has
        written so far: the state shows it while the run is paused, but only what the node returns is kept.
        """
        return await self.pauses.answer(self.pauses.come_by("pause"), value, partial_update)

    async def once(self, key: str, make: Callable[[], Awaitable[T]]) -> T:
        """What `make` gives, made only once in this visit, however often a pause has the node run again.

        Keys belong to the visit. What fails, or has not come to its end when the visit pauses, is not kept;
        `make` itself cannot pause, nor run graphs inside of the visit.
        """
        return await self.pauses.once(key, make)

    def warn(self, text: str) -> None:
        """Raise a warning: it stands in the trace and in `warnings`."""
        self.run.warn(text)

    def new_id(self, prefix: str) -> str:
        """An id that comes from the seed."""
        return self.run.new_id(prefix)

    def is_fatal(self, error: Exception) -> bool:
        """Whether this is a pause, or an error that must end the run: retries and fallbacks let it pass."""
        from langgraph.errors import GraphBubbleUp

        return isinstance(error, (GraphBubbleUp, WorldError)) or self.run.simulation.unanswerable is not None

    async def run_nested(self, graph: Graph, value: Any) -> Ending:
        """Run another graph from its start, on a thread of its own, in this world, clock and trace.

        A pause ends it with the status `interrupted`.

        Raises:
            NestingError: deeper than `harness.engine.nested.MAX_CALLS` levels.
            Exception: what ended the nested run, if it failed.
        """
        from harness.engine.nested import run_nested

        return await run_nested(self, graph, value)

    async def run_inside(
        self,
        graph: Graph,
        value: Any,
        *,
        key: str = "",
        attribute_to_caller: bool = False,
        partial_update: Callable[[State], Mapping[str, Any]] | None = None,
    ) -> Ending:
        """Run another graph as a part of this visit: when it pauses and nobody answers, this node pauses.

        When the node is resumed and comes by here again, the nested run goes on where it was. Several may run
        side by side (`harness.time.gather`): the node pauses when each has ended or paused, for the first
        of them.

        Args:
            graph: what runs, on a thread of its own, in this world, clock and trace.
            value: its input.
            key: tells nested runs apart that may come by here in another order when the node runs again.
            attribute_to_caller: its effects carry this node's name, as if this node made them.
            partial_update: what this node leaves while it is paused, made from the nested run's state; see `pause`.

        Raises:
            NestingError: deeper than `harness.engine.nested.MAX_INSIDE` levels.
            Exception: what ended the nested run, if it failed.
        """
        from harness.engine.nested import run_inside

        return await run_inside(
            self,
            graph,
            value,
            key=key,
            attribute_to_caller=attribute_to_caller,
            partial_update=partial_update,
        )
