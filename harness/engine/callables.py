"""Calls of people's Python: functions and LangChain tools, in the task that awaits the result.

A synchronous function blocks the loop, so that no thread is involved and runs repeat exactly.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any


async def call_with(target: Any, args: Mapping[str, Any]) -> Any:
    """The result of a LangChain tool, or of a function (synchronous or not), called with these arguments."""
    from langchain_core.tools import BaseTool

    if isinstance(target, BaseTool):
        return await target.ainvoke(dict(args)) if _is_asynchronous(target) else target.invoke(dict(args))
    return await call(target, **args)


async def call(target: Any, *given: Any, **named: Any) -> Any:
    """The result of a function, synchronous or not."""
    result = target(*given, **named)
    return await result if inspect.isawaitable(result) else result


def _is_asynchronous(tool: Any) -> bool:
    """True if a tool has an asynchronous implementation of its own; without one LangChain uses a thread."""
    from langchain_core.tools import BaseTool, StructuredTool, Tool

    inherited = (BaseTool._arun, StructuredTool._arun, Tool._arun)
    return getattr(tool, "coroutine", None) is not None or type(tool)._arun not in inherited
