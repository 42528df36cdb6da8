"""One visit of a node, the same for all schedulers.

A scheduler calls `visit` with the state for the node. The visit records `node_start` (`node_resume` for a re-run
after a pause), runs the node with a `NodeContext`, and records the result:

    node_end     the update, restricted to the graph's channels, is returned
    node_pause   `Paused` is raised, with the questions, and the replay to pass to the re-run
    node_error   the node's exception is raised, and recorded in `RunContext.failure`

A visit that the graph's guard refuses (`Lifecycle.guard`) fails in the same way, but the trace has no event for it.

`next_edges` then chooses the edges to follow. The scheduler decides when they are followed, and which nodes run side
by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from harness.engine.context import NodeContext, RunContext
from harness.engine.pauses import Paused
from harness.errors import RunError
from harness.graph.model import END, GOTO, Edge, Graph, NodeFunction, Routes, State, Update, Writes
from harness.graph.to_json import error_text, to_json
from harness.time.rebinding import current_visit
from harness.units import PRECISION


class UnknownTarget(RunError):
    """A node returned a target (`Update.goto`) that it may not go to."""

    code = "unknown-target"


async def visit(
    ctx: NodeContext, run_node: NodeFunction, *, step: int, invocation: int, resumed: bool = False
) -> Update:
    """Run a node once, record it, and return its update.

    Args:
        ctx: the visit: its run, node and state, and its replay if it paused before.
        run_node: the function of the node.
        step: nodes with the same `step` and `invocation` run side by side. Both are recorded in the trace.
        invocation: the number of the scheduler's invocation.
        resumed: this is the re-run of a visit that paused.

    Raises:
        Paused: the node stopped at a pause without an answer.
        EndlessLoop: the graph loops while the virtual clock stands still.
        Exception: the node failed, or the guard refused the visit.
    """
    run, name = ctx.run, ctx.name
    run.enter(name, (invocation, step))
    if not resumed and (refusal := run.refusal(name)) is not None:
        run.fail(refusal, name)
        raise refusal
    started = run.now
    run.record("node_resume" if resumed else "node_start", node=name, step=step, invocation=invocation)
    visited = current_visit.set(run.number_visit(name))
    try:
        run.simulation.raise_if_aborted()
        update = await run_node(ctx.state, ctx)
    except Paused as paused:
        _record_pause(run, paused, started)
        raise
    except Exception as error:
        run.fail(error, name)
        failure = {"type": type(error).__name__, "message": error_text(error)}
        run.record("node_error", node=name, **failure, latency=_since(started, run))
        raise
    finally:
        current_visit.reset(visited)
    values = declared(run.graph, update.values)
    run.record(
        "node_end", node=name, update=run.simulation.trace.snapshot(values), latency=_since(started, run)
    )
    return Update(values, update.goto, update.routing_values)


def _record_pause(run: RunContext, paused: Paused, started: float) -> None:
    pause = paused.replay.pause
    partial: dict[str, Any] = {}
    if pause is not None and pause.partial_update is not None:
        partial["update"] = to_json(declared(run.graph, pause.partial_update))
    values = to_json([question.value for question in paused.questions])
    run.record("node_pause", node=paused.replay.node, values=values, latency=_since(started, run), **partial)


def _since(started: float, run: RunContext) -> float:
    return round(run.now - started, PRECISION)


def declared(graph: Graph, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that belong to the graph's channels; with an open state, all values."""
    if graph.open_state:
        return values if isinstance(values, Writes) else dict(values)
    names = _channels(graph)
    return {key: value for key, value in values.items() if key in names}


@lru_cache(maxsize=256)
def _channels(graph: Graph) -> frozenset[str]:
    return frozenset(channel.name for channel in graph.channels)


def follows_all_edges(graph: Graph, source: str) -> bool:
    """True if all edges from the node are unconditional."""
    if source in graph.routers or source in graph.goto_anywhere:
        return False
    return not any(edge.on_error for edge in graph.edges_from(source))


async def next_edges(run: RunContext, source: str, state: State, update: Update | None = None) -> Routes:
    """Return the edges to follow after a node: that of `Update.goto`, else those its router chooses, else all.

    Args:
        run: the run.
        source: the name of the node.
        state: the state with the update of the node.
        update: the update that the node returned, for its `goto` and `routing_values`.

    Raises:
        UnknownTarget: the node may not go to the target in `goto`.
        Exception: the router failed.

    An error that is raised is recorded in `RunContext.failure`.
    """
    graph = run.graph
    router = graph.routers.get(source)
    if update is not None and update.routing_values:
        state = {**state, **update.routing_values}
    try:
        if update is not None and update.goto is not None:
            return [_goto(graph, source, update.goto)]
        if router is not None:
            return await router(state, run) or [Edge(source, END)]
    except Exception as error:
        run.fail(error, source)
        raise
    return [edge for edge in graph.edges_from(source) if not edge.on_error] or [Edge(source, END)]


def _goto(graph: Graph, source: str, target: str) -> Edge:
    """Return the node's fallback edge to the target, or, for a node that may go anywhere, a new edge to it."""
    for edge in graph.edges_from(source):
        if edge.on_error and edge.target == target:
            return edge
    if source in graph.goto_anywhere and (target == END or any(node.name == target for node in graph.nodes)):
        return Edge(source, target, GOTO)
    raise UnknownTarget(f"node '{source}' cannot go on to '{target}': it has no such fallback")
