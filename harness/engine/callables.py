"""Calls of people's Python: functions and LangChain tools, in the task that awaits the result.

A synchronous function blocks the loop, so that no thread is involved and runs repeat exactly. What people's Python
raises beside exceptions (`sys.exit()`, `CancelledError`, `GeneratorExit`, a group with a `KeyboardInterrupt`) would
end the process and so the runs of others: `contained` makes it a failure of the code that raised it.
"""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from harness.graph.to_json import error_text

T = TypeVar("T")
_RAISE_FROM_SIGNALS: Final = ("asyncio.runners", "signal")


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


_raised: ContextVar[list[Exception] | None] = ContextVar("_raised", default=None)
_MOST_NOTED: Final = 20


@contextmanager
def noting_exceptions() -> Iterator[list[Exception]]:
    """The exceptions that people's Python raises inside, those that a node or a dialect then makes good too."""
    noted: list[Exception] = []
    token = _raised.set(noted)
    try:
        yield noted
    finally:
        _raised.reset(token)


async def contained(work: Awaitable[T]) -> T:
    """The result of people's Python.

    Raises:
        Exception: it failed; a RuntimeError stands for what is no Exception.
        BaseException: the run is cancelled, interrupted or closed, or the harness itself ends what it does.
    """
    task = asyncio.current_task()
    try:
        return await work
    except Exception as error:
        noted = _raised.get()
        if noted is not None and len(noted) < _MOST_NOTED and error not in noted:
            noted.append(error)
        raise
    except BaseException as error:
        if _is_from_outside(error, task):
            raise
        raise RuntimeError(_said(error)) from error


def _is_from_outside(error: BaseException, task: asyncio.Task[Any] | None) -> bool:
    """True if it is not people's Python that raised this, but what ends it."""
    if type(error).__module__.startswith("harness."):
        return True
    if isinstance(error, asyncio.CancelledError):  # people's Python may cancel what it waits for
        return task is None or task.cancelling() > 0
    if isinstance(error, GeneratorExit):  # a coroutine that is closed is no longer run by its task
        return asyncio._get_running_loop() is None or asyncio.current_task() is not task
    if isinstance(error, KeyboardInterrupt):
        *_, (innermost, _) = traceback.walk_tb(error.__traceback__)
        module = str(innermost.f_globals.get("__name__", ""))
        return module in _RAISE_FROM_SIGNALS or module.startswith("harness.")
    return False


def _said(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    text = error_text(error)
    return f"it raised {type(error).__name__}{f': {text}' if text else ''}"
