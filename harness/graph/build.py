"""Graph to LangGraph: channels, then nodes, then edges, then `compile()`.

The translation is made once a Graph and knows no dialect. What belongs to one run (its world, clock and
trace) reaches the nodes as LangGraph's runtime context.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from harness.graph.clock import PRECISION
from harness.graph.context import NodeContext, RunContext
from harness.graph.model import END, START, Channel, Dispatch, Edge, Graph, Node, Router, State
from harness.graph.plain import plain, told

Builder = StateGraph[Any, Any, Any, Any]
Compiled = CompiledStateGraph[Any, Any, Any, Any]


@lru_cache(maxsize=256)
def build(graph: Graph) -> Compiled:
    """The LangGraph graph that runs `graph`, without a checkpointer. Made once for each graph."""
    builder: Builder = StateGraph(_schema(graph.channels), context_schema=RunContext)
    for node in graph.nodes:
        builder.add_node(node.name, _step(node, graph))
    for source in (START, *(node.name for node in graph.nodes)):
        _connect(builder, graph, source)
    return builder.compile()


def _schema(channels: Sequence[Channel]) -> Any:
    """Native channels: LastValue for plain fields, BinaryOperatorAggregate for reduced ones.

    `Any` cannot be constructed, which is how LangGraph leaves a field absent until it is written.
    """
    fields = {c.name: Annotated[Any, c.reducer] if c.reducer else Any for c in channels}
    return TypedDict("State", fields, total=False)  # type: ignore[operator]


def _step(node: Node, graph: Graph) -> Callable[..., Awaitable[dict[str, Any]]]:
    """A node as LangGraph calls it: visit, record, and hand on what was declared."""
    declared = {channel.name for channel in graph.channels}
    follows_all = follows_all_edges(graph, node.name)
    edges = graph.edges_from(node.name)

    async def step(state: State, config: RunnableConfig, runtime: Runtime[Any]) -> dict[str, Any]:
        run: RunContext = runtime.context
        task = _task(runtime)
        trace = run.simulation.trace
        started = run.now
        here = {"graph": run.prefix, "node": node.name}
        where = {**here, "step": config["metadata"]["langgraph_step"], "invocation": run.invocation}
        resumed = run.paused.pop(task, None) is not None
        trace.record("node_resume" if resumed else "node_start", started, **where)
        try:
            run.simulation.must_go_on()
            update = await node.run(state, NodeContext(run, node.name, state))
        except GraphInterrupt as pause:
            _record_pause(run, node.name, task, pause, started)
            raise
        except Exception as error:
            run.failure = run.failure or (error, node.name)
            latency = round(run.now - started, PRECISION)
            trace.record(
                "node_error",
                run.now,
                **here,
                type=type(error).__name__,
                message=told(error),
                latency=latency,
            )
            raise
        values = {key: value for key, value in update.values.items() if key in declared}
        latency = round(run.now - started, PRECISION)
        trace.record("node_end", run.now, **here, update=plain(values), latency=latency)
        if update.goto is not None:
            run.jumps[task] = update.goto
        elif follows_all:
            record_routes(run, edges or (Edge(node.name, END),))
        return values

    return step


def _record_pause(run: RunContext, node: str, task: str, pause: GraphInterrupt, started: float) -> None:
    interrupts = pause.args[0]
    run.paused[task] = node
    for item in interrupts:
        run.questions[item.id] = (node, item.value)
    latency = round(run.now - started, PRECISION)
    values = [plain(item.value) for item in interrupts]
    run.simulation.trace.record(
        "node_pause", run.now, graph=run.prefix, node=node, values=values, latency=latency
    )


def follows_all_edges(graph: Graph, source: str) -> bool:
    """Whether there is nothing to choose after a node: LangGraph's own static edges do."""
    return source not in graph.routers and not any(edge.on_error for edge in graph.edges_from(source))


def _connect(builder: Builder, graph: Graph, source: str) -> None:
    """Static edges stay LangGraph's own; a router or a fallback becomes one conditional edge."""
    edges = graph.edges_from(source)
    if follows_all_edges(graph, source):
        for edge in edges:
            builder.add_edge(source, edge.target)
        return
    router = graph.routers.get(source, _all_of([edge for edge in edges if not edge.on_error]))
    targets = {edge.target for edge in edges} | {END}
    builder.add_conditional_edges(source, _choice(graph, source, router), sorted(targets))


def _all_of(edges: Sequence[Edge]) -> Router:
    async def follow(_state: State, _run: RunContext) -> Sequence[Edge | Dispatch]:
        return edges

    return follow


def _choice(graph: Graph, source: str, router: Router) -> Callable[..., Awaitable[list[str | Send]]]:
    """Where to go from `source`: to the fallback if the node failed over, else where the router says."""
    fallbacks = {edge.target: edge for edge in graph.edges_from(source) if edge.on_error}

    async def choose(state: State, runtime: Runtime[Any]) -> list[str | Send]:
        run: RunContext = runtime.context
        jump = run.jumps.pop(_task(runtime), None)
        chosen: Sequence[Edge | Dispatch]
        if jump is not None:
            chosen = [fallbacks[jump]]
        else:
            try:
                chosen = await router(state, run) or [Edge(source, END)]
            except Exception as error:
                run.failure = run.failure or (error, source)
                raise
        record_routes(run, [item.edge if isinstance(item, Dispatch) else item for item in chosen])
        return [
            Send(item.edge.target, item.state) if isinstance(item, Dispatch) else item.target
            for item in chosen
        ]

    return choose


def record_routes(run: RunContext, edges: Sequence[Edge]) -> None:
    """Put the transitions that are taken into the trace."""
    for edge in edges:
        run.simulation.trace.record(
            "route",
            run.now,
            graph=run.prefix,
            source=edge.source,
            target=edge.target,
            condition=edge.label,
        )


def _task(runtime: Runtime[Any]) -> str:
    """LangGraph's id of the running task: the same for a node and the edges after it, and after a resume."""
    info = runtime.execution_info
    return info.task_id if info is not None else ""
