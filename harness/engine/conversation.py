"""The run loop: inputs and answers go in, supersteps happen, an ending comes out.

A `Conversation` is one thread of one graph. It is driven from inside an event loop; `harness.time.clock`
has the virtual one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.errors import InvalidUpdateError
from langgraph.types import Command
from langsmith import tracing_context

from harness.engine.breakpoints import AROUND, NotAnEdit, editing
from harness.engine.checkpoints import Checkpoints
from harness.engine.context import RunContext, Simulation
from harness.engine.endless import in_own_words
from harness.engine.field_names import field_names
from harness.engine.pauses import Question, Replay
from harness.engine.superstep import build, follows_all_edges, paused_around
from harness.errors import RunError, WorldError
from harness.graph.effects import HumanCall
from harness.graph.model import START, Graph
from harness.graph.to_json import error_text, to_json

if TYPE_CHECKING:
    from harness.engine.nested import Caller


@dataclass(frozen=True)
class Ending:
    """How an invocation ended.

    `state` is that of the last superstep that succeeded; of an interrupted run, with what its paused nodes
    leave (`NodeContext.pause`). `node` is where it failed, where that is known. `output` is None unless it
    completed.
    """

    status: Literal["completed", "interrupted", "failed"]
    state: Mapping[str, Any]
    output: Any = None
    error: Exception | None = None
    node: str | None = None


class NotInterrupted(RunError):
    """A resume of a run that does not wait for an answer."""

    code = "not-interrupted"


class Conversation:
    """One thread of a graph: `prepare` it, then `send` inputs and `resume` pauses, in any number.

    Args:
        graph: what runs.
        simulation: the world, clock, seed and trace it runs in.
        caller: the node it runs inside of, for a nested graph.
        single: only one input will be sent.
    """

    def __init__(
        self, graph: Graph, simulation: Simulation, *, caller: Caller | None = None, single: bool = False
    ) -> None:
        self.graph = graph
        self.run = RunContext(graph, simulation, caller=caller)
        self.state: Mapping[str, Any] = {}
        self._reached: Mapping[str, Any] = {}  # the state without what paused nodes leave
        self._compiled = build(graph)
        self._fields = field_names(graph)
        self._thread: RunnableConfig = {"configurable": {"thread_id": self.run.thread_id}}
        self._how: dict[str, Any] = {"stream_mode": "values"}
        if graph.may_pause or graph.pauses_around or not single:
            self._compiled = self._compiled.copy({"checkpointer": Checkpoints()})
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

    async def resume(self, *values: Any, ask: bool = True) -> Ending:
        """Answer the pending pauses and go on: one value answers all of them, else each has its own, in order.

        Pauses around nodes ask nothing. When there are no others, None or an empty mapping goes on, and a mapping
        first edits the state of this graph (`Lifecycle.edit`): as the last node that ran would write it, whose
        router is asked again. A node in which a nested graph paused then starts anew.
        """
        return self._recorded(await self._resume(values, ask=ask))

    def _recorded(self, ending: Ending) -> Ending:
        error = ending.error
        told_error = None if error is None else {"type": type(error).__name__, "message": error_text(error)}
        self.run.simulation.trace.record(
            "end",
            self.run.now,
            graph=self.run.prefix,
            status=ending.status,
            output=to_json(ending.output),
            error=told_error,
            node=ending.node,
        )
        return ending

    async def _send(self, value: Any, *, ask: bool) -> Ending:
        recorded = getattr(value, "recorded", None)
        shown = to_json(recorded() if callable(recorded) else value)
        self.run.simulation.trace.record("input", self.run.now, graph=self.run.prefix, value=shown)
        try:
            update = await self.graph.lifecycle.accept(value, self.run) or {}
        except Exception as error:
            return await self._failed(error, None)
        self.run.paused.clear()
        self.run.superstep.enter(None)
        if not self._started:
            update = self._begun_with(update)
            self._started = True
        if follows_all_edges(self.graph, START):
            self.run.record_routes(self.graph.edges_from(START))
        return await self._until_end(self._fields.inside(dict(update)), ask=ask)

    async def _resume(self, values: Sequence[Any], *, ask: bool) -> Ending:
        run, questions = self.run, self.run.questions
        for value in values:
            run.simulation.trace.record("resume", run.now, graph=run.prefix, value=to_json(value))
        if not questions:
            return await self._failed(NotInterrupted("nothing to resume: the run is not interrupted"), None)
        run.failure = None
        try:
            if all(question.around for question in questions.values()):
                given = await self._go_on(values[0] if values else None)
            else:
                answers = [await self.graph.lifecycle.answer(value, run) for value in values]
                if len(answers) == 1:
                    answers *= len(questions)
                given = self._taken(dict(zip(questions, answers, strict=True)))
        except Exception as error:
            return await self._failed(error, run.failure[1] if run.failure else None)
        return await self._until_end(given, ask=ask)

    async def _go_on(self, value: Any) -> Command[Any] | None:
        """What makes LangGraph go on after pauses around nodes. A value edits the state first."""
        if value is None or value == {}:
            return self._taken(dict.fromkeys(self.run.questions))
        update = await self.graph.lifecycle.edit(value, self.run)
        if not isinstance(update, Mapping):
            nodes = ", ".join(question.node for question in self.run.questions.values())
            raise NotAnEdit(
                f"the run is paused around {nodes}, where nothing is asked: expected {{}} to go on, or a mapping "
                f"that edits the state, found {update!r}"
            )
        await self._edit(dict(update))
        return None

    async def _edit(self, update: dict[str, Any]) -> None:
        run = self.run
        try:
            with _untraced(), editing(run):
                await self._compiled.aupdate_state(self._thread, self._fields.inside(update))
        except InvalidUpdateError:
            if run.failure is not None:  # a router's
                raise
            raise InvalidUpdateError(
                "Ambiguous update: an edit counts as the writing of the last node that ran, but several ran side "
                "by side; go on without values"
            ) from None
        run.paused.clear()

    def _taken(self, answers: Mapping[str, Any]) -> Command[Any] | None:
        """What makes LangGraph go on, with the answers kept for the nodes that asked."""
        for pause, answer in answers.items():
            self.run.questions[pause].take(answer)
        return None if AROUND in answers else Command(resume=answers)

    def _begun_with(self, update: Mapping[str, Any]) -> dict[str, Any]:
        """The state a thread starts with: defaults, and the first input on top."""
        defaults = {channel.name: channel.initial() for channel in self.graph.channels if channel.initial}
        state = self._merged(defaults, update)
        self.state = self._reached = state
        return state

    def _merged(self, state: Mapping[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
        if self.graph.open_state:
            return dict(update)
        merged = dict(state)
        for channel in self.graph.channels:
            if channel.name in update:
                old, new = merged.get(channel.name), update[channel.name]
                merged[channel.name] = (
                    channel.reducer(old, new) if channel.reducer and old is not None else new
                )
        return merged

    def _with_what_is_left(self) -> Mapping[str, Any]:
        """The state reached, with what paused nodes leave, in the order of the graph's nodes."""
        state = self._reached
        order = [node.name for node in self.graph.nodes]
        for replay in sorted(self.run.paused.values(), key=lambda replay: order.index(replay.node)):
            if replay.pause is not None and replay.pause.partial_update is not None:
                state = self._merged(state, replay.pause.partial_update)
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
                self.state = self._reached
                return await self._failed(error, self.run.failure[1] if self.run.failure else None)
            if answers is None:
                return ending
            given = self._taken(answers)

    async def _ask(self) -> dict[str, Any] | None:
        """The people's answers to all pending questions, or None when one of them has none, or nothing is asked."""
        questions = {id_: question for id_, question in self.run.questions.items() if not question.around}
        calls = {pause: self._call(question) for pause, question in questions.items()}
        if not calls or not self.run.world.has_answers(list(calls.values()), self.state):
            return None
        answers: dict[str, Any] = {}
        for pause, call in calls.items():
            try:
                reply = await self.run.perform(call, self.state, questions[pause].node)
            except Exception as error:
                self.run.failure = (error, questions[pause].node)
                raise
            answers[pause] = await self.graph.lifecycle.answer(reply, self.run)
        return answers

    def _call(self, question: Question) -> HumanCall:
        """The effect that asks the world's people."""
        run, node = self.run, question.node
        name = run.caller.name if run.caller and run.caller.attribute_to_caller else node
        return HumanCall(node=run.effect_node(node), name=name, args=_question(question.value))

    async def _invoke(self, given: Any) -> Ending:
        run = self.run
        self.state = self._reached
        run.invocation += 1
        run.questions.clear()
        run.steps.clear()
        run.failure = None
        config: Any = {
            **self._thread,
            "recursion_limit": run.recursion_limit,
        }
        try:
            with _untraced():
                async for state in self._compiled.astream(given, config, context=run, **self._how):
                    state.pop("__interrupt__", None)
                    self.state = self._reached = self._fields.outside(state)
        except Exception as raised:
            # Of nodes that fail side by side, LangGraph raises any; the first is the one to tell.
            error, node = run.failure or (in_own_words(raised, run), None)
            return await self._failed(run.simulation.unanswerable or error, node)
        if run.simulation.unanswerable is not None:
            # Something in between caught the error; it ends the run all the same.
            return await self._failed(run.simulation.unanswerable, None)
        if self.graph.pauses_around and not run.questions:
            await self._pause_around()
        if run.questions:
            self.state = self._with_what_is_left()
            return Ending("interrupted", self.state)
        return await self._completed()

    async def _pause_around(self) -> None:
        """Note that LangGraph stopped before or after nodes, if it did.

        After an end there is a pause inside another graph only, which goes on behind it.
        """
        run = self.run
        follow = (await self._compiled.aget_state(self._thread)).next
        if not follow and (run.caller is None or not run.superstep.ends_before(self.graph.pause_after)):
            return
        when, nodes = paused_around(self.graph, run.superstep.nodes, follow)
        run.questions[AROUND] = Question(Replay(", ".join(nodes)), None, around=True)
        run.simulation.trace.record("pause", run.now, graph=run.prefix, when=when, nodes=nodes)

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
    question = to_json(value)
    if isinstance(question, dict) and "question" in question:
        return {key: question[key] for key in ("question", "options") if key in question}
    return {"value": question}


def _untraced() -> AbstractContextManager[Any]:
    """LangSmith stays off, whatever the environment says."""
    return tracing_context(enabled=False)
