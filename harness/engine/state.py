"""Application of updates to the state of a graph, for the cases that LangGraph does not handle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.engine.pauses import Question
from harness.graph.model import Graph, State


def initial_state(graph: Graph, update: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first state of a thread: the channels' initial values, updated with the first input."""
    defaults = {channel.name: channel.initial() for channel in graph.channels if channel.initial}
    return merged(graph, defaults, update)


def merged(graph: Graph, state: State, update: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state with an update: reduced, if the channel has a reducer and a value. Unknown keys are dropped.

    With an open state, the update is the whole new state.
    """
    if graph.open_state:
        return dict(update)
    result = dict(state)
    for channel in graph.channels:
        if channel.name in update:
            old, new = result.get(channel.name), update[channel.name]
            result[channel.name] = channel.reducer(old, new) if channel.reducer and old is not None else new
    return result


def with_partial_updates(graph: Graph, state: State, questions: Iterable[Question]) -> State:
    """Return the state with the partial updates of paused visits, applied in the order of the graph's nodes."""
    order = {node.name: rank for rank, node in enumerate(graph.nodes)}
    paused = {id(question.replay): question.replay for question in questions}
    partial = [
        (order[replay.node], replay.pause.partial_update)
        for replay in paused.values()
        if replay.pause is not None and replay.pause.partial_update is not None
    ]
    for _, update in sorted(partial, key=lambda item: item[0]):
        state = merged(graph, state, update)
    return state
