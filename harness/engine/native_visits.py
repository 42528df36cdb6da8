"""Observes the tasks of LangGraph while an app's own graph runs: visits, their updates, routes, pauses and failures.

LangGraph executes every task of every graph - nodes, nodes of graphs inside nodes, graphs that a node or a tool
invokes, `@task`s - through `arun_with_retry`, or `run_with_retry` inside a blocking `invoke`. Both are wrapped once
in a process; outside of runs they do what they did. The wrapper makes the visit the effect that owns the requests of
its code. Callbacks and the streams of LangGraph show starts and ends, but cannot own requests.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, Final, Self

from langgraph.errors import GraphBubbleUp, GraphInterrupt, ParentCommand
from langgraph.types import Command, Send

from harness.engine.callables import exits_as_failures
from harness.engine.context import RunContext
from harness.engine.native_functions import StepsOfCalls, wrap_calls
from harness.engine.native_levels import current_level, current_task, wrap_streams
from harness.engine.pauses import Replay
from harness.engine.versions import interrupt_id, runner
from harness.errors import WorldError
from harness.graph.effects import Effect
from harness.graph.model import END, START
from harness.graph.native import COMMAND, NativeGraph, route_label
from harness.graph.to_json import error_text, to_json
from harness.interception.real_effects import RealEffect, current_effect, within_effect
from harness.time.blocking import without_waiting
from harness.time.rebinding import current_visit
from harness.units import PRECISION

_HIDDEN: Final = ("__", "branch:", "join:")
_PUSH: Final = "__pregel_push"
_HIDDEN_TAG: Final = "langsmith:hidden"


class Visits:
    """The visits of one running thread.

    Attributes:
        asking: the innermost node of each interrupt, by its id.
        paused: ids of tasks that paused.
        stopped: ids of tasks inside of which a graph is at a breakpoint. They start again, and go on inside.
        replays: what goes on when a task is re-run after a pause, by the id of the task.
        calls: the steps of `@task`s.
    """

    def __init__(self, run: RunContext, graph: NativeGraph) -> None:
        self.run = run
        self._loop: Any = asyncio.get_running_loop()
        self.order = {node.name: rank for rank, node in enumerate(graph.nodes)}
        self.asking: dict[str, str] = {}
        self.paused: set[str] = set()
        self.stopped: set[str] = set()
        self.replays: dict[str, Replay] = {}
        self.invocation = 0
        self._steps: dict[Any, list[str]] = {}
        self.calls = StepsOfCalls()
        self._failed_attempts: Counter[str] = Counter()

    def sleep(self, seconds: float) -> None:
        """Sleep in virtual time, in any thread."""
        self._loop.sleep(seconds)

    def threads_in_turn(self) -> AbstractContextManager[None]:
        """Let the threads of the app run one at a time, in a defined order."""
        turns: AbstractContextManager[None] = self._loop.threads_in_turn()
        return turns

    async def perform(self, effect: Effect) -> Any:
        """Perform an effect of the app's code, which carries its node."""
        return await self.run.perform(effect, _state(), effect.node, self._replay())

    def perform_blocking(self, effect: Effect) -> Any:
        """Do the same in a thread, or in code that blocks the loop."""
        return without_waiting(self.perform(effect), self.sleep)

    def _replay(self) -> Replay | None:
        return self.replays.setdefault(task.id, Replay("")) if (task := current_task.get()) else None

    def begin_invocation(self) -> None:
        """Note that LangGraph is invoked once more."""
        self.invocation += 1
        self._steps.clear()

    def supersteps(self) -> list[list[str]]:
        """Return the nodes of each superstep of this invocation, in order."""
        return list(self._steps.values())

    def last_of(self, nodes: frozenset[str]) -> list[str]:
        """Return those of the nodes that ran in the last superstep."""
        return sorted(nodes.intersection(next(reversed(self._steps.values()), ())))

    def enter(self, node: str, step: Any) -> None:
        """Count a visit of the outermost graph that is about to start."""
        self._steps.setdefault(step, []).append(node)
        self.run.enter(node, (self.invocation, step))

    def begin_attempts(self, task: Any) -> None:
        """Note the first attempt of a task."""
        self._failed_attempts.pop(task.id, None)

    def end_attempt(self, task: Any, error: Exception, most: int) -> None:
        """Record why a task runs again, after a failure that its policy of at most `most` attempts retries."""
        self._failed_attempts[task.id] += 1
        if self._failed_attempts[task.id] < most:
            self.run.because(f"{current_level().prefix}{task.name}", error, "retry")


_active: Visits | None = None


def active_visits() -> Visits | None:
    """Return the visits of the run in progress, if an app runs in it."""
    return _active


def _state() -> Mapping[str, Any]:
    owner = current_effect()
    return owner.state if owner is not None else {}


def current_node() -> str:
    """Return the path of the innermost node whose code runs."""
    owner = current_effect()
    return owner.effect.node if owner is not None and owner.effect is not None else ""


@contextmanager
def observed(visits: Visits) -> Iterator[None]:
    """Record what LangGraph does inside, if `can_observe`."""
    global _active
    if can_observe():
        _wrap()
    before, _active = _active, visits
    try:
        with visits.threads_in_turn():
            yield
    finally:
        _active = before


@cache
def can_observe() -> bool:
    """True if this version of LangGraph runs tasks in a way that is known."""
    return runner() is not None


@cache
def _wrap() -> None:
    """Wrap the functions through which LangGraph runs tasks, once in a process."""
    wrap_streams()
    of_langgraph = runner()
    really, really_blocking = of_langgraph.arun_with_retry, of_langgraph.run_with_retry

    async def arun_with_retry(task: Any, *args: Any, **options: Any) -> Any:
        visits = _active
        if visits is None:
            return await really(task, *args, **options)
        if _is_hidden(task):
            result = await really(task, *args, **options)
            _Visit(visits, task).record_routes()
            return result
        with _Visit(visits, task) as visit:

            async def execute() -> Any:
                with exits_as_failures():
                    return await really(task, *args, **options)

            return await within_effect(execute, visit.effect, visit.state, sleep=visits.sleep)

    def run_with_retry(task: Any, *args: Any, **options: Any) -> Any:
        visits = _active
        if visits is None:
            return really_blocking(task, *args, **options)
        if _is_hidden(task):
            result = really_blocking(task, *args, **options)
            _Visit(visits, task).record_routes()
            return result
        with _Visit(visits, task) as visit, visit.owning(), exits_as_failures():
            return really_blocking(task, *args, **options)

    of_langgraph.arun_with_retry, of_langgraph.run_with_retry = arun_with_retry, run_with_retry
    _wrap_policies(really.__globals__)
    wrap_calls(of_langgraph, lambda: _active is not None)


def _wrap_policies(of_langgraph: dict[str, Any]) -> None:
    """Wrap the function that decides which failures are retried, if this version has it."""
    really = of_langgraph.get("_should_retry_on")
    if really is None:
        return

    def should_retry_on(policy: Any, error: Exception) -> bool:
        is_retried = bool(really(policy, error))
        task = current_task.get()
        if is_retried and _active is not None and task is not None:
            _active.end_attempt(task, error, policy.max_attempts)
        return is_retried

    of_langgraph["_should_retry_on"] = should_retry_on


def _is_hidden(task: Any) -> bool:
    return task.name == START or _HIDDEN_TAG in (task.config.get("tags") or ())


class _Visit:
    """One execution of a task, from its start to its end, its pause or its failure, which is recorded."""

    def __init__(self, visits: Visits, task: Any) -> None:
        self._visits, self._run, self._task = visits, visits.run, task
        self._is_call = task.path[:1] == (_PUSH,) and task.path[-1] is True  # a `Send` ends with False
        level = current_level()
        self.graph = level.prefix  # a `@task` stands beside the function that calls it
        self.path = f"{self.graph}{task.name}"
        self._compiled = level.graph
        self.effect = Effect(node=self.path, name=task.name)
        self.state = task.input if isinstance(task.input, Mapping) else getattr(task.input, "__dict__", {})

    def __enter__(self) -> Self:
        self.begin()
        self._tokens = current_visit.set(self.number), current_task.set(self._task)
        return self

    def __exit__(self, _kind: Any, error: BaseException | None, _traceback: Any) -> None:
        try:
            if error is not None:
                self.fail(error)
            else:
                self.end()
        finally:
            of_visit, of_task = self._tokens
            current_visit.reset(of_visit)
            current_task.reset(of_task)

    def _record(self, event: str, **data: Any) -> None:
        self._run.simulation.trace.record(event, self._run.now, graph=self.graph, **data)

    def begin(self) -> None:
        """Record the start, or that it goes on after a pause."""
        run, visits, name = self._run, self._visits, self._task.name
        run.simulation.raise_if_aborted()
        step = (self._task.config.get("metadata") or {}).get("langgraph_step", 0)
        if self._is_call:
            step = visits.calls.begin(self._task.path, step)
        if not self.graph:
            visits.enter(name, step)
        visits.begin_attempts(self._task)
        self._began = run.now
        resumed = self._task.id in visits.paused
        visits.paused.discard(self._task.id)
        visits.stopped.discard(self._task.id)
        event = "node_resume" if resumed else "node_start"
        if not resumed and self._begins_its_graph:
            self._record("route", source=START, target=name, condition=None)
        self._record(event, node=name, step=step, invocation=visits.invocation)
        run.simulation.visits_of[self.path] += 1
        self.number = f"{self.path}#{run.simulation.visits_of[self.path]}"

    @property
    def _begins_its_graph(self) -> bool:
        """True for an `@entrypoint`, which LangGraph starts without a task that writes to it."""
        nodes = getattr(self._compiled, "nodes", ())
        return not self._is_call and START not in nodes and len(nodes) == 1

    @contextmanager
    def owning(self) -> Iterator[None]:
        """Own the requests that the code inside makes, in this thread."""
        outer, real = current_effect(), RealEffect(self.effect, self.state, sleep=self._visits.sleep)
        with real.current():
            try:
                yield
            finally:
                if outer is not None:
                    outer.owe(real.owed_s)
                    outer.refused = outer.refused or real.refused
        if real.refused is not None:
            raise real.refused

    @property
    def _latency(self) -> float:
        return round(self._run.now - self._began, PRECISION)

    def end(self) -> None:
        """Record the update, and the routes that it leads to."""
        self._end_call()
        update = {channel: value for channel, value in self._task.writes if not channel.startswith(_HIDDEN)}
        snapshot = self._run.simulation.trace.snapshot(to_json(update))
        self._record("node_end", node=self._task.name, update=snapshot, latency=self._latency)
        if not self._is_call:
            self.record_routes()

    def _end_call(self) -> None:
        if self._is_call:
            self._visits.calls.end(self._task.path)

    def fail(self, error: BaseException) -> None:
        """Record a pause, a `Command` to the graph around this one, or a failure."""
        self._end_call()
        name = self._task.name
        if isinstance(error, GraphInterrupt):
            interrupts = error.args[0] if error.args else ()
            (self._visits.paused if interrupts else self._visits.stopped).add(self._task.id)
            for each in interrupts:
                self._visits.asking.setdefault(interrupt_id(each), self.path)
            values = [to_json(each.value) for each in interrupts] or [None]
            self._record("node_pause", node=name, values=values, latency=self._latency)
        elif isinstance(error, ParentCommand):
            self._record("node_end", node=name, update={}, latency=self._latency)
            for target in _targets(error.args[0]):
                self._record("route", source=name, target=f"../{target}", condition=COMMAND)
        elif isinstance(error, GraphBubbleUp):
            self._visits.paused.add(self._task.id)
            self._record("node_pause", node=name, values=[], latency=self._latency)
        else:
            self._fail(error, name)

    def _fail(self, error: BaseException, name: str) -> None:
        run, top = self._run, self.path.partition("/")[0]
        if isinstance(error, WorldError):
            run.simulation.abort(error, top)
        if isinstance(error, Exception) and not self.graph:
            run.fail(error, name)
        failure = {"type": type(error).__name__, "message": error_text(error)}
        self._record("node_error", node=name, **failure, latency=self._latency)

    def record_routes(self) -> None:
        """Record the routes after the task, which its writes contain, in the order of the graph's nodes."""
        source = self._task.name
        branches, sends = [], []
        for channel, value in self._task.writes:
            if channel.startswith("branch:to:"):
                branches.append(channel[len("branch:to:") :])
            elif channel.startswith("join:"):
                branches.append(channel.rpartition(":")[2])
            elif isinstance(value, Send):
                sends.append(value.node)
        last = len(self._visits.order)
        branches.sort(key=lambda name: (self._visits.order.get(name, last), name))
        for target in [*branches, *sends] or [END]:
            label = route_label(self._compiled, source, target)
            self._record("route", source=source, target=target, condition=label)


def _targets(command: Command[Any]) -> Sequence[str]:
    goto = command.goto
    targets = goto if isinstance(goto, (list, tuple)) else [goto]
    return [target.node if isinstance(target, Send) else str(target) for target in targets]
