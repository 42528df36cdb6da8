"""What a running graph, and each visit of its nodes, may do: perform effects, wait, pause, warn, make ids.

`RunContext` is one graph running in a simulation, `NodeContext` one visit of a node. Graphs that run inside a visit
are in `harness.engine.nested`.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from harness.engine.pauses import Paused, Pauses, Replay
from harness.engine.simulation import EffectType, Simulation
from harness.engine.standstill import Instant
from harness.errors import WorldError
from harness.graph.effects import Effect, World
from harness.graph.model import Edge, Graph, NodeEntry, State
from harness.units import PRECISION

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Caller:
    """The node that a nested graph runs inside.

    `path` has the nodes that lead there (`outer/`), and `top` the first of them; `node` is the node of effects.
    `calls` and `inside` count the levels of `run_nested` and of `run_inside`. With `attribute_to_caller`, the effects
    of the nested graph carry the name of this node.
    """

    path: str
    top: str
    name: str
    node: str
    calls: int
    inside: int
    attribute_to_caller: bool


class RunContext:
    """One graph running in a simulation. `resources` holds what the dialect prepared for this run.

    `failure` is the first error of the current invocation with the node it came from. `stops` are the exceptions
    that interrupt a visit and are no failure: the scheduler adds those of its library.
    """

    def __init__(self, graph: Graph, simulation: Simulation, *, caller: Caller | None = None) -> None:
        self.graph = graph
        self.simulation = simulation
        self.caller = caller
        self.prefix = caller.path if caller else ""
        self.thread_id = simulation.new_id("thread")
        self.resources: dict[str, Any] = {}
        self.recursion_limit = graph.recursion_limit
        self.failure: tuple[Exception, str] | None = None
        self._entries: Counter[str] = Counter()
        self._began = self.now
        self._instant = Instant(simulation, graph)
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
        """Raise a warning: it stands in the trace, and with the place of the node, if there is one, in `warnings`."""
        self.simulation.warn(text, next((each.span for each in self.graph.nodes if each.name == node), None))

    def new_id(self, prefix: str) -> str:
        """An id that comes from the seed."""
        return self.simulation.new_id(prefix)

    def begin(self) -> None:
        """Note that there is a new input: entries, time and rounds count from here."""
        self._entries.clear()
        self._began = self.now
        self._instant.begin()

    def enter(self, node: str, step: tuple[int, int]) -> None:
        """Count a visit that is about to start. Nodes with the same `step` run side by side.

        Raises:
            EndlessLoop: the graph goes round while the clock stands still. The run ends, whatever catches this.
        """
        error = self._instant.enter(node, step)
        if error is not None:
            self.simulation.abort(error, self.caller.top if self.caller else "")
            raise error

    def refusal(self, node: str) -> Exception | None:
        """Count a visit that is about to start; the error with which the graph's guard refuses it, if it does."""
        guard = self.graph.lifecycle.guard
        if guard is None:
            return None
        self._entries[node] += 1
        return guard(NodeEntry(node, self._entries[node], round(self.now - self._began, PRECISION)))

    def fail(self, error: Exception, node: str) -> None:
        """Note that a node failed. Of nodes that fail side by side, the first counts."""
        self.failure = self.failure or (error, node)

    def record(self, event: str, **data: Any) -> None:
        """Add an event of this graph to the trace."""
        self.simulation.trace.record(event, self.now, graph=self.prefix, **data)

    def record_routes(self, edges: Sequence[Edge]) -> None:
        """Put the transitions that are taken into the trace."""
        for edge in edges:
            self.record("route", source=edge.source, target=edge.target, condition=edge.label)

    def effect_node(self, node: str) -> str:
        """The node of effects that a node of this graph performs: `outer/inner` in a nested graph."""
        caller = self.caller
        if caller is None:
            return node
        return caller.node if caller.attribute_to_caller else f"{caller.node}/{node}"

    def own(self, effect: EffectType, node: str) -> EffectType:
        """The effect as a node makes it: with the name of the node, and with what the variant changes."""
        return self.simulation.varied(dataclasses.replace(effect, node=self.effect_node(node)))

    async def perform(self, effect: Effect, state: State, node: str, replay: Replay | None = None) -> Any:
        """Have the world answer an effect, and record both.

        Returns the answer's value. An effect that runs a graph inside the visit may pause with it: the re-run, which
        passes its `replay`, performs it again as the same call.

        Raises:
            WorldError: nothing answers. The run ends, whatever catches this.
            Exception: the answer is an error.
        """
        simulation = self.simulation
        simulation.raise_if_aborted()
        effect = self.own(effect, node)
        key = (effect.kind, effect.name)
        call, started = replay.open_calls.pop(key, (0, 0.0)) if replay else (0, 0.0)
        if not call:
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
        except Paused as paused:
            paused.replay.open_calls[key] = call, started
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
                simulation.trace.answered(call, now, round(now - started, PRECISION), value, error)
        return value

    def refuse(self, effect: Effect, why: Exception, node: str) -> None:
        """Record an effect that a model asked for and that cannot be made."""
        simulation = self.simulation
        effect = self.own(effect, node)
        simulation.trace.refused(effect, simulation.now, why)


def _ignore(_answered: int) -> None:
    pass


class NodeContext:
    """One visit of a node. `name` is its name in its own graph; `state` what it was given.

    `replay` is what the visit kept when it paused; see `Pauses` for `on_replay`.
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
        """How many attempts of this visit failed, before it paused as well."""
        return self.pauses.replay.failed_attempts

    def attempt_failed(self) -> None:
        """Note that what this visit did so far failed, and that it may be done again from its start.

        A node that is resumed must begin with the attempt that paused: `failed_attempts` says which it is.
        """
        self.pauses.attempt_failed()

    async def perform(self, effect: Effect) -> Any:
        """Have the world answer an effect; see `RunContext.perform`."""
        return await self.run.perform(effect, self.state, self.name, self._replay)

    def refuse(self, effect: Effect, why: Exception) -> None:
        """Record an effect that a model asked for and that cannot be made."""
        self.run.refuse(effect, why, self.name)

    def uses_backend(self, effect: Effect) -> bool:
        """True if the real thing, or its recording, would answer an effect, and no stub."""
        effect = self.run.own(effect, self.name)
        return self.run.world.uses_backend(effect, self.state)

    def has_answer(self, effect: Effect) -> bool:
        """True if the world would answer an effect; uses nothing up."""
        effect = self.run.own(effect, self.name)
        return self.run.world.has_answers([effect], self.state)

    def asks_live(self, effect: Effect) -> bool:
        """True if the real thing would answer an effect, and nothing of it is recorded."""
        effect = self.run.own(effect, self.name)
        return self.run.world.asks_live(effect, self.state)

    async def sleep(self, seconds: float) -> None:
        """Wait, in virtual seconds."""
        await asyncio.sleep(seconds)

    async def pause(self, value: Any, *, partial_update: Mapping[str, Any] | None = None) -> Any:
        """Interrupt the run with a value and return the answer it is resumed with.

        A resumed node runs again from its start, and this call then returns. `partial_update` is what the node has
        written so far: the state shows it while the run is paused, but only what the node returns is kept.
        """
        return await self.pauses.answer(self.pauses.reach("pause"), value, partial_update)

    async def once(self, key: str, make: Callable[[], Awaitable[T]]) -> T:
        """The result of `make`, called only once in this visit, however often the node is re-run after pauses.

        Keys belong to the visit. The result of a call that fails, or has not returned when the visit pauses, is not
        kept; `make` itself cannot pause, nor run graphs inside the visit.
        """
        return await self.pauses.once(key, make)

    def warn(self, text: str) -> None:
        """Raise a warning: it stands in the trace, and with the place of the node in `warnings`."""
        self.run.warn(text, self.name)

    def new_id(self, prefix: str) -> str:
        """An id that comes from the seed."""
        return self.run.new_id(prefix)

    def is_fatal(self, error: Exception) -> bool:
        """True for a pause, or an error that must end the run: retries and fallbacks let it pass."""
        return isinstance(error, (*self.run.stops, WorldError)) or self.run.simulation.fatal is not None
