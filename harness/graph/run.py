"""The run loop: inputs and answers go in, supersteps happen, an ending comes out.

A `Conversation` is one thread of one graph. It is driven from inside an event loop; `harness.graph.clock`
has the virtual one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from langsmith import tracing_context

from harness.errors import RunError, WorldError
from harness.graph.build import build, follows_all_edges, record_routes
from harness.graph.context import RunContext, Simulation
from harness.graph.effects import HumanCall
from harness.graph.model import START, Graph
from harness.graph.plain import plain, told


@dataclass(frozen=True)
class Ending:
    """How an invocation ended. `state` is that of the last superstep that succeeded.

    `node` is where it failed, where that is known. `output` is None unless it completed.
    """

    status: Literal["completed", "interrupted", "failed"]
    state: Mapping[str, Any]
    output: Any = None
    error: Exception | None = None
    node: str | None = None


class NotInterrupted(RunError):
    """A resume of a run that does not wait for an answer."""

    code = "not-interrupted"


class _ByReference:
    """A checkpoint serialiser that serialises nothing: state stays in memory and is never changed in place."""

    def dumps_typed(self, value: Any) -> tuple[str, Any]:
        return ("reference", value)

    def loads_typed(self, data: tuple[str, Any]) -> Any:
        return data[1]


class Conversation:
    """One thread of a graph: `prepare` it, then `send` inputs and `resume` pauses, in any number.

    Args:
        graph: what runs.
        simulation: the world, clock, seed and trace it runs in.
        prefix: stands in front of its nodes' names (`outer/`), for a nested graph.
        single: only one input will be sent.
    """

    def __init__(
        self, graph: Graph, simulation: Simulation, *, prefix: str = "", single: bool = False
    ) -> None:
        self.graph = graph
        self.run = RunContext(graph, simulation, prefix=prefix)
        self.state: Mapping[str, Any] = {}
        self._compiled = build(graph)
        self._how: dict[str, Any] = {"stream_mode": "values"}
        if graph.may_pause or not single:
            self._compiled = self._compiled.copy({"checkpointer": InMemorySaver(serde=_ByReference())})
            self._how["durability"] = "exit"
        self._started = False

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
        return self._recorded(await self._send(value, ask=ask))

    async def resume(self, value: Any, *, ask: bool = True) -> Ending:
        """Answer the pending pause, or all of them if there are several, and go on."""
        return self._recorded(await self._resume(value, ask=ask))

    def _recorded(self, ending: Ending) -> Ending:
        error = ending.error
        told_error = None if error is None else {"type": type(error).__name__, "message": told(error)}
        self.run.simulation.trace.record(
            "end",
            self.run.now,
            graph=self.run.prefix,
            status=ending.status,
            output=plain(ending.output),
            error=told_error,
            node=ending.node,
        )
        return ending

    async def _send(self, value: Any, *, ask: bool) -> Ending:
        self.run.simulation.trace.record("input", self.run.now, graph=self.run.prefix, value=plain(value))
        try:
            update = await self.graph.lifecycle.accept(value, self.run) or {}
        except Exception as error:
            return await self._failed(error, None)
        if not self._started:
            update = self._begun_with(update)
            self._started = True
        if follows_all_edges(self.graph, START):
            record_routes(self.run, self.graph.edges_from(START))
        return await self._until_end(dict(update), ask=ask)

    async def _resume(self, value: Any, *, ask: bool) -> Ending:
        self.run.simulation.trace.record("resume", self.run.now, graph=self.run.prefix, value=plain(value))
        if not self.run.questions:
            return await self._failed(NotInterrupted("nothing to resume: the run is not interrupted"), None)
        try:
            answer = await self.graph.lifecycle.answer(value, self.run)
        except Exception as error:
            return await self._failed(error, None)
        answers = dict.fromkeys(self.run.questions, answer)
        return await self._until_end(Command(resume=answers), ask=ask)

    def _begun_with(self, update: Mapping[str, Any]) -> dict[str, Any]:
        """The state a thread starts with: defaults, and the first input on top."""
        state: dict[str, Any] = {}
        for channel in self.graph.channels:
            if channel.initial is not None:
                state[channel.name] = channel.initial()
            if channel.name in update:
                new = update[channel.name]
                old = state.get(channel.name)
                state[channel.name] = (
                    channel.reducer(old, new) if channel.reducer and old is not None else new
                )
        self.state = state
        return state

    async def _until_end(self, given: Any, *, ask: bool) -> Ending:
        """Invoke, answer pauses, invoke again, until the graph ends or nobody answers."""
        while True:
            ending = await self._invoke(given)
            if ending.status != "interrupted" or not ask:
                return ending
            try:
                answers = await self._ask()
            except Exception as error:
                return await self._failed(error, self.run.failure[1] if self.run.failure else None)
            if answers is None:
                return ending
            given = Command(resume=answers)

    async def _ask(self) -> dict[str, Any] | None:
        """The people's answers to all pending questions, or None when one of them has none."""
        calls = {
            pause: HumanCall(node=self.run.prefix + node, name=node, args=_question(value))
            for pause, (node, value) in self.run.questions.items()
        }
        if not self.run.world.has_answers(list(calls.values()), self.state):
            return None
        answers: dict[str, Any] = {}
        for pause, call in calls.items():
            try:
                reply = await self.run.perform(call, self.state, call.name)
            except Exception as error:
                self.run.failure = (error, call.name)
                raise
            answers[pause] = await self.graph.lifecycle.answer(reply, self.run)
        return answers

    async def _invoke(self, given: Any) -> Ending:
        run = self.run
        run.invocation += 1
        run.questions.clear()
        run.failure = None
        config: Any = {
            "configurable": {"thread_id": run.thread_id},
            "recursion_limit": run.recursion_limit,
        }
        try:
            with _untraced():
                async for state in self._compiled.astream(given, config, context=run, **self._how):
                    state.pop("__interrupt__", None)
                    self.state = state
        except Exception as raised:
            # Of nodes that fail side by side, LangGraph raises any; the first is the one to tell.
            error, node = run.failure or (raised, None)
            return await self._failed(run.simulation.unanswerable or error, node)
        if run.simulation.unanswerable is not None:
            # Something in between caught the error; it ends the run all the same.
            return await self._failed(run.simulation.unanswerable, None)
        if run.questions:
            return Ending("interrupted", self.state)
        return await self._completed()

    async def _completed(self) -> Ending:
        try:
            output = await self.graph.lifecycle.finish(self.state, self.run)
        except Exception as error:
            return await self._failed(error, None)
        return Ending("completed", self.state, output)

    async def _failed(self, error: Exception, node: str | None) -> Ending:
        if isinstance(error, WorldError):
            return Ending("failed", self.state, None, error, self.run.simulation.unanswered_in or node)
        try:
            rescued = await self.graph.lifecycle.rescue(error, self.run)
            if rescued is None:
                output = await self.graph.lifecycle.finish(self.state, self.run)
                return Ending("completed", self.state, output)
        except Exception as worse:
            rescued = worse
        return Ending("failed", self.state, None, rescued, node)


def _question(value: Any) -> dict[str, Any]:
    """The arguments of a human effect: `{question, options}` where the pause has them, else `{value}`."""
    question = plain(value)
    if isinstance(question, dict) and "question" in question:
        return {key: question[key] for key in ("question", "options") if key in question}
    return {"value": question}


def _untraced() -> AbstractContextManager[Any]:
    """LangSmith stays off, whatever the environment says."""
    return tracing_context(enabled=False)
