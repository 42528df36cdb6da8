"""The interface between a graph and the engine: effects, waiting, pauses, warnings and ids.

`RunContext` belongs to one running graph, `NodeContext` to one visit of a node. Graphs that run inside a visit are
in `harness.engine.conversation`.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from harness.engine.pauses import Paused, Pauses, Replay
from harness.engine.standstill import EffectType, LoopDetector, Simulation
from harness.errors import WorldError
from harness.graph.effects import Effect, MCPCall
from harness.graph.model import Edge, Graph, NodeEntry, State
from harness.graph.to_json import error_text, told_error
from harness.graph.trace import BECAUSE, Then
from harness.graph.world import World
from harness.time.blocking import wait
from harness.units import PRECISION

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Caller:
    """The node that a nested graph runs inside.

    Attributes:
        path: the names of the nodes that lead to the nested graph, each followed by `/` (`outer/`).
        top: the first of these names: the node in the outermost graph.
        name: the name of the node in its own graph.
        node: the name that the node's own effects carry (`RunContext.effect_node`).
        calls: the number of `run_nested` levels.
        inside: the number of `run_inside` levels.
        attribute_to_caller: the effects of the nested graph carry `node`, as if this node performed them.
    """

    path: str
    top: str
    name: str
    node: str
    calls: int
    inside: int
    attribute_to_caller: bool


class RunContext:
    """One graph running in a simulation.

    `resources` holds what the dialect prepared for this run. `failure` is the first error of the current invocation
    and the node that raised it. `stops` are the exceptions that interrupt a visit without failing it: `Paused`, and
    those that the scheduler adds for its library.
    """

    def __init__(self, graph: Graph, simulation: Simulation, *, caller: Caller | None = None) -> None:
        self.graph = graph
        self.simulation = simulation
        self.caller = caller
        self.prefix = caller.path if caller else ""
        self.thread_id = simulation.new_thread_id()
        self.resources: dict[str, Any] = {}
        self.recursion_limit = graph.recursion_limit
        self.failure: tuple[Exception, str] | None = None
        self._entries: Counter[str] = Counter()
        self._began = self.now
        self._loop_detector = LoopDetector(simulation, graph)
        self.stops: tuple[type[Exception], ...] = (Paused,)

    @property
    def world(self) -> World:
        """Everything outside the graph."""
        return self.simulation.world

    @property
    def now(self) -> float:
        """Virtual seconds since the simulation began."""
        return self.simulation.now

    def warn(self, text: str, node: str = "") -> None:
        """Add a warning to the trace, and to the result's `warnings` with the location of `node`, if given."""
        self.simulation.warn(text, next((n.span for n in self.graph.nodes if n.name == node), None))

    def new_id(self, prefix: str) -> str:
        """Return a new id, derived from the seed."""
        return self.simulation.new_id(prefix)

    def begin(self) -> None:
        """Begin a new input: reset the count of entries, the time, and the loop detector."""
        self._entries.clear()
        self._began = self.now
        self._loop_detector.reset()

    def enter(self, node: str, step: tuple[int, int]) -> None:
        """Count a visit that is about to start. Nodes with the same `step` run side by side.

        Raises:
            EndlessLoop: the graph loops while the virtual clock stands still. The run ends, even if this is caught.
        """
        error = self._loop_detector.enter(node, step)
        if error is not None:
            self.simulation.abort(error, self.caller.top if self.caller else "")
            raise error

    def number_visit(self, node: str) -> str:
        """Return the name of a visit that starts, which is the same in every run: the node and the visit's number."""
        path = f"{self.prefix}{node}"
        self.simulation.visits_of[path] += 1
        return f"{path}#{self.simulation.visits_of[path]}"

    def refusal(self, node: str) -> Exception | None:
        """Count a visit that is about to start. Return the error if the graph's guard refuses it, else None."""
        guard = self.graph.lifecycle.guard
        if guard is None:
            return None
        self._entries[node] += 1
        return guard(NodeEntry(node, self._entries[node], round(self.now - self._began, PRECISION)))

    def fail(self, error: Exception, node: str) -> None:
        """Record the failure of a node. Only the first failure of an invocation is kept."""
        self.failure = self.failure or (error, node)

    def record(self, event: str, **data: Any) -> None:
        """Add an event of this graph to the trace."""
        self.simulation.trace.record(event, self.now, graph=self.prefix, **data)

    def because(self, node: str, why: Exception | str, then: Then) -> None:
        """Record why a node runs again or goes another way. A text ends a sentence that begins with `because`."""
        message = why if isinstance(why, str) else told_error(type(why).__name__, error_text(why))
        self.record(BECAUSE, node=node, then=then, message=message)

    def record_routes(self, edges: Sequence[Edge]) -> None:
        """Add the transitions that are taken to the trace."""
        for edge in edges:
            self.record("route", source=edge.source, target=edge.target, condition=edge.label)

    def effect_node(self, node: str) -> str:
        """Return the name that effects of a node of this graph carry: `outer/inner` in a nested graph."""
        caller = self.caller
        if caller is None:
            return node
        return caller.node if caller.attribute_to_caller else f"{caller.node}/{node}"

    def attributed(self, effect: EffectType, node: str) -> EffectType:
        """Return the effect with the name of the node that performs it, and with the changes of the variant."""
        return self.simulation.with_variant(dataclasses.replace(effect, node=self.effect_node(node)))

    async def perform(self, effect: Effect, state: State, node: str, replay: Replay | None = None) -> Any:
        """Perform an effect: ask the world, wait for the answer's latency, and return the answer's value.

        The effect and its answer are recorded in the trace. If a graph that runs inside the effect pauses, the effect
        stays open: the re-run of the node, which passes its `replay`, continues the same call.

        Raises:
            WorldError: nothing answers. The run ends, even if this is caught.
            Exception: the answer is an error.
        """
        simulation = self.simulation
        simulation.raise_if_aborted()
        effect = self.attributed(effect, node)
        if isinstance(effect, MCPCall):
            effect = dataclasses.replace(effect, perform=lambda asked: self.perform(asked, state, node))
        key = (effect.kind, effect.name)
        call, started = replay.open_calls.pop(key, (0, 0.0)) if replay else (0, 0.0)
        if not call:
            started = simulation.now
            call = simulation.trace.record_call(effect, started)
        value: Any = None
        error: BaseException | None = None
        try:
            answer = await simulation.world.answer(effect, state)
            if answer.latency_s:
                await wait(answer.latency_s)
            if answer.error is not None:
                raise answer.error
            value = answer.value
        except self.stops as stopped:
            replay = getattr(stopped, "replay", replay)
            if replay is not None:
                replay.open_calls[key] = call, started
                call = 0
            raise
        except BaseException as raised:
            error = raised
            if isinstance(raised, WorldError):
                simulation.abort(raised, self.caller.top if self.caller else node)
            raise
        finally:
            now = simulation.now
            if call:
                simulation.trace.record_answer(call, now, round(now - started, PRECISION), value, error)
        return value

    def refuse(self, effect: Effect, why: Exception, node: str) -> None:
        """Record an effect that a model asked for and that cannot be performed, with the error."""
        simulation = self.simulation
        simulation.trace.record_refusal(self.attributed(effect, node), simulation.now, why)


def _ignore(_answered: int) -> None:
    pass


class NodeContext:
    """One visit of a node: the interface through which a node does anything but compute.

    Args:
        run: the running graph.
        name: the name of the node in its own graph.
        state: the state that the node receives.
        replay: the saved state of the visit, if it paused before.
        on_replay: see `Pauses`.
    """

    def __init__(
        self,
        run: RunContext,
        name: str,
        state: State,
        replay: Replay | None = None,
        on_replay: Callable[[int], None] = _ignore,
    ) -> None:
        self.run = run
        self.name = name
        self.state = state
        self._replay = replay
        self._on_replay = on_replay

    @cached_property
    def pauses(self) -> Pauses:
        """The pauses of this visit."""
        return Pauses(self._replay or Replay(self.name), self._on_replay)

    @property
    def failed_attempts(self) -> int:
        """The number of failed attempts of this visit, including those before it paused."""
        return self.pauses.replay.failed_attempts

    def attempt_failed(self) -> None:
        """Mark the current attempt of this visit as failed, before another one starts over.

        A node that is resumed must continue with the attempt that paused: `failed_attempts` is its index.
        """
        self.pauses.attempt_failed()

    async def perform(self, effect: Effect) -> Any:
        """Perform an effect and return the answer's value; see `RunContext.perform`."""
        return await self.run.perform(effect, self.state, self.name, self._replay)

    def refuse(self, effect: Effect, why: Exception) -> None:
        """Record an effect that a model asked for and that cannot be performed, with the error."""
        self.run.refuse(effect, why, self.name)

    def uses_backend(self, effect: Effect) -> bool:
        """True if the live backend or its recording would answer the effect, and no stub."""
        effect = self.run.attributed(effect, self.name)
        return self.run.world.uses_backend(effect, self.state)

    def has_answer(self, effect: Effect) -> bool:
        """True if the world has an answer to the effect. Consumes no answer."""
        effect = self.run.attributed(effect, self.name)
        return self.run.world.has_answers([effect], self.state)

    def asks_live(self, effect: Effect) -> bool:
        """True if the live backend would answer the effect, and no recording."""
        effect = self.run.attributed(effect, self.name)
        return self.run.world.asks_live(effect, self.state)

    async def sleep(self, seconds: float) -> None:
        """Wait for a number of virtual seconds."""
        await asyncio.sleep(seconds)

    async def pause(self, value: Any, *, partial_update: Mapping[str, Any] | None = None) -> Any:
        """Interrupt the run with a value, and return the answer that it is resumed with.

        A resumed node runs again from its start, and this call then returns the answer. `partial_update` is the
        node's update so far: the state shows it while the run is paused, but only the returned update is kept.
        """
        return await self.pauses.answer(self.pauses.reach("pause"), value, partial_update)

    async def once(self, key: str, make: Callable[[], Awaitable[T]]) -> T:
        """Call `make` once in this visit, and return its result in every re-run of the node after a pause.

        `key` identifies the result within the visit. Nothing is kept if the call fails, or has not returned when the
        visit pauses. `make` itself cannot pause or run graphs inside the visit.
        """
        return await self.pauses.once(key, make)

    def because(self, why: Exception | str, then: Then) -> None:
        """Record why this node runs again or goes another way; see `RunContext.because`."""
        self.run.because(self.name, why, then)

    def warn(self, text: str) -> None:
        """Add a warning to the trace, and to the result's `warnings` with the location of the node."""
        self.run.warn(text, self.name)

    def new_id(self, prefix: str) -> str:
        """Return a new id, derived from the seed."""
        return self.run.new_id(prefix)

    def is_fatal(self, error: Exception) -> bool:
        """True for a pause, or an error that must end the run: retries and fallbacks must re-raise it."""
        return isinstance(error, (*self.run.stops, WorldError)) or self.run.simulation.fatal is not None
