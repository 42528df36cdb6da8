"""Translation of a `Graph` to LangGraph: channels, nodes, edges, `compile()`.

A graph is translated once, whatever its dialect. The data of one run (its world, clock and trace) reaches the nodes
as LangGraph's runtime context, a `Thread`. LangGraph refuses some names of nodes and fields, so both have other names
inside LangGraph, which appear nowhere else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, NoReturn, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.graph import StateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Send, interrupt

from harness.engine.context import NodeContext
from harness.engine.field_names import field_names
from harness.engine.pauses import Paused
from harness.engine.thread import Thread, current_state_update
from harness.engine.untraced import Compiled, Untraced, unwrap_nodes
from harness.engine.visit import follows_all_edges, next_edges, visit
from harness.graph.model import END, START, Dispatch, Edge, Graph, Node, State, Update

Builder = StateGraph[Any, Any, Any, Any]


@lru_cache(maxsize=256)
def build(graph: Graph) -> Compiled:
    """Return the LangGraph graph that runs `graph`, without a checkpointer. Cached."""
    schema = dict if graph.open_state else _schema(graph)
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
    return {name: f"{rank:06}" for rank, name in enumerate(sorted(node.name for node in graph.nodes))}


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
