"""The native scheduler: LangGraph runs an app's own graph, and `harness.engine.native_visits` observes it.

The app's checkpointer and store are used if they are in memory; otherwise the run has its own.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from langgraph.errors import GraphBubbleUp
from langsmith import tracing_context

from harness.engine.context import RunContext
from harness.engine.native_calls import wrap_models, wrap_tools
from harness.engine.native_savers import saver_of_run, store_of_run
from harness.engine.native_visits import Visits, can_observe, observed
from harness.engine.pauses import BREAKPOINT, Question, Replay
from harness.engine.scheduler import People
from harness.engine.too_many_steps import with_last_steps
from harness.engine.versions import (
    command_to_resume,
    has_context,
    interrupt_id,
    unknown_runner,
)
from harness.graph.effects import Effect
from harness.graph.model import State
from harness.graph.native import NativeGraph, PlainState
from harness.interception.real_effects import within_effect

_MOST_ITEMS: Final = 100_000
_INTERRUPT: Final = "__interrupt__"


class NativeScheduler:
    """Runs one thread of an app's graph."""

    def __init__(self, run: RunContext, graph: NativeGraph) -> None:
        graph.enter()
        wrap_tools()
        wrap_models()
        run.stops = (*run.stops, GraphBubbleUp)
        self.state: State = {}
        self.pending: dict[str, Question] = {}
        self._run, self._graph = run, graph
        self._visits = Visits(run, graph)
        compiled, given = graph.compiled, graph.invocation
        self.store = store_of_run(compiled.store)
        self._options: dict[str, Any] = {
            "stream_mode": "values",
            "output_keys": compiled.stream_channels_asis,
        }
        self._compiled = copy.copy(compiled)  # its own `copy` validates the graph again
        self._compiled.checkpointer, self._compiled.store = saver_of_run(compiled.checkpointer), self.store
        digest = hashlib.sha256(f"{given.thread}/{run.thread_id}".encode()).hexdigest()
        configurable = {"thread_id": f"thread-{digest[:16]}", **given.config.get("configurable", {})}
        self._config: Any = {
            **given.config,
            "configurable": configurable,
        }
        # LangGraph Server passes an empty context to a graph with a schema for it.
        has_schema = getattr(compiled, "context_schema", None) is not None
        if has_context() and (given.context is not None or has_schema):
            self._options["context"] = copy.deepcopy(given.context or {})
        self._stored = False

    async def start(self, update: Mapping[str, Any], people: People | None) -> None:
        """Run from START with an input; see `Scheduler`."""
        if not self._stored:
            self._stored = True
            for item in self._graph.invocation.store:
                await self.store.aput(item.namespace, item.key, copy.deepcopy(dict(item.value)))
        await self._go(update, people)

    async def resume(self, answers: Mapping[str, Any], people: People | None) -> None:
        """Continue with answers; see `Scheduler`."""
        await self._go(_command(answers), people)

    async def update_state(self, update: Mapping[str, Any], people: People | None) -> None:
        """Update the state as LangGraph does, as if by the last node that ran, and continue."""
        with observed(self._visits), tracing_context(enabled=False):
            await self._compiled.aupdate_state(self._config, update)
        await self._go(None, people)

    async def _go(self, given: Any, people: People | None) -> None:
        """Invoke LangGraph and ask people in turn, until the graph ends or a question has no answer."""
        while True:
            await self._invoke(given)
            self._run.simulation.raise_if_aborted()
            asked = {id_: each for id_, each in self.pending.items() if not each.breakpoint}
            if people is None or not people.can_answer(asked.values(), self.state):
                return
            given = _command(await self._ask(people, asked))

    async def _ask(self, people: People, asked: Mapping[str, Question]) -> dict[str, Any]:
        """Return the answers of people who are asked at once: the slowest counts."""
        asking = [people.answer(each, self.state) for each in asked.values()]
        answers = await asyncio.gather(*asking, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return dict(zip(asked, answers, strict=True))

    async def _invoke(self, given: Any) -> None:
        run = self._run
        self._visits.begin_invocation()
        self.pending.clear()
        run.failure = None
        may_pause = self._graph.has_breakpoints or not can_observe()
        try:
            with observed(self._visits), tracing_context(enabled=False):
                if can_observe():
                    await self._stream(given)
                else:  # the calls of all nodes belong to the graph
                    if self._visits.invocation == 1:
                        run.warn(unknown_runner())
                    whole = Effect(node="", name=self._graph.name)
                    await within_effect(lambda: self._stream(given), whole, sleep=self._visits.sleep)
        except Exception as error:
            raise with_last_steps(error, run, self._visits.supersteps()) from None
        if self._visits.paused or self._visits.stopped or may_pause:
            await self._find_questions()

    async def _stream(self, given: Any) -> None:
        async for last in self._compiled.astream(given, self._config, **self._options):
            self.state = _without_interrupts(last)

    async def _find_questions(self) -> None:
        found = await self._compiled.aget_state(self._config)
        self.state = _mapping(found.values)
        for task in found.tasks:
            for each in task.interrupts:
                id_ = interrupt_id(each)
                node = self._visits.asking.get(id_, task.name)
                self.pending[id_] = Question(Replay(node), each.value)
        if found.next and not self.pending:
            if nested := [task.name for task in found.tasks if task.id in self._visits.stopped]:
                # Their visits have recorded it.
                self.pending[BREAKPOINT] = Question(Replay(", ".join(nested)), None, breakpoint=True)
                return
            before = sorted(self._graph.pause_before.intersection(found.next))
            when, nodes = (
                ("before", before) if before else ("after", self._visits.last_of(self._graph.pause_after))
            )
            self.pending[BREAKPOINT] = Question(Replay(", ".join(nodes)), None, breakpoint=True)
            self._run.record("pause", when=when, nodes=nodes)

    def stored(self) -> list[dict[str, Any]]:
        """Return the items of the store."""
        found = self.store.search((), limit=_MOST_ITEMS)
        return [{"namespace": list(each.namespace), "key": each.key, "value": each.value} for each in found]


def _command(answers: Mapping[str, Any]) -> Any:
    return None if BREAKPOINT in answers else command_to_resume(answers)


def _without_interrupts(state: Any) -> State:
    if isinstance(state, Mapping) and _INTERRUPT in state:
        return {key: value for key, value in state.items() if key != _INTERRUPT}
    return _mapping(state)


def _mapping(state: Any) -> State:
    """Return a state as a mapping. That of a functional graph is any value."""
    if isinstance(state, Mapping):
        return state
    if hasattr(state, "model_dump") or hasattr(state, "__dataclass_fields__"):
        return dict(vars(state))
    return PlainState(value=state) if state is not None else {}
