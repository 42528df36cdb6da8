"""Nodes that run side by side: branches of a list in `next`, whose writes are merged, and map nodes.

From the successor of Loki, whose example `graph.example.yaml` describes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from harness.dialects.loki.document import GraphFile, MapNode
from harness.dialects.loki.routing import exit_update
from harness.dialects.loki.templates import Written, whole_value, written
from harness.engine.context import NodeContext, RunContext
from harness.engine.conversation import run_inside
from harness.errors import HarnessError
from harness.graph.model import (
    END,
    START,
    Edge,
    Graph,
    Node,
    NodeFunction,
    Reducer,
    State,
    Update,
    Vocabulary,
    Writes,
)
from harness.source.document import Document
from harness.source.models import describe
from harness.time.gather import staggered_gather


class ReducerMismatch(HarnessError):
    """A value that its reducer cannot take."""

    code = "reducer-mismatch"


class NoList(HarnessError):
    """The `over` of a map node that is no list."""

    code = "no-list"


def _listed(old: Any) -> list[Any]:
    return old if isinstance(old, list) else [] if old is None else [old]


def _merge(old: Any, new: Any) -> Any:
    return new if old is None else {**old, **new}


_REDUCERS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "append": lambda old, new: [*_listed(old), new],
    "extend": lambda old, new: [*_listed(old), *new],
    "concat": lambda old, new: new if old in (None, "") else f"{old}\n{new}",
    "sum": lambda old, new: new if old is None else old + new,
    "max": lambda old, new: new if old is None else max(old, new),
    "min": lambda old, new: new if old is None else min(old, new),
    "merge": _merge,
    "overwrite": lambda _old, new: new,
}


def reducers_of(graph: GraphFile) -> Mapping[str, Reducer]:
    """Return the reducers of a graph by state key."""

    def reducer(key: str, name: str) -> Reducer:
        def reduced(old: Any, new: Any) -> Any:
            try:
                return _REDUCERS[name](old, new)
            except TypeError:
                text = f"the reducer {name} of '{key}' cannot take {describe(old)} and {describe(new)}"
                raise ReducerMismatch(text) from None

        return reduced

    return {key: reducer(key, name) for key, name in graph.reducers.items()}


def _slots(run: RunContext, most: int) -> asyncio.Semaphore:
    found: asyncio.Semaphore = run.resources.setdefault("slots", asyncio.Semaphore(most))
    return found


def beside_others(function: NodeFunction, most: int) -> NodeFunction:
    """Return the function of a node that returns only what it writes. At most `most` run at once."""

    async def run(state: State, ctx: NodeContext) -> Update:
        async with _slots(ctx.run, most):
            update = await function(state, ctx)
        after = update.values
        keys = after.written if isinstance(after, Written) else ()
        writes = Writes((key, after[key]) for key in after if key in keys)
        return Update(writes, routing_values=update.routing_values)

    return run


async def run_map(node: MapNode, branch: Graph, most: int, state: State, ctx: NodeContext) -> Update:
    """Run the branch for each item. The results have the order of the items.

    Raises:
        NoList: `over` is no list.
        Exception: the error of a branch.
    """
    items = whole_value(node.over, state)
    if not isinstance(items, list):
        raise NoList(f"`over` of node '{ctx.name}', {node.over}, must be a list, and is {describe(items)}")
    slots = asyncio.Semaphore(node.max_concurrency or most)

    async def run(index: int, item: Any) -> Any:
        async with slots:
            given = {**state, node.as_: item}
            given.pop(node.output_key, None)
            ending = await run_inside(ctx, branch, given, key=str(index))
        return ending.state.get(node.output_key)

    found = await staggered_gather(run(index, item) for index, item in enumerate(items))
    return exit_update(written(state, {node.collect_into: found}))


def branch_graph(graph: GraphFile, id_: str, function: NodeFunction, document: Document) -> Graph:
    """Return the graph of the node that a map node runs for each item. Its input is the whole state."""
    span = document.key_span(("nodes", id_))
    return Graph(
        name=id_,
        dialect="loki",
        nodes=(Node(id_, graph.nodes[id_].type, function, span),),
        edges=(Edge(START, id_, span=span), Edge(id_, END)),
        channels=(),
        open_state=True,
        vocabulary=Vocabulary,  # the graph of the map node has its names
    )
