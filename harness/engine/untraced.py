"""Nodes and routers that LangGraph awaits as they are, without LangChain's callbacks, to which nobody listens.

LangGraph wraps a node and its writers in a sequence, and a router in a function; both start a task and report to
callback managers at each call, which is a tenth of what a run costs.

Nodes that run side by side take turns as they do in tasks of their own: each node, each router and what follows a
node begin when the others that are ready have had their turn (`sleep(0)`).
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
    """Something for LangGraph to await, with the state and its configuration."""

    name = None

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> NoReturn:
        """Nothing here is synchronous."""
        raise NotImplementedError


class Untraced(_Awaited):
    """A node or a router: a coroutine function of the state and LangGraph's configuration."""

    def __init__(self, function: Callable[[Any, RunnableConfig], Awaitable[Any]]) -> None:
        self._function = function

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """Await the function; LangGraph's `get_runtime` and `interrupt` find the configuration inside."""
        config = config or {}
        token = var_child_runnable_config.set(config)
        try:
            await asyncio.sleep(0)
            return await self._function(input, config)
        finally:
            var_child_runnable_config.reset(token)


class _Sequence(_Awaited):
    """A node, and after it its writers."""

    def __init__(self, *steps: Runnable[Any, Any]) -> None:
        self._steps = steps

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """Await the steps in order, each with what the one before returned."""
        for step in self._steps:
            input = await step.ainvoke(input, config)
        await asyncio.sleep(0)
        return input


def unwrap_nodes(compiled: Compiled) -> None:
    """Have LangGraph await each `Untraced` node, and its writers, in the task that it starts for the node."""
    for node in compiled.nodes.values():
        if isinstance(node.bound, Untraced):
            node.node = _Sequence(node.bound, *node.flat_writers)
