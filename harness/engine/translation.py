"""Translation of a `Graph` to LangGraph: channels, nodes, edges, `compile()`.

A graph is translated once, whatever its dialect. The data of one run (its world, clock and trace) reaches the nodes
as LangGraph's runtime context, a `Thread`. LangGraph refuses some names of nodes and fields, so both have other names
inside LangGraph, which appear nowhere else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Annotated, Any, Final, NoReturn, TypedDict

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph import errors
from langgraph.errors import GraphInterrupt
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Send, interrupt

from harness.engine.context import NodeContext, RunContext
from harness.engine.pauses import Paused, Question, Replay
from harness.engine.scheduler import merged_writes
from harness.engine.standstill import abbreviated
from harness.engine.visit import follows_all_edges, next_edges, visit
from harness.errors import RunError, Span
from harness.graph.model import END, START, Dispatch, Edge, Graph, Node, State, Update
from harness.time.clock import give_turn

Write = tuple[str, Collection[str]]
"""The name of a node that ended, and the fields in its update."""

_WHOLE_STATE: Final = ""


class InvalidUpdateError(RunError, errors.InvalidUpdateError):
    """Several writes to a field without a reducer in one superstep.

    It has the name of LangGraph's error, and is a subclass of it.
    """

    code = "invalid-update"

    def __init__(self, text: str, span: Span | None) -> None:
        self.span = span
        super().__init__(text)


def collision_error(graph: Graph, writes: Iterable[Write]) -> InvalidUpdateError | None:
    """Return the error for conflicting writes of one superstep, located at the last writer, or None."""
    writers = _writers(graph, writes)
    fields = [field for field, nodes in writers.items() if len(nodes) > 1]
    if not fields:
        return None
    more = abbreviated([f"'{field}'" for field in fields[1:]], ", ")
    nodes = writers[fields[0]]
    what = "the whole state" if fields[0] == _WHOLE_STATE else f"field '{fields[0]}', which has no reducer"
    text = f"{_quoted(nodes)} wrote in one superstep {what}" + (f" (nor has {more})" if more else "")
    text += f"; {graph.collision_hint}" if graph.collision_hint else ""
    return InvalidUpdateError(text, next((n.span for n in graph.nodes if n.name == nodes[-1]), None))


def _writers(graph: Graph, writes: Iterable[Write]) -> Mapping[str, Sequence[str]]:
    """Map each field without a reducer to the nodes that wrote it, in the order of names that LangGraph uses."""
    ordered = sorted(writes, key=lambda write: write[0])
    if graph.open_state and graph.merges is None:
        return {_WHOLE_STATE: [node for node, _ in ordered]}
    if graph.merges is not None:
        plain = [
            key
            for key in dict.fromkeys(k for _, written in ordered for k in written)
            if key not in graph.merges
        ]
    else:
        plain = [c.name for c in graph.channels if c.reducer is None]
    return {field: [node for node, written in ordered if field in written] for field in plain}


def _quoted(nodes: Iterable[str]) -> str:
    times = Counter(nodes)
    return abbreviated(
        [f"'{node}'" + (f" ({n} times)" if n > 1 else "") for node, n in times.items()], " and "
    )


@dataclass
class Superstep:
    """The last superstep of a thread: its nodes, their writes, and the chosen routes that were not followed yet."""

    number: int | None = None
    nodes: list[str] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    routes: list[Edge] = field(default_factory=list)
    ended: bool = False

    def enter(self, number: int | None, *nodes: str) -> None:
        """Add nodes that start or resume in a superstep. The number None begins a new input, before any superstep."""
        if number is None or number != self.number:
            self.number, self.nodes, self.writes, self.routes, self.ended = number, [], [], [], False
        self.nodes.extend(nodes)

    def stops_at_end(self, breakpoints: frozenset[str]) -> bool:
        """True if a run that has ended stops at a breakpoint after one of its last nodes. True only once."""
        stops_here = not self.ended and not breakpoints.isdisjoint(self.nodes)
        self.ended = True
        return stops_here


@dataclass
class Thread:
    """A thread of a run.

    Attributes:
        run: the context of the run.
        invocation: the number of LangGraph invocations so far, this one included.
        replays: the saved states of paused visits, by LangGraph's task id.
        pending: the questions without an answer, by LangGraph's interrupt id.
        updates: the updates of nodes whose router was not asked yet, by LangGraph's task id.
        steps: the nodes of each superstep of this invocation.
        last: the last superstep.
    """

    run: RunContext
    invocation: int = 0
    replays: dict[str, Replay] = field(default_factory=dict)
    pending: dict[str, Question] = field(default_factory=dict)
    updates: dict[str, Update] = field(default_factory=dict)
    steps: dict[int, list[str]] = field(default_factory=dict)
    last: Superstep = field(default_factory=Superstep)

    def record_routes(self, edges: Sequence[Edge]) -> None:
        """Record the transitions that are taken after the last superstep."""
        self.last.routes += edges
        self.run.record_routes(edges)


@dataclass
class StateUpdate:
    """An update of the state of a thread, and the routes that the router chose for it."""

    thread: Thread
    routes: list[Edge] = field(default_factory=list)


_UPDATE: ContextVar[StateUpdate | None] = ContextVar("_UPDATE", default=None)


def current_state_update() -> StateUpdate | None:
    """Return the state update for which a router is being asked, or None if it is asked after its node."""
    return _UPDATE.get()


@contextmanager
def updating_state(thread: Thread) -> Iterator[None]:
    """Make an update of the thread's state available to its router, and record the new routes afterwards.

    If they differ from those chosen before, they replace them in the trace (`reroute`).
    """
    update = StateUpdate(thread)
    token = _UPDATE.set(update)
    try:
        yield
    finally:
        _UPDATE.reset(token)
    last = thread.last
    if not update.routes or update.routes == last.routes:
        return
    if last.routes:
        thread.run.record("reroute", instead_of=len(last.routes))
    last.routes = []
    thread.record_routes(update.routes)


Compiled = CompiledStateGraph[Any, Any, Any, Any]


class _Awaited(Runnable[Any, Any]):
    """A runnable that LangGraph awaits with the state and its configuration."""

    name = None

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> NoReturn:
        """Not supported: the engine calls LangGraph asynchronously only."""
        raise NotImplementedError


class Untraced(_Awaited):
    """A node or a router: a coroutine function of the state and LangGraph's configuration."""

    def __init__(self, function: Callable[[Any, RunnableConfig], Awaitable[Any]]) -> None:
        self._function = function

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """Await the function, with the configuration set for LangGraph's `get_runtime` and `interrupt`."""
        config = config or {}
        token = var_child_runnable_config.set(config)
        try:
            await give_turn()
            return await self._function(input, config)
        finally:
            var_child_runnable_config.reset(token)


class _Sequence(_Awaited):
    """A node, followed by its writers."""

    def __init__(self, *steps: Runnable[Any, Any]) -> None:
        self._steps = steps

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """Await the steps in order, each with the result of the one before."""
        for step in self._steps:
            input = await step.ainvoke(input, config)
        await give_turn()
        return input


def unwrap_nodes(compiled: Compiled) -> None:
    """Make LangGraph await each `Untraced` node and its writers in the task that it starts for the node."""
    for node in compiled.nodes.values():
        if isinstance(node.bound, Untraced):
            node.node = _Sequence(node.bound, *node.flat_writers)


_RESERVED: Final = re.compile(
    r"__(start|error|error_source_node|input|interrupt|resume|no_writes|snapshot_bumps)__|__pregel_.*"
    r"|configurable|checkpoint_(id|map|ns)|langsmith:hidden|[:|]"
)


class FieldNames:
    """The translation of a graph's field names to LangGraph's and back."""

    def __init__(self, graph: Graph) -> None:
        reserved = [channel.name for channel in graph.channels if _RESERVED.fullmatch(channel.name)]
        self._inner = {name: f"field {name}" for name in reserved}
        self._outer = {inner: name for name, inner in self._inner.items()}

    def inner_name(self, name: str) -> str:
        """Return the name of a field in LangGraph."""
        return self._inner.get(name, name)

    def to_langgraph(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return values by field, with LangGraph's names."""
        return _renamed(values, self._inner) if self._inner else values

    def from_langgraph(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return values by field, with the graph's own names."""
        return _renamed(values, self._outer) if self._outer else values


@lru_cache(maxsize=256)
def field_names(graph: Graph) -> FieldNames:
    """Return the field names of a graph, cached. With an open state, LangGraph sees no fields."""
    return FieldNames(graph)


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in values.items()}


Builder = StateGraph[Any, Any, Any, Any]


@lru_cache(maxsize=256)
def build(graph: Graph) -> Compiled:
    """Return the LangGraph graph that runs `graph`, without a checkpointer. Cached."""
    schema = _open_schema(graph) if graph.open_state else _schema(graph)
    builder: Builder = StateGraph(schema, context_schema=Thread)
    names = node_names(graph)
    for node in graph.nodes:
        builder.add_node(names[node.name], Untraced(_step(node, graph)))
    targets = {**names, END: END}
    _connect(builder, graph, START, START, targets)
    for node in graph.nodes:
        if node.name != START:
            _connect(builder, graph, node.name, names[node.name], targets)
    compiled = builder.compile(
        interrupt_before=[names[node] for node in sorted(graph.pause_before)],
        interrupt_after=[names[node] for node in sorted(graph.pause_after)],
    )
    unwrap_nodes(compiled)
    return compiled


def node_names(graph: Graph) -> dict[str, str]:
    """Return the names of the nodes in LangGraph, which applies the updates of one superstep in name order."""
    names = [node.name for node in graph.nodes]
    return {
        name: f"{rank:06}" for rank, name in enumerate(names if graph.merges is not None else sorted(names))
    }


def _open_schema(graph: Graph) -> Any:
    return dict if graph.merges is None else Annotated[dict, partial(merged_writes, graph.merges)]


def _schema(graph: Graph) -> Any:
    """Return the state schema, for which LangGraph makes its own channels.

    They are LastValue for plain fields and BinaryOperatorAggregate for reduced ones. The type of all is `Any`, which
    cannot be constructed: LangGraph then leaves a field absent until it is written.
    """
    inner = field_names(graph).inner_name
    fields = {inner(c.name): Annotated[Any, c.reducer] if c.reducer else Any for c in graph.channels}
    return TypedDict("State", fields, total=False)  # type: ignore[operator]


def _step(node: Node, graph: Graph) -> Callable[..., Awaitable[Mapping[str, Any]]]:
    """Return the function that LangGraph calls for a node."""
    fields = field_names(graph)
    # A node named `__start__` is not the graph's START, and has no edges.
    edges = graph.edges_from(node.name) if node.name != START else ()
    has_choice = node.name != START and not follows_all_edges(graph, node.name)

    async def run_node(state: State, ctx: NodeContext) -> Update:
        try:
            return await node.run(state, ctx)
        except GraphInterrupt as raised:
            # User code called LangGraph's `interrupt` directly.
            raise Paused(ctx.pauses.replay, [item.value for item in raised.args[0]]) from raised

    async def step(state: State, config: RunnableConfig) -> Mapping[str, Any]:
        runtime = get_runtime(Thread)
        thread = runtime.context
        # User code may read it. LangGraph needs it with checkpoints only, and would then copy it in many places.
        config["configurable"].setdefault("thread_id", thread.run.thread_id)
        task, number = _task(runtime), config["metadata"]["langgraph_step"]
        thread.steps.setdefault(number, []).append(node.name)
        thread.last.enter(number, node.name)
        replay = thread.replays.pop(task, None)
        ctx = NodeContext(thread.run, node.name, fields.from_langgraph(state), replay, _pass_answers)
        resumed = replay is not None and not replay.continues_after_breakpoint
        try:
            update = await visit(ctx, run_node, step=number, invocation=thread.invocation, resumed=resumed)
        except Paused as paused:
            thread.replays[task] = paused.replay
            try:
                _interrupt(paused)
            except GraphInterrupt as stopped:
                ids = [item.id for item in stopped.args[0]]
                thread.pending.update(zip(ids, paused.questions, strict=True))
                raise
        thread.last.writes.append((node.name, update.values.keys()))
        if graph.merges is not None and (error := collision_error(graph, thread.last.writes)) is not None:
            raise error
        if has_choice:
            thread.updates[task] = update
        else:
            thread.record_routes(edges or (Edge(node.name, END),))
        return fields.to_langgraph(update.values)

    return step


def _pass_answers(answered: int) -> None:
    """Advance LangGraph's count of answered interrupts, for user code that calls `interrupt` directly."""
    for _ in range(answered):
        interrupt(None)


def _interrupt(paused: Paused) -> NoReturn:
    """Stop the task at this pause: `interrupt` first returns the answers that LangGraph has, then raises."""
    if isinstance(paused.__cause__, GraphInterrupt):
        raise paused.__cause__
    while True:
        interrupt(paused.questions[0].value)


def _connect(
    builder: Builder, graph: Graph, source: str, inner_name: str, targets: Mapping[str, str]
) -> None:
    """Add a node's edges: static ones as they are; a router, fallback or goto as one conditional edge."""
    if follows_all_edges(graph, source):
        for edge in graph.edges_from(source):
            builder.add_edge(inner_name, targets[edge.target])
    else:
        builder.add_conditional_edges(inner_name, Untraced(_choice(graph, source, targets)))


def _choice(
    graph: Graph, source: str, targets: Mapping[str, str]
) -> Callable[..., Awaitable[list[str | Send]]]:
    """Return the function that LangGraph calls to choose the targets after `source`."""
    fields = field_names(graph)

    async def choose(state: State, _config: RunnableConfig) -> list[str | Send]:
        state_update = current_state_update()
        runtime: Runtime[Thread] = get_runtime()
        thread = runtime.context if state_update is None else state_update.thread
        update = thread.updates.pop(_task(runtime), None) if state_update is None else None
        chosen = await next_edges(thread.run, source, fields.from_langgraph(state), update)
        taken = [item.edge if isinstance(item, Dispatch) else item for item in chosen]
        if state_update is not None:
            state_update.routes += taken
        else:
            thread.record_routes(taken)
        return [
            Send(targets[item.edge.target], item.state)
            if isinstance(item, Dispatch)
            else targets[item.target]
            for item in chosen
        ]

    return choose


def _task(runtime: Runtime[Any]) -> str:
    """Return LangGraph's id of the running task: one for a node and the edges after it, kept by a resume."""
    info = runtime.execution_info
    return info.task_id if info is not None else ""
