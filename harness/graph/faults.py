"""Faults that are made in a compiled graph: of nodes, of what they write, of the state. All dialects have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from harness.graph.model import (
    Channel,
    Graph,
    Node,
    NodeContext,
    NodeFunction,
    Router,
    Routes,
    RunContext,
    State,
    Update,
    Writes,
)

Kind = Literal["skip", "twice", "drop", "overwrite", "append", "reroute", "without"]


@dataclass(frozen=True)
class Fault:
    """A fault of a compiled graph.

    Attributes:
        kind: `skip`: the update of the node `name` is empty; `twice`: the node runs twice; `drop`: `key` is not in
            its update; `overwrite`: what is written into the field `name` replaces its value, instead of being
            merged into it; `append`: lists that are written into it are appended, instead of replacing its value.
            Only of apps (`harness.engine.native_faults`): `reroute`: two targets of the conditional edges of the node
            are exchanged; `without`: the node lacks the tool `key`.
        name: the node, or the field of the state.
        key: the key that is dropped; the tool; both targets, a line each.
    """

    kind: Kind
    name: str
    key: str = ""


def with_faults(graph: Graph, faults: Sequence[Fault]) -> Graph:
    """Return the graph with faults. A fault of a node or field that it does not have changes nothing."""
    for fault in faults:
        nodes = tuple(
            _faulty(node, fault, graph) if node.name == fault.name else node for node in graph.nodes
        )
        channels = tuple(
            replace(each, reducer=_reducer(each, fault.kind)) if each.name == fault.name else each
            for each in graph.channels
        )
        of_field = fault.kind in ("overwrite", "append")
        graph = replace(graph, channels=channels) if of_field else replace(graph, nodes=nodes)
        if fault.kind == "skip" and graph.open_state and fault.name in graph.routers:
            graph = replace(graph, routers={**graph.routers, fault.name: _first_edge(graph, fault.name)})
    return graph


def _first_edge(graph: Graph, node: str) -> Router:
    """Return a router that goes on by the first edge: the node, which chooses one, does not run."""
    first = [edge for edge in graph.edges_from(node) if not edge.on_error][:1]

    async def follow(_state: State, _run: RunContext) -> Routes:
        return first

    return follow


def _faulty(node: Node, fault: Fault, graph: Graph) -> Node:
    made: NodeFunction
    run = node.run
    if fault.kind == "twice":

        async def made(state: State, ctx: NodeContext) -> Update:
            first = await run(state, ctx)
            again = await run({**state, **_merged(graph, state, first.values)}, ctx)
            return replace(again, values=_both(graph, first.values, again.values))

    elif fault.kind == "drop":

        async def made(state: State, ctx: NodeContext) -> Update:
            update = await run(state, ctx)
            return replace(update, values=_without(update.values, fault.key))

    else:

        async def made(state: State, ctx: NodeContext) -> Update:
            return Update(state if graph.open_state and graph.merges is None else Writes())

    return replace(node, run=made)


def _merged(graph: Graph, state: State, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an update makes of the state."""
    reducers = {
        channel.name: channel.reducer
        for channel in graph.channels
        if channel.reducer and channel.name in state
    }
    return {
        key: reducers[key](state[key], value) if key in reducers else value for key, value in values.items()
    }


def _both(graph: Graph, first: Mapping[str, Any], again: Mapping[str, Any]) -> dict[str, Any]:
    """Return two updates as one: lists that are merged into a value follow each other."""
    merged = {channel.name for channel in graph.channels if channel.reducer}
    lists = {key for key in merged & first.keys() & again.keys() if isinstance(first[key], list)}
    return _like(again, {**first, **again, **{key: [*first[key], *again[key]] for key in lists}})


def _without(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return _like(values, {name: value for name, value in values.items() if name != key})


def _like(values: Mapping[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    return Writes(changed) if isinstance(values, Writes) else changed


def _reducer(channel: Channel, kind: Kind) -> Any:
    before, initial = channel.reducer, channel.initial
    if kind == "append":
        return lambda old, new: [*old, *new] if isinstance(old, list) and isinstance(new, list) else new
    if before is None or initial is None:
        return lambda _old, new: new
    return lambda _old, new: before(initial(), new)  # a value in the form that the merged one has
