"""The edges and routers of a graph agent, and nodes that run side by side. spec: "Routing & Tolerant-Fail".

The update of a node names the exit that it takes in `Update.routing_values`, which the state does not keep. The
writes of branches of a list in `next` are merged; these and map nodes are from the successor of Loki, whose example
`graph.example.yaml` describes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.dialects.loki.document import ApprovalNode, EndNode, GraphFile, LLMNode, MapNode, ScriptNode
from harness.dialects.loki.templates import Written, whole_value, written
from harness.engine.context import NodeContext, RunContext
from harness.engine.conversation import run_inside
from harness.errors import HarnessError
from harness.graph.model import (
    END,
    GOTO,
    START,
    Edge,
    Graph,
    Node,
    NodeFunction,
    Reducer,
    Router,
    Routes,
    State,
    Update,
    Vocabulary,
    Writes,
)
from harness.graph.to_json import error_text
from harness.source.display import did_you_mean
from harness.source.document import Document, DocumentPath
from harness.source.models import describe
from harness.time.gather import staggered_gather

NEXT: Final = "next"
FALLBACK: Final = "fallback"
ON_OTHER: Final = "on_other"
_EXIT: Final = "__exit__"
"""The routing value with the exit: `next`, `fallback`, `on_other`, an `AnswerExit` or a `ScriptExit`."""


class NoRoute(HarnessError):
    """A node whose exit leads to no node."""

    code = "no-route"


@dataclass(frozen=True)
class AnswerExit:
    """The exit of an approval node for an answer that is in `routes`."""

    answer: str


@dataclass(frozen=True)
class ScriptExit:
    """The exit of a script node to the node that the script names in `_next`."""

    target: str


Exit = str | AnswerExit | ScriptExit


def exit_update(state: Mapping[str, Any], exit_: Exit = NEXT) -> Update:
    """Return the update of a node: the whole new state, and the exit that it takes."""
    return Update(state, routing_values={_EXIT: exit_})


@dataclass(frozen=True)
class DeclaredEdge:
    """A static edge as declared in the manifest: the field at `path` of the node `source` names `target`."""

    source: str
    target: str
    exit: Exit
    path: DocumentPath

    @property
    def label(self) -> str | None:
        """The condition of the edge in graph drawings, coverage and the trace."""
        if isinstance(self.exit, AnswerExit):
            return self.exit.answer
        return "other" if self.exit == ON_OTHER else None


def declared_edges(graph: GraphFile) -> Iterator[DeclaredEdge]:
    """Yield the static edges: `next`, `routes`, `on_other` and `fallback` of all nodes. spec: "Validation"."""
    for id_, node in graph.nodes.items():
        for field in node.targets:
            named = getattr(node, field)
            if isinstance(named, list):
                for index, target in enumerate(named):
                    yield DeclaredEdge(id_, target, field, ("nodes", id_, field, index))
            elif named is not None:
                yield DeclaredEdge(id_, named, field, ("nodes", id_, field))
        if isinstance(node, ApprovalNode):
            for answer, target in node.routes.items():
                yield DeclaredEdge(id_, target, AnswerExit(answer), ("nodes", id_, "routes", answer))


def links(graph: GraphFile) -> Iterator[tuple[str, str]]:
    """Yield the static edges, and those from map nodes to the nodes that they run."""
    yield from ((edge.source, edge.target) for edge in declared_edges(graph))
    yield from ((id_, node.branch) for id_, node in graph.of(MapNode).items())


def edges_and_routers(graph: GraphFile, document: Document) -> tuple[list[Edge], dict[str, Router]]:
    """Return the edges that can be taken, and the routers of nodes.

    A node whose only exit is `next` needs no router, unless it is a script node, whose `_next` may name any node.
    The `next` of approval and end nodes is ignored. With validation off, edges to unknown nodes are left out too.
    """
    edges = [Edge(START, graph.start, span=document.span(("start",)))]
    routers: dict[str, Router] = {}
    exits: dict[str, dict[Exit, list[Edge]]] = {id_: {} for id_ in graph.nodes}
    unknown: dict[str, dict[Exit, str]] = {id_: {} for id_ in graph.nodes}
    for declared in declared_edges(graph):
        node = graph.nodes[declared.source]
        if isinstance(node, EndNode) or (isinstance(node, ApprovalNode) and declared.exit == NEXT):
            continue
        if declared.source in graph.branches:
            continue
        if declared.target not in graph.nodes:
            unknown[declared.source][declared.exit] = declared.target
            continue
        on_error = declared.exit == FALLBACK
        edge = Edge(declared.source, declared.target, declared.label, on_error, document.span(declared.path))
        exits[declared.source].setdefault(declared.exit, []).append(edge)
        edges.append(edge)
    for id_, node in graph.nodes.items():
        if id_ in graph.branches:
            continue
        if isinstance(node, EndNode):
            edges.append(Edge(id_, END, span=document.span(("nodes", id_))))
        elif isinstance(node, ScriptNode) or exits[id_].keys() != {NEXT}:
            routers[id_] = _router(id_, exits[id_], unknown[id_], graph)
    return edges, routers


def _router(
    source: str, exits: Mapping[Exit, list[Edge]], unknown: Mapping[Exit, str], graph: GraphFile
) -> Router:
    async def follow(state: State, _run: RunContext) -> Routes:
        exit_: Exit = state[_EXIT]
        if exit_ in exits:
            return exits[exit_]
        if isinstance(exit_, ScriptExit) and exit_.target in graph.nodes:
            return [Edge(source, exit_.target, GOTO)]
        target = exit_.target if isinstance(exit_, ScriptExit) else unknown.get(exit_)
        if target is None:
            raise NoRoute(f"node '{source}' has no `{exit_}`: the run cannot go on after it")
        field = "_next" if isinstance(exit_, ScriptExit) else str(exit_)
        hint = did_you_mean(target, graph.nodes)
        raise NoRoute(f"`{field}` of node '{source}' names no node: there is no '{target}' ({hint})")

    return follow


def exit_after_failure(node: ScriptNode | LLMNode, error: Exception, ctx: NodeContext) -> Exit:
    """Return the exit of a node that failed: `fallback`, else `next` with a warning. spec: "Tolerant-fail contract".

    Raises:
        Exception: the error, if the node has neither, or the error is fatal.
    """
    if ctx.is_fatal(error) or (node.fallback is None and node.next is None):
        raise error
    if node.fallback is not None:
        ctx.because(error, "fallback")
        return FALLBACK
    targets = [node.next] if isinstance(node.next, str) else node.next or ()
    following = ", ".join(f"'{target}'" for target in targets)
    ctx.warn(f"node '{ctx.name}' failed, and the run goes on to {following}: {error_text(error)}")
    return NEXT


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
