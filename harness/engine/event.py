"""The event scheduler: a node starts when what it waits for has settled, while others still run.

Theory of operation
-------------------
A *call* asks a node to run, on behalf of a caller. It waits in the queue, *starts*, does its *own work* (one visit of
the node), and *settles*: its update is merged into the run's state and its routers choose whom it calls. A run is a
discrete-event simulation in virtual time, in waves:

1. Start the queued calls, in queue order. A call over a limit (`EventGraph.limits`) stays in its place, and those
   behind it that can start do. Each sets out when the one before has ended or waits for the clock, so calls that take
   no time act one after the other.
2. Settle the calls whose work ends at this instant, in the order of their starts. That queues others.
3. If no work ends at this instant: the joins whose time is up fail, in the order of their first arrivals.
4. If there are none: move the clock to the next end of work or timer.

*Joins.* A call from a member of a node's join is an arrival; the node is queued once, when the requirement holds, and
gets all that has arrived until it starts. `harness.engine.joins` says which arrivals are late.

*Input.* `EventGraph.input_of` makes it from the arrivals and from the state of the run as they are at the start.

*Routes.* Routers are asked when a call settles, with its update in the state. A router that takes its time, as those
of `EventGraph.late_routers` may, delays only the calls that it chooses itself.

*Failures.* `EventGraph.on_failure` restarts the call (as the last of the queue), goes on elsewhere, or ends the
branch; the others go on. When nothing is left to do, `EventGraph.verdict` chooses the failure that is the run's.
These end the run at once: an effect that the world cannot answer, the failure of a router or a handler, too many
starts.

*People.* When a visit pauses and somebody has the answer, they are asked at once and the other calls go on meanwhile;
with the answer, the node is re-run. A pause that nobody answers interrupts the run when everything else is worked
off, except the timers of joins: while a run waits for somebody outside, its clock stands still. A paused visit keeps
its place under the limits and in the order of starts.

*Order.* Nothing depends on which of two tasks the event loop happens to run first: what ends at an instant is
collected until nothing is ready any more (`harness.time.clock.end_of_instant`), and then taken in order of starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from harness.engine.calls import Call, Limits, TooManyStarts
from harness.engine.context import NodeContext, RunContext
from harness.engine.joins import Joins, OpenJoin
from harness.engine.pauses import Paused, Question
from harness.engine.people import People
from harness.engine.state import initial_state, merged, with_partial_updates
from harness.engine.visit import next_edges, visit
from harness.graph.events import Arrival, EventGraph, Failure, Restart
from harness.graph.model import END, START, Dispatch, Edge, State, Update
from harness.graph.to_json import error_text
from harness.time.clock import end_of_instant
from harness.time.idle import inside

T = TypeVar("T")
Choice = Sequence[Edge | Dispatch]


class _Work(NamedTuple):
    """A task of a call: its visit, its question to a person, or a router; and what settles it."""

    call: Call
    settle: Callable[[Call, asyncio.Task[Any]], Awaitable[None]]


class _Pause(NamedTuple):
    """A call whose visit has paused. `is_asked`: a person is about to answer."""

    call: Call
    question: Question
    is_asked: bool


class EventScheduler:
    """Runs one thread of an `EventGraph`; see the module, and `harness.engine.scheduler` for its interface."""

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
        """Nothing is queued, running, paused or waited for."""
        self._starts = 0
        self._limits = Limits(self._graph.limits, self._nodes)
        self._queue: list[Call] = []
        self._resumed: list[Call] = []
        self._work: dict[asyncio.Task[Any], _Work] = {}
        self._ended: list[asyncio.Task[Any]] = []
        self._paused: dict[str, _Pause] = {}
        self._failures: list[Failure] = []
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
        """See `harness.engine.scheduler`. Calls, joins and failures of an earlier input are forgotten."""
        self._joins.discard()
        self._reset()
        self._invocation += 1
        if self._state is None:
            self._state = initial_state(self._graph, update)
        else:
            self._state = merged(self._graph, self._state, update)
        self._follow(await next_edges(self._run, START, self._state), None)
        await self._work_off(people)

    async def resume(self, answers: Mapping[str, Any], people: People | None) -> None:
        """See `harness.engine.scheduler`."""
        for id_, answer in answers.items():
            call, question, _ = self._paused.pop(id_)
            question.answer(answer)
            self._resumed.append(call)
        await self._work_off(people)

    async def update_state(self, update: Mapping[str, Any], people: People | None) -> None:
        """See `harness.engine.scheduler`: the paused nodes start anew, on the new state."""
        self._state = merged(self._graph, self._state or {}, update)
        for id_ in self.pending:
            call = self._paused.pop(id_).call
            self._limits.release(call.node.name)
            self._queue.append(replace(call, replay=None))
        await self._work_off(people)

    async def _work_off(self, people: People | None) -> None:
        """Wave by wave, until nothing can go on.

        Raises:
            Exception: the run has failed.
        """
        self._people = people
        try:
            with inside():
                while await self._wave():
                    pass
        except BaseException:
            await self._stop()
            raise
        if not self.pending:
            await self._judge()

    async def _wave(self) -> bool:
        """Start what can start; then the first of these that there is: ends, time-outs, a later instant."""
        await self._start_calls()
        await end_of_instant()
        ended, self._ended = [task for task in self._ended if task in self._work], []
        if ended:
            for task in sorted(ended, key=lambda task: self._work[task].call.start):
                await self._settle(task)
        elif timed_out := self._joins.timed_out():
            for opened in timed_out:
                await self._fail_join(opened)
        elif self._work or (self._joins.are_timed and not self._paused):
            await self._wake.wait()
            self._wake.clear()
        else:
            return False
        return True

    async def _stop(self) -> None:
        """Cancel all work: the run has failed, or its time has run out."""
        self._joins.discard()
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        self._work.clear()

    async def _judge(self) -> None:
        """Raise what the run fails with, if it does."""
        self._run.failure = None  # those of branches are not the run's
        failure = await self._graph.verdict(self._failures, self._run)
        if failure is not None:
            self._run.fail(failure.error, failure.node)
            raise failure.error

    # Calls

    def _follow(self, choice: Choice, caller: Call | None) -> None:
        """Take the routes that were chosen. The input, too, is a caller, and no member of any join."""
        self._run.record_routes([item.edge if isinstance(item, Dispatch) else item for item in choice])
        for item in choice:
            edge, state = (item.edge, item.state) if isinstance(item, Dispatch) else (item, None)
            if edge.target != END:
                self._call(edge.target, Arrival(edge.source, state), caller)

    def _call(self, target: str, arrival: Arrival, caller: Call | None) -> None:
        node = self._nodes[target]
        if caller is None or not self._joins.waits_for(target, arrival.source):
            self._queue.append(Call(node, [arrival], caller))
        elif (join := self._joins.arrive(target, arrival, caller.began)) is not None:
            self._queue.append(Call(node, join.arrivals, caller, join))

    async def _start_calls(self) -> None:
        resumed, self._resumed = self._resumed, []
        for call in resumed:
            await self._spawn(call, self._visit(call), self._settle_visit)
        queue, self._queue = self._queue, []
        for call in queue:
            if self._limits.acquire(call.node.name):
                self._start(call)
                await self._spawn(call, self._visit(call), self._settle_visit)
            else:
                self._queue.append(call)

    def _start(self, call: Call) -> None:
        """Give the call its number and its input. Its join takes no more arrivals of calls that began before."""
        self._run.simulation.raise_if_aborted()
        self._starts += 1
        call.count_start(self._starts)
        if self._starts > self._run.recursion_limit:
            error = TooManyStarts(self._graph.name, self._run.recursion_limit, call)
            self._run.failure = (error, call.node.name)
            raise error
        if call.join is not None:
            self._joins.close(call.join, self._starts - 1)
            call.join = None
        state = self._graph.input_of(call.arrivals, self._state or {})
        call.state = {**state, **call.context} if call.context else state

    async def _visit(self, call: Call) -> Update:
        replay, step = call.replay, call.start
        is_listed_again = replay is not None and replay.continues_after_breakpoint
        if is_listed_again:
            self._starts += 1
            step = self._starts
        resumed = replay is not None and not is_listed_again
        ctx = NodeContext(self._run, call.node.name, call.state, replay)
        return await visit(ctx, call.node.run, step=step, invocation=self._invocation, resumed=resumed)

    # Work, and how it is settled

    async def _spawn(
        self,
        call: Call,
        work: Awaitable[T],
        settle: Callable[[Call, asyncio.Task[T]], Awaitable[None]],
    ) -> asyncio.Task[T]:
        """Begin work for a call, and wait until it has ended or waits for the clock."""
        with inside():
            task = asyncio.ensure_future(work)
        self._work[task] = _Work(call, settle)
        task.add_done_callback(self._on_end)
        await end_of_instant()
        return task

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            task.exception()  # a run that ends at once does not look at all of them, and asyncio would complain
        self._ended.append(task)
        self._wake.set()

    async def _settle(self, task: asyncio.Task[Any]) -> None:
        call, settle = self._work.pop(task)
        self._run.simulation.raise_if_aborted()  # the node may have caught it
        try:
            await settle(call, task)
        except Exception as error:  # of a router or a handler
            self._run.failure = (error, call.node.name)
            raise

    async def _spawn_and_settle(
        self,
        call: Call,
        work: Awaitable[T],
        settle: Callable[[Call, asyncio.Task[T]], Awaitable[None]],
    ) -> None:
        """Do work that belongs to settling: its result counts at once, unless it takes its time."""
        task = await self._spawn(call, work, settle)
        if task.done():
            await self._settle(task)

    async def _settle_visit(self, call: Call, task: asyncio.Task[Update]) -> None:
        try:
            update = task.result()
        except Paused as paused:
            await self._pause(call, paused)
            return
        except Exception as error:
            self._limits.release(call.node.name)
            await self._fail(call, error)
            return
        self._limits.release(call.node.name)
        self._state = merged(self._graph, self._state or {}, update.values)
        chosen = next_edges(self._run, call.node.name, self._state, update)
        await self._spawn_and_settle(call, chosen, self._settle_routes)
        if late := self._graph.late_routers.get(call.node.name):
            seen = {**self._state, **update.routing_values}
            await self._spawn_and_settle(call, late(seen, self._run), self._settle_routes)

    async def _settle_routes(self, call: Call, task: asyncio.Task[Choice]) -> None:
        self._follow(task.result(), call)

    # Failures

    async def _fail_join(self, opened: OpenJoin) -> None:
        """A join's time is up."""
        self._joins.close(opened, self._starts)
        error = opened.error()
        self._run.record(
            "join_timeout", node=opened.node, type=type(error).__name__, message=error_text(error)
        )
        call = Call(self._nodes[opened.node], opened.arrivals, None, began=self._starts + 1)
        call.state = self._graph.input_of(call.arrivals, self._state or {})
        await self._fail(call, error)

    async def _fail(self, call: Call, error: Exception) -> None:
        failure = Failure(call.node.name, error, call.state, call.attempt)

        async def settle(call: Call, task: asyncio.Task[Choice | Restart]) -> None:
            outcome = task.result()
            if isinstance(outcome, Restart):
                self._queue.append(replace(call, context=outcome.context, replay=None))
            else:
                self._failures.append(replace(failure, handled=bool(outcome)))
                self._follow(outcome, call)

        await self._spawn_and_settle(call, self._graph.on_failure(failure, self._run), settle)

    # People

    async def _pause(self, call: Call, paused: Paused) -> None:
        call.replay = paused.replay
        (question,) = paused.questions
        people = self._people
        is_asked = (
            not question.breakpoint and people is not None and people.can_answer([question], self.state)
        )
        self._paused[str(call.start)] = _Pause(call, question, is_asked)
        if people is not None and is_asked:
            await self._spawn(call, self._ask(call, question, people), self._settle_visit)

    async def _ask(self, call: Call, question: Question, people: People) -> Update:
        """The rest of the visit after a person's answer. An answer that is an error fails the node."""
        try:
            question.answer(await people.answer(question, self.state))
        finally:
            del self._paused[str(call.start)]
        return await self._visit(call)
