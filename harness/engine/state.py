"""How updates change the state of a graph, where it is not LangGraph that applies them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.engine.pauses import Question
from harness.graph.model import Graph, State


def initial_state(graph: Graph, update: Mapping[str, Any]) -> dict[str, Any]:
    """The state a thread starts with: the channels' initial values, and the first input on top."""
    defaults = {channel.name: channel.initial() for channel in graph.channels if channel.initial}
    return merged(graph, defaults, update)


def merged(graph: Graph, state: State, update: Mapping[str, Any]) -> dict[str, Any]:
    """The state with an update: reduced, where the channel has a reducer and a value. Other keys are dropped.

    An update of an open state is the whole new state.
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
    """The state with what paused visits have written so far, in the order of the graph's nodes."""
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
