"""Graph to LangGraph: channels, then nodes, then edges, then `compile()`.

The translation is made once a Graph and knows no dialect. What belongs to one run (its world, clock and
trace) reaches the nodes as LangGraph's runtime context. LangGraph refuses some names of nodes and fields, so it is
given others, which nobody else sees.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Send

from harness.engine.breakpoints import current_edit
from harness.engine.context import NodeContext, RunContext
from harness.engine.field_names import field_names
from harness.engine.pauses import Question
from harness.graph.model import END, START, Dispatch, Edge, Graph, Node, Router, State
from harness.graph.to_json import error_text, to_json
from harness.time.clock import PRECISION

Builder = StateGraph[Any, Any, Any, Any]
Compiled = CompiledStateGraph[Any, Any, Any, Any]


@lru_cache(maxsize=256)
def build(graph: Graph) -> Compiled:
    """The LangGraph graph that runs `graph`, without a checkpointer. Made once for each graph."""
    schema = dict if graph.open_state else _schema(graph)
    builder: Builder = StateGraph(schema, context_schema=RunContext)
    names = _names(graph)
    for node in graph.nodes:
        builder.add_node(names[node.name], _step(node, graph))
    targets = {**names, END: END}
    _connect(builder, graph, START, START, targets)
    for node in graph.nodes:
        if node.name != START:
            _connect(builder, graph, node.name, names[node.name], targets)
    return builder.compile(
        interrupt_before=[names[node] for node in sorted(graph.pause_before)],
        interrupt_after=[names[node] for node in sorted(graph.pause_after)],
    )


def paused_around(graph: Graph, ran: Sequence[str], follow: Sequence[str]) -> tuple[str, list[str]]:
    """Before or after which nodes a run paused: `ran` did so last, LangGraph has said what is to `follow`."""
    after = graph.pause_after.intersection(ran)
    if after:
        return "after", sorted(after)
    names = {called: node for node, called in _names(graph).items()}
    return "before", sorted(graph.pause_before.intersection(names[called] for called in follow))


def _names(graph: Graph) -> dict[str, str]:
    """What LangGraph calls each node. It applies the updates of one superstep in the order of these names."""
    return {name: f"{rank:06}" for rank, name in enumerate(sorted(node.name for node in graph.nodes))}


def _schema(graph: Graph) -> Any:
    """Native channels: LastValue for plain fields, BinaryOperatorAggregate for reduced ones.

    `Any` cannot be constructed, which is how LangGraph leaves a field absent until it is written.
    """
    called = field_names(graph).called
    fields = {called(c.name): Annotated[Any, c.reducer] if c.reducer else Any for c in graph.channels}
    return TypedDict("State", fields, total=False)  # type: ignore[operator]


def _step(node: Node, graph: Graph) -> Callable[..., Awaitable[Mapping[str, Any]]]:
    """A node as LangGraph calls it: visit, record, and hand on what was declared."""
    declared = None if graph.open_state else {channel.name for channel in graph.channels}
    # What is said of the start is not said of a node with that name.
    follows_all = node.name == START or follows_all_edges(graph, node.name)
    edges = graph.edges_from(node.name) if node.name != START else ()
    fields = field_names(graph)

    async def step(state: State, config: RunnableConfig, runtime: Runtime[Any]) -> Mapping[str, Any]:
        run: RunContext = runtime.context
        state = fields.outside(state)
        task = _task(runtime)
        trace = run.simulation.trace
        started = run.now
        here = {"graph": run.prefix, "node": node.name}
        where = {**here, "step": config["metadata"]["langgraph_step"], "invocation": run.invocation}
        run.steps.setdefault(where["step"], []).append(node.name)
        run.superstep.enter(where["step"], node.name)
        replay = run.paused.pop(task, None)
        anew = replay is None or replay.goes_on_inside
        trace.record("node_start" if anew else "node_resume", started, **where)
        ctx = NodeContext(run, node.name, state, replay)
        try:
            run.simulation.raise_if_aborted()
            update = await node.run(state, ctx)
        except GraphInterrupt as interrupt:
            _record_pause(ctx, task, interrupt, started, declared)
            raise
        except Exception as error:
            run.failure = run.failure or (error, node.name)
            latency = round(run.now - started, PRECISION)
            trace.record(
                "node_error",
                run.now,
                **here,
                type=type(error).__name__,
                message=error_text(error),
                latency=latency,
            )
            raise
        values = _declared(update.values, declared)
        latency = round(run.now - started, PRECISION)
        trace.record("node_end", run.now, **here, update=to_json(values), latency=latency)
        if update.goto is not None:
            run.jumps[task] = update.goto
        elif follows_all:
            run.record_routes(edges or (Edge(node.name, END),))
        # LangGraph shows routers what a node returned beside the channels, and keeps the channels.
        return fields.inside(
            values if graph.open_state or not update.routing_values else {**update.routing_values, **values}
        )

    return step


def _declared(values: Mapping[str, Any], declared: set[str] | None) -> dict[str, Any]:
    if declared is None:
        return dict(values)
    return {key: value for key, value in values.items() if key in declared}


def _record_pause(
    ctx: NodeContext, task: str, interrupt: GraphInterrupt, started: float, declared: set[str] | None
) -> None:
    run, replay = ctx.run, ctx.pauses.replay
    pause = replay.pause
    # A node may also have called LangGraph's `interrupt` by itself.
    values = [pause.value if pause is not None else item.value for item in interrupt.args[0]]
    run.paused[task] = replay
    for item, value in zip(interrupt.args[0], values, strict=True):
        run.questions[item.id] = Question(replay, value, around=pause is not None and pause.around)
    left: dict[str, Any] = {}
    if pause is not None and pause.partial_update is not None:
        left["update"] = to_json(_declared(pause.partial_update, declared))
    run.simulation.trace.record(
        "node_pause",
        run.now,
        graph=run.prefix,
        node=ctx.name,
        values=to_json(values),
        latency=round(run.now - started, PRECISION),
        **left,
    )


def follows_all_edges(graph: Graph, source: str) -> bool:
    """Whether there is nothing to choose after a node: LangGraph's own static edges do."""
    return source not in graph.routers and not any(edge.on_error for edge in graph.edges_from(source))


def _connect(builder: Builder, graph: Graph, source: str, called: str, targets: Mapping[str, str]) -> None:
    """Static edges stay LangGraph's own; a router or a fallback becomes one conditional edge."""
    edges = graph.edges_from(source)
    if follows_all_edges(graph, source):
        for edge in edges:
            builder.add_edge(called, targets[edge.target])
        return
    router = graph.routers.get(source, _all_of([edge for edge in edges if not edge.on_error]))
    possible = {targets[edge.target] for edge in edges} | {END}
    builder.add_conditional_edges(called, _choice(graph, source, router, targets), sorted(possible))


def _all_of(edges: Sequence[Edge]) -> Router:
    async def follow(_state: State, _run: RunContext) -> Sequence[Edge | Dispatch]:
        return edges

    return follow


def _choice(
    graph: Graph, source: str, router: Router, targets: Mapping[str, str]
) -> Callable[..., Awaitable[list[str | Send]]]:
    """Where to go from `source`: to the fallback if the node failed over, else where the router says."""
    fallbacks = {edge.target: edge for edge in graph.edges_from(source) if edge.on_error}
    fields = field_names(graph)

    async def choose(state: State) -> list[str | Send]:
        edit = current_edit()
        runtime: Runtime[Any] = get_runtime()
        run: RunContext = runtime.context if edit is None else edit.run
        jump = run.jumps.pop(_task(runtime), None) if edit is None else None
        chosen: Sequence[Edge | Dispatch]
        if jump is not None:
            chosen = [fallbacks[jump]]
        else:
            try:
                chosen = await router(fields.outside(state), run) or [Edge(source, END)]
            except Exception as error:
                run.failure = run.failure or (error, source)
                raise
        taken = [item.edge if isinstance(item, Dispatch) else item for item in chosen]
        if edit is not None:
            edit.routes += taken
        else:
            run.record_routes(taken)
        return [
            Send(targets[item.edge.target], item.state)
            if isinstance(item, Dispatch)
            else targets[item.target]
            for item in chosen
        ]

    return choose


def _task(runtime: Runtime[Any]) -> str:
    """LangGraph's id of the running task: the same for a node and the edges after it, and after a resume."""
    info = runtime.execution_info
    return info.task_id if info is not None else ""
