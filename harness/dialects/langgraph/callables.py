"""The graph of an agent that is any callable."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from typing import Any, TypedDict


class Called(TypedDict, total=False):
    """The state of an agent that is a callable."""

    input: Any
    output: Any


def graph_of_callable(agent: Any, name: str, context: Mapping[str, Any]) -> Any:
    """Return a graph of one node, which calls an agent with the input, and the context if it wants it.

    `output` is what it returns, or the pieces that it yields.
    """
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph import END, START, StateGraph

    function = agent if callable(agent) else agent.ainvoke
    wanted = inspect.signature(function).parameters
    is_async = _is_async(function) or _is_async(getattr(function, "__call__", None))  # noqa: B004

    def arguments(state: Called, config: RunnableConfig) -> tuple[list[Any], dict[str, Any]]:
        given = {
            "config": config,
            "context": copy.deepcopy(dict(context)),
            "thread_id": config["configurable"].get("thread_id"),
        }
        named = {key: value for key, value in given.items() if key in wanted}
        return ([state.get("input")] if len(wanted) > len(named) else []), named

    async def call_async(state: Called, config: RunnableConfig) -> Called:
        positional, named = arguments(state, config)
        made = function(*positional, **named)
        if inspect.isasyncgen(made):
            return {"output": _whole([piece async for piece in made])}
        return {"output": await made}

    def call(state: Called, config: RunnableConfig) -> Called:
        positional, named = arguments(state, config)
        made = function(*positional, **named)
        return {"output": _whole(list(made)) if inspect.isgenerator(made) else made}

    for each in (call_async, call):  # LangGraph reads the hints, which are texts here
        each.__annotations__ = {"state": Called, "config": RunnableConfig}
    builder: Any = StateGraph(Called)
    builder.add_node(name, call_async if is_async else call)
    builder.add_edge(START, name)
    builder.add_edge(name, END)
    return builder.compile(name=name)


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _whole(pieces: list[Any]) -> Any:
    """Return what an agent yielded: pieces of text as one text, anything else as a list."""
    return "".join(pieces) if pieces and all(isinstance(each, str) for each in pieces) else pieces
