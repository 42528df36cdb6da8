"""The event scheduler: a node starts as soon as its predecessors have settled, while other nodes still run.

Theory of operation
-------------------
An *activation* is a request to run a node. It waits in the queue, *starts*, does its *work* (one visit of the node),
and *settles*: its update is merged into the state of the run, and its routers choose the nodes that it activates.
A run is a discrete-event simulation in virtual time, in waves:

1. Start the queued activations, in queue order. An activation over a limit (`EventGraph.limits`) keeps its place in
   the queue, and later ones that can start do. Each starts after the one before has ended or waits for the clock, so
   visits that take no time run one after the other.
2. Settle the activations whose work ends at this instant, in the order of their starts. That queues others.
3. If no work ends at this instant, fail the joins that time out now, in the order of their first arrivals.
4. If there are none, move the clock to the next end of work or timer.

*Joins.* If a node has a join, an edge from one of the join's members is an arrival. The node is queued once, when the
requirement holds, and receives everything that arrives until it starts. `harness.engine.joins` defines which arrivals
are late.

*Input.* `EventGraph.input_of` makes a node's input from the arrivals and the state of the run at the start.

*Routes.* Routers are asked when an activation settles, with its update in the state. A router that takes time, as
those of `EventGraph.late_routers` may, delays only the nodes that it chooses.

*Failures.* `EventGraph.on_failure` restarts the activation (at the end of the queue), follows other edges (and may do
more work concurrently), or ends the branch; other branches continue. When nothing is left to do,
`EventGraph.run_failure` chooses the failure of the run. These end the run at once: an effect that the world cannot
answer, an error of a router, a handler or `input_of`, too many starts.

*People.* If a visit pauses and somebody has the answer, they are asked at once, while other nodes run; with the
answer, the node is re-run. A pause without an answer interrupts the run when nothing else is left to do, timers of
joins excepted: while a run waits for an answer from outside, its clock stands still, even if it runs inside a run
that continues. A paused visit still counts against the limits, and keeps its place in the order of starts.

*Order.* The order in which the event loop runs two ready tasks has no effect: the ends of an instant are collected
until nothing is ready any more (`harness.time.clock.end_of_instant`), and then processed in the order of starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from harness.engine.context import NodeContext, RunContext
from harness.engine.joins import Activation, Joins, Limits, OpenJoin, TooManyStarts
from harness.engine.pauses import Paused, Question
from harness.engine.scheduler import People, initial_state, merged, with_partial_updates
from harness.engine.visit import next_edges, visit
from harness.graph.events import Arrival, Detour, EventGraph, NodeFailure, Restart
from harness.graph.model import END, START, Dispatch, Edge, Routes, State, Update
from harness.graph.to_json import error_text
from harness.time.clock import end_of_instant
from harness.time.selector import nested_level

T = TypeVar("T")


class _Work(NamedTuple):
    """The activation that a task works for, and the method that processes the task's result.

    The task is a visit, a question to a person, a router, or the handling of a failure.
    """

    activation: Activation
    settle: Callable[[Activation, asyncio.Task[Any]], Awaitable[None]]


class _Pause(NamedTuple):
    """An activation whose visit has paused. With `is_asked`, a person is being asked for the answer."""

    activation: Activation
    question: Question
    is_asked: bool


class EventScheduler:
    """Runs one thread of an `EventGraph`: see the module; `harness.engine.scheduler` describes the interface."""

    def __init__(self, run: RunContext, graph: EventGraph) -> None:
        if graph.has_breakpoints:
            raise ValueError("the event scheduler has no breakpoints")
        self._run = run
        self._graph = graph
        self._nodes = {node.name: node for node in graph.nodes}
        self._people: People | None = None
        self._state: State | None = None
        self._wake = asyncio.Event()
        self._invocation = 0
        self._reset()

    def _reset(self) -> None:
        """Forget everything that is queued, running, paused or waited for."""
        self._starts = 0
        self._limits = Limits(self._graph.limits, self._nodes)
        self._queue: list[Activation] = []
        self._resumed: list[Activation] = []
        self._work: dict[asyncio.Task[Any], _Work] = {}
        self._ended: list[asyncio.Task[Any]] = []
        self._paused: dict[str, _Pause] = {}
        self._failures: list[NodeFailure] = []
        self._joins = Joins(self._graph.joins, self._wake.set)

    @property
    def state(self) -> State:
        """See `harness.engine.scheduler`."""
        questions = [pause.question for pause in self._paused.values()]
        return with_partial_updates(self._graph, self._state or {}, questions)

    @property
    def pending(self) -> Mapping[str, Question]:
        """See `harness.engine.scheduler`."""
        return {id_: pause.question for id_, pause in self._paused.items() if not pause.is_asked}

    async def start(self, update: Mapping[str, Any], people: People | None) -> None:
        """See `harness.engine.scheduler`. Discards the activations, joins and failures of an earlier input."""
        self._joins.stop_timers()
        self._reset()
        self._invocation += 1
        if self._state is None:
            self._state = initial_state(self._graph, update)
        else:
            self._state = merged(self._graph, self._state, update)
        self._follow(await next_edges(self._run, START, self._state), None)
        await self._run_until_idle(people)

    async def resume(self, answers: Mapping[str, Any], people: People | None) -> None:
        """See `harness.engine.scheduler`."""
        for id_, answer in answers.items():
            activation, question, _ = self._paused.pop(id_)
            question.answer(answer)
            self._resumed.append(activation)
        await self._run_until_idle(people)

    async def update_state(self, update: Mapping[str, Any], people: People | None) -> None:
        """See `harness.engine.scheduler`. The paused nodes start over, with the new state."""
        self._state = merged(self._graph, self._state or {}, update)
        for id_ in self.pending:
            activation = self._paused.pop(id_).activation
            self._limits.release(activation.node.name)
            self._queue.append(replace(activation, replay=None))
        await self._run_until_idle(people)

    async def _run_until_idle(self, people: People | None) -> None:
        """Run waves until nothing can continue.

        Raises:
            Exception: the failure of the run.
        """
        self._people = people
        self._joins.start_clock()
        try:
            with nested_level():
                while await self._run_wave():
                    pass
        except BaseException:
            await self._stop()
            raise
        if self.pending:
            self._joins.stop_clock()
        else:
            await self._conclude()

    async def _run_wave(self) -> bool:
        """Run one wave (see the module). False if nothing was left to do."""
        await self._start_queued()
        await end_of_instant()
        ended, self._ended = [task for task in self._ended if task in self._work], []
        if ended:
            for task in sorted(ended, key=lambda task: self._work[task].activation.start):
                await self._settle(task)
        elif timed_out := self._joins.timed_out():
            for opened in timed_out:
                with self._failing_the_run(opened.node):
                    await self._fail_join(opened)
        elif self._work or (self._joins.are_timed and not self._paused):
            await self._wake.wait()
            self._wake.clear()
        else:
            return False
        return True

    async def _stop(self) -> None:
        """Cancel all work and drop all pauses: the run has failed, or was cut off."""
        self._joins.stop_timers()
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        self._work.clear()
        self._paused.clear()

    @contextmanager
    def _failing_the_run(self, node: str) -> Iterator[None]:
        """Make an exception that is raised inside the failure of the run, at this node, in place of earlier ones."""
        try:
            yield
        except Exception as error:
            self._run.failure = (error, node)
            raise

    async def _conclude(self) -> None:
        """Raise the failure of the run, if `EventGraph.run_failure` returns one."""
        self._run.failure = None  # the failure of a branch is not that of the run
        failure = await self._graph.run_failure(self._failures, self._run)
        if failure is not None:
            self._run.fail(failure.error, failure.node)
            raise failure.error

    # Activations

    def _follow(self, routes: Routes, source: Activation | None) -> None:
        """Activate the targets of the chosen edges. `source` is None for the input, which no join waits for."""
        self._run.record_routes([item.edge if isinstance(item, Dispatch) else item for item in routes])
        for item in routes:
            edge, state = (item.edge, item.state) if isinstance(item, Dispatch) else (item, None)
            if edge.target != END:
                self._activate(edge, Arrival(edge.source, state), source)

    def _activate(self, edge: Edge, arrival: Arrival, source: Activation | None) -> None:
        node = self._nodes[edge.target]
        if source is None or edge.on_error or not self._joins.waits_for(edge.target, edge.source):
            self._queue.append(Activation(node, [arrival], source))
        elif (join := self._joins.arrive(edge.target, arrival, source.began)) is not None:
            self._queue.append(Activation(node, join.arrivals, source, join))

    async def _start_queued(self) -> None:
        resumed, self._resumed = self._resumed, []
        for activation in resumed:
            await self._spawn(activation, self._visit(activation), self._settle_visit)
        queue, self._queue = self._queue, []
        for activation in queue:
            if self._limits.acquire(activation.node.name):
                with self._failing_the_run(activation.node.name):
                    self._start(activation)
                await self._spawn(activation, self._visit(activation), self._settle_visit)
            else:
                self._queue.append(activation)

    def _start(self, activation: Activation) -> None:
        """Number an activation, close its join to arrivals that began earlier, and make its input."""
        self._run.simulation.raise_if_aborted()
        self._starts += 1
        activation.count_start(self._starts)
        if self._starts > self._run.recursion_limit:
            raise TooManyStarts(self._graph, self._run.recursion_limit, activation)
        if activation.join is not None:
            self._joins.close(activation.join, self._starts - 1)
            activation.join = None
        state = self._graph.input_of(activation.arrivals, self._state or {})
        activation.state = {**state, **activation.context} if activation.context else state

    async def _visit(self, activation: Activation) -> Update:
        replay, step = activation.replay, activation.start
        is_new_start = replay is not None and replay.continues_after_breakpoint
        if is_new_start:
            self._starts += 1
            step = self._starts
        resumed = replay is not None and not is_new_start
        ctx = NodeContext(self._run, activation.node.name, activation.state, replay)
        return await visit(ctx, activation.node.run, step=step, invocation=self._invocation, resumed=resumed)

    # Work and its results

    async def _spawn(
        self,
        activation: Activation,
        work: Awaitable[T],
        settle: Callable[[Activation, asyncio.Task[T]], Awaitable[None]],
    ) -> asyncio.Task[T]:
        """Start a task for an activation, and wait until it has ended or waits for the clock."""
        with nested_level():
            task = asyncio.ensure_future(work)
        self._work[task] = _Work(activation, settle)
        task.add_done_callback(self._on_end)
        await end_of_instant()
        return task

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            task.exception()  # a run that ends early never reads it, and asyncio would log an error
        self._ended.append(task)
        self._wake.set()

    async def _settle(self, task: asyncio.Task[Any]) -> None:
        activation, settle = self._work.pop(task)
        self._run.simulation.raise_if_aborted()  # the node may have caught it
        with self._failing_the_run(activation.node.name):
            await settle(activation, task)

    async def _spawn_and_settle(
        self,
        activation: Activation,
        work: Awaitable[T],
        settle: Callable[[Activation, asyncio.Task[T]], Awaitable[None]],
    ) -> None:
        """Do work that is part of settling. Its result is processed at once, unless it takes virtual time."""
        task = await self._spawn(activation, work, settle)
        if task.done():
            await self._settle(task)

    async def _settle_visit(self, activation: Activation, task: asyncio.Task[Update]) -> None:
        try:
            update = task.result()
        except Paused as paused:
            await self._pause(activation, paused)
            return
        except Exception as error:
            self._limits.release(activation.node.name)
            await self._fail(activation, error)
            return
        self._limits.release(activation.node.name)
        self._state = merged(self._graph, self._state or {}, update.values)
        chosen = next_edges(self._run, activation.node.name, self._state, update)
        await self._spawn_and_settle(activation, chosen, self._settle_routes)
        if late := self._graph.late_routers.get(activation.node.name):
            seen = {**self._state, **update.routing_values}
            await self._spawn_and_settle(activation, late(seen, self._run), self._settle_routes)

    async def _settle_routes(self, activation: Activation, task: asyncio.Task[Routes]) -> None:
        self._follow(task.result(), activation)

    # Failures

    async def _fail_join(self, opened: OpenJoin) -> None:
        """Fail a node whose join has timed out."""
        self._joins.close(opened, self._starts)
        error = opened.error()
        self._run.record(
            "join_timeout", node=opened.node, type=type(error).__name__, message=error_text(error)
        )
        activation = Activation(self._nodes[opened.node], opened.arrivals, None, began=self._starts + 1)
        activation.state = self._graph.input_of(activation.arrivals, self._state or {})
        await self._fail(activation, error)

    async def _fail(self, activation: Activation, error: Exception) -> None:
        failure = NodeFailure(activation.node.name, error, activation.state, activation.attempt)

        async def settle(activation: Activation, task: asyncio.Task[Routes | Restart | Detour]) -> None:
            outcome = task.result()
            if isinstance(outcome, Restart):
                self._run.because(activation.node.name, error, "retry")
                self._queue.append(replace(activation, context=outcome.context, replay=None))
                return
            routes = outcome.routes if isinstance(outcome, Detour) else outcome
            self._failures.append(replace(failure, handled=bool(routes)))
            self._follow(routes, activation)
            if isinstance(outcome, Detour):
                await self._spawn_and_settle(activation, outcome.beside(), self._settle_beside)

        await self._spawn_and_settle(activation, self._graph.on_failure(failure, self._run), settle)

    async def _settle_beside(self, _activation: Activation, task: asyncio.Task[None]) -> None:
        task.result()

    # People

    async def _pause(self, activation: Activation, paused: Paused) -> None:
        activation.replay = paused.replay
        (question,) = paused.questions
        people = self._people
        is_asked = (
            not question.breakpoint and people is not None and people.can_answer([question], self.state)
        )
        self._paused[str(activation.start)] = _Pause(activation, question, is_asked)
        if people is not None and is_asked:
            await self._spawn(activation, self._ask(activation, question, people), self._settle_visit)

    async def _ask(self, activation: Activation, question: Question, people: People) -> Update:
        """Ask a person, then re-run the visit with the answer. An answer that is an error fails the node."""
        try:
            question.answer(await people.answer(question, self.state))
        finally:
            del self._paused[str(activation.start)]
        return await self._visit(activation)
