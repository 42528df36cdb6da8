"""The functions of nodes: they call a handler or run a subgraph, and return a state update.

spec: "Node Specification", "Resilience". A node writes back its whole input state, updated by its answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.dialects.yagra.document import ERROR, NEXT, NodeSpec
from harness.dialects.yagra.handlers import call_handler
from harness.dialects.yagra.resilience import with_resilience
from harness.dialects.yagra.state import StateKeys
from harness.engine.context import NodeContext
from harness.engine.nested import run_inside
from harness.graph.messages import MessageLog
from harness.graph.model import Graph, NodeFunction, State, Update


def handler_node(
    spec: NodeSpec, params: Mapping[str, Any], keys: StateKeys, *, has_conditional_edges: bool
) -> NodeFunction:
    """Return the function of a node that calls a handler.

    If the node has conditional edges, its default `output_key` is `__next__`.
    """
    if has_conditional_edges and "output_key" not in params:
        params = {**params, "output_key": NEXT}

    async def run(state: State, ctx: NodeContext) -> Update:
        given = {key: _for_handler(value) for key, value in state.items()}

        async def attempt() -> Update:
            return Update(dict(await call_handler(spec, params, given, ctx)))

        update = await with_resilience(spec, attempt, ctx)
        return _update({**_input_state(state, given), **update.values}, update.goto, keys, ctx)

    return run


def subgraph_node(spec: NodeSpec, graph: Graph, keys: StateKeys) -> NodeFunction:
    """Return the function of a node that runs another workflow on the state and writes the final state of that.

    spec: "Subgraph Node".
    """

    async def run(state: State, ctx: NodeContext) -> Update:
        async def attempt() -> Update:
            return Update((await run_inside(ctx, graph, dict(state))).state)

        update = await with_resilience(spec, attempt, ctx)
        return _update(update.values, update.goto, keys, ctx)

    return run


def _update(values: Mapping[str, Any], goto: str | None, keys: StateKeys, ctx: NodeContext) -> Update:
    kept = keys.kept(values, ctx.new_id)
    if goto is not None and ERROR in values:
        kept[ERROR] = values[ERROR]
    return Update(kept, goto, routing_values=keys.dropped(values))


def _for_handler(value: Any) -> Any:
    """Convert a value for handlers: a message log becomes a list."""
    return list(value) if isinstance(value, MessageLog) else value


def _input_state(state: State, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input state, with the message lists that a handler changed in place instead of their logs."""
    return {
        key: given[key] if isinstance(value, MessageLog) and _changed(value, given[key]) else value
        for key, value in state.items()
    }


def _changed(log: MessageLog, given: Any) -> bool:
    return len(log) != len(given) or any(one is not other for one, other in zip(log, given, strict=True))
