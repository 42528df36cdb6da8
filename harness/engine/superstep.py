"""The superstep scheduler: LangGraph's own channels, reducers, `Send`, interrupts and breakpoints.

Nodes that are ready run side by side, and their updates are applied when all have ended. When no node can run, the
world's people are asked all pending questions, if they have an answer to each.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp, InvalidUpdateError
from langgraph.types import Command
from langsmith import tracing_context

from harness.engine.context import RunContext
from harness.engine.pauses import BREAKPOINT, Question, Replay
from harness.engine.scheduler import People, initial_state, with_partial_updates
from harness.engine.too_many_steps import with_last_steps
from harness.engine.translation import Thread, build, collision_error, field_names, node_names, updating_state
from harness.engine.visit import follows_all_edges
from harness.graph.model import START, State


class _ByReference:
    """A LangGraph serialiser that returns values as they are."""

    def dumps_typed(self, value: Any) -> tuple[str, Any]:
        return ("reference", value)

    def loads_typed(self, data: tuple[str, Any]) -> Any:
        return data[1]


class Checkpoints(InMemorySaver):
    """The checkpoints of one thread. LangGraph changes its bookkeeping in place, so that part is copied."""

    def __init__(self) -> None:
        super().__init__(serde=_ByReference())

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return super().put(config, _detached(checkpoint), metadata, new_versions)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = super().get_tuple(config)
        if found is None:
            return None
        # The list of answers to the pauses of a task grows later.
        writes = [
            (task, channel, list(value) if type(value) is list else value)
            for task, channel, value in found.pending_writes or ()
        ]
        return found._replace(checkpoint=_detached(found.checkpoint), pending_writes=writes)


def _detached(checkpoint: Checkpoint) -> Checkpoint:
    copy = checkpoint.copy()
    copy["channel_versions"] = dict(checkpoint["channel_versions"])
    copy["versions_seen"] = {node: dict(seen) for node, seen in checkpoint["versions_seen"].items()}
    return copy


class SuperstepScheduler:
    """Runs one thread on LangGraph. With `single`, only one input will be sent, so checkpoints may not be needed."""

    def __init__(self, run: RunContext, *, single: bool = False) -> None:
        graph = run.graph
        run.stops = (*run.stops, GraphBubbleUp)
        self.state: State = {}
        self._run = run
        self._graph = graph
        self._thread = Thread(run)
        self._reached: State = {}  # the state without partial updates
        self._compiled = build(graph)
        self._fields = field_names(graph)
        self._config: RunnableConfig = {}
        self._options: dict[str, Any] = {"stream_mode": "values"}
        if graph.may_pause or graph.has_breakpoints or not single:
            self._config = {"configurable": {"thread_id": run.thread_id}}
            self._compiled = self._compiled.copy({"checkpointer": Checkpoints()})
            self._options["durability"] = "exit"
        self._started = False

    @property
    def pending(self) -> Mapping[str, Question]:
        """The questions without an answer, by id."""
        return self._thread.pending

    async def start(self, update: Mapping[str, Any], people: People | None) -> None:
        """Run from START with an input; see `Scheduler`."""
        self._thread.replays.clear()
        self._thread.updates.clear()  # left over from nodes that ran beside one that failed
        self._thread.last.enter(None)
        if not self._started:
            update = self.state = self._reached = initial_state(self._graph, update)
            self._started = True
        if follows_all_edges(self._graph, START):
            self._thread.record_routes(self._graph.edges_from(START))
        await self._go(self._fields.to_langgraph(dict(update)), people)

    async def resume(self, answers: Mapping[str, Any], people: People | None) -> None:
        """Continue with answers; see `Scheduler`."""
        await self._go(self._command(answers), people)

    async def update_state(self, update: Mapping[str, Any], people: People | None) -> None:
        """Update the state as if by the last node that ran, ask its router again, and continue.

        Raises:
            InvalidUpdateError: several nodes ran in the last superstep, so the update has no single writer.
        """
        thread = self._thread
        try:
            with _untraced(), updating_state(thread):
                await self._compiled.aupdate_state(self._config, self._fields.to_langgraph(dict(update)))
        except InvalidUpdateError:
            if self._run.failure is not None:  # a router's
                raise
            raise InvalidUpdateError(
                "Ambiguous update: an update of the state counts as written by the last node that ran, but several "
                "ran side by side; go on without values"
            ) from None
        thread.replays.clear()
        await self._go(None, people)

    def _command(self, answers: Mapping[str, Any]) -> Command[Any] | None:
        """Store the answers for the nodes that asked, and return LangGraph's command to resume."""
        for id_, answer in answers.items():
            self.pending[id_].answer(answer)
        return None if BREAKPOINT in answers else Command(resume=answers)

    async def _go(self, given: Any, people: People | None) -> None:
        """Invoke LangGraph and ask people in turn, until the graph ends or a question has no answer."""
        while True:
            await self._invoke(given)
            self._run.simulation.raise_if_aborted()
            if self._graph.has_breakpoints and not self.pending:
                await self._stop_at_breakpoint()
            if not self.pending:
                return
            self.state = with_partial_updates(self._graph, self._reached, self.pending.values())
            answers = await self._ask(people) if people is not None else None
            if answers is None:
                return
            given = self._command(answers)

    async def _ask(self, people: People) -> dict[str, Any] | None:
        """Return the answers to all questions by id, or None if people do not have all of them."""
        questions = {id_: question for id_, question in self.pending.items() if not question.breakpoint}
        try:
            if not people.can_answer(questions.values(), self.state):
                return None
            return {id_: await people.answer(question, self.state) for id_, question in questions.items()}
        except Exception:
            self.state = self._reached
            raise

    async def _invoke(self, given: Any) -> None:
        run, thread = self._run, self._thread
        self.state = self._reached
        thread.invocation += 1
        thread.pending.clear()
        thread.steps.clear()
        run.failure = None
        config: Any = {**self._config, "recursion_limit": run.recursion_limit}
        try:
            with _untraced():
                async for state in self._compiled.astream(given, config, context=thread, **self._options):
                    state.pop("__interrupt__", None)
                    self.state = self._reached = self._fields.from_langgraph(state)
        except InvalidUpdateError as error:
            raise collision_error(self._graph, thread.last.writes) or error from None
        except Exception as error:
            raise with_last_steps(error, run, thread.steps.values()) from None

    async def _stop_at_breakpoint(self) -> None:
        """Add a question and record a pause if LangGraph stopped at a static breakpoint.

        A breakpoint after the last node of a graph pauses only a nested run, as the outer graph continues after it.
        """
        run, graph, last = self._run, self._graph, self._thread.last
        follow = (await self._compiled.aget_state(self._config)).next
        if not follow and (run.caller is None or not last.stops_at_end(graph.pause_after)):
            return
        when, nodes = "after", sorted(graph.pause_after.intersection(last.nodes))
        if not nodes:
            names = {called: node for node, called in node_names(graph).items()}
            when, nodes = "before", sorted(graph.pause_before.intersection(names[node] for node in follow))
        self._thread.pending[BREAKPOINT] = Question(Replay(", ".join(nodes)), None, breakpoint=True)
        run.record("pause", when=when, nodes=nodes)


def _untraced() -> AbstractContextManager[Any]:
    """Turn LangSmith tracing off, even if the environment turns it on."""
    return tracing_context(enabled=False)
