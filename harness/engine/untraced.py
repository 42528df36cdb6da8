"""Nodes and routers that LangGraph awaits directly, without LangChain's callbacks, to which nothing listens.

LangGraph wraps a node and its writers in a sequence, and a router in a function. Both start a task and report to
callback managers at each call, which takes a tenth of the time of a run.

Nodes that run side by side are scheduled as if in LangGraph's own tasks: each node, each router, and the writers
after a node begin when the others that are ready have run (`sleep(0)`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.graph.state import CompiledStateGraph

Compiled = CompiledStateGraph[Any, Any, Any, Any]


class _Awaited(Runnable[Any, Any]):
    """A runnable that LangGraph awaits with the state and its configuration."""

    name = None

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> NoReturn:
        """Not supported: the engine calls LangGraph asynchronously only."""
        raise NotImplementedError


class Untraced(_Awaited):
    """A node or a router: a coroutine function of the state and LangGraph's configuration."""

    def __init__(self, function: Callable[[Any, RunnableConfig], Awaitable[Any]]) -> None:
        self._function = function

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """Await the function, with the configuration set for LangGraph's `get_runtime` and `interrupt`."""
        config = config or {}
        token = var_child_runnable_config.set(config)
        try:
            await asyncio.sleep(0)
            return await self._function(input, config)
        finally:
            var_child_runnable_config.reset(token)


class _Sequence(_Awaited):
    """A node, followed by its writers."""

    def __init__(self, *steps: Runnable[Any, Any]) -> None:
        self._steps = steps

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """Await the steps in order, each with the result of the one before."""
        for step in self._steps:
            input = await step.ainvoke(input, config)
        await asyncio.sleep(0)
        return input


def unwrap_nodes(compiled: Compiled) -> None:
    """Make LangGraph await each `Untraced` node and its writers in the task that it starts for the node."""
    for node in compiled.nodes.values():
        if isinstance(node.bound, Untraced):
            node.node = _Sequence(node.bound, *node.flat_writers)
