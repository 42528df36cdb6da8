"""Calls of user code: functions and LangChain tools, in the task that awaits the result.

A synchronous function blocks the event loop: no thread is involved, so runs repeat exactly. User code may also raise
what is not an `Exception` (`sys.exit()`, `CancelledError`, `GeneratorExit`, a group with a `KeyboardInterrupt`). That
would end the process, and other runs with it; `contained` turns it into a failure of the code that raised it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from langchain_core.messages import ToolMessage

from harness.ctrl_c import is_from_signal
from harness.graph.to_json import error_text

T = TypeVar("T")


async def call_with(target: Any, args: Mapping[str, Any]) -> Any:
    """Call a LangChain tool or a function (synchronous or not) with keyword arguments and return its result."""
    from langchain_core.tools import BaseTool

    if isinstance(target, BaseTool):
        return await target.ainvoke(dict(args)) if _is_asynchronous(target) else target.invoke(dict(args))
    return await call(target, **args)


async def call(target: Any, *given: Any, **named: Any) -> Any:
    """Call a function, synchronous or not, and return its result."""
    result = target(*given, **named)
    return await result if inspect.isawaitable(result) else result


def _is_asynchronous(tool: Any) -> bool:
    """True if a tool has its own asynchronous implementation; LangChain runs others in a thread."""
    from langchain_core.tools import BaseTool, StructuredTool, Tool

    inherited = (BaseTool._arun, StructuredTool._arun, Tool._arun)
    return getattr(tool, "coroutine", None) is not None or type(tool)._arun not in inherited


_raised: ContextVar[list[Exception] | None] = ContextVar("_raised", default=None)
_MOST_COLLECTED: Final = 20


@contextmanager
def collect_exceptions() -> Iterator[list[Exception]]:
    """Collect the exceptions that user code raises inside, including those that a node or a dialect handles.

    At most the first 20 are kept.
    """
    collected: list[Exception] = []
    token = _raised.set(collected)
    try:
        yield collected
    finally:
        _raised.reset(token)


async def contained(work: Awaitable[T]) -> T:
    """Await user code and return its result.

    Raises:
        Exception: the code failed. If it raised something that is no `Exception`, a RuntimeError takes its place.
        BaseException: the run was cancelled, interrupted or closed from outside the code.
    """
    try:
        with exits_as_failures():
            return await work
    except Exception as error:
        collected = _raised.get()
        if collected is not None and len(collected) < _MOST_COLLECTED and error not in collected:
            collected.append(error)
        raise


@contextmanager
def exits_as_failures() -> Iterator[None]:
    """Raise a RuntimeError in place of what user code raises inside and that is no `Exception`; see `contained`."""
    task = asyncio.current_task() if asyncio._get_running_loop() is not None else None  # a thread has none
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if _is_from_outside(error, task):
            raise
        raise RuntimeError(_description(error)) from error


def _is_from_outside(error: BaseException, task: asyncio.Task[Any] | None) -> bool:
    """True if the exception ends the user code from outside, and was not raised by it."""
    if type(error).__module__.startswith("harness."):
        return True
    if isinstance(error, asyncio.CancelledError):  # user code may cancel a task that it awaits
        return task is None or task.cancelling() > 0
    if isinstance(error, GeneratorExit):  # when a coroutine is closed, its task is not running
        return asyncio._get_running_loop() is None or asyncio.current_task() is not task
    return isinstance(error, KeyboardInterrupt) and is_from_signal(error)


def _description(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    text = error_text(error)
    return f"it raised {type(error).__name__}{f': {text}' if text else ''}"


Call = Mapping[str, Any]
"""A tool call of an ai message: {name, args, id}."""


def result_message(call: Call, content: str | list[Any]) -> ToolMessage:
    """Return the message with a tool's result."""
    return ToolMessage(content=content, name=call["name"], tool_call_id=call["id"], status="success")


def error_message(call: Call, content: str | list[Any]) -> ToolMessage:
    """Return the message with the error that a tool reported."""
    return ToolMessage(content=content, name=call["name"], tool_call_id=call["id"], status="error")


def unknown_tool(call: Call, names: Iterable[str]) -> ToolMessage:
    """Return the error message for a tool that the model does not have. `names` are the tools it has."""
    from langgraph.prebuilt.tool_node import INVALID_TOOL_NAME_ERROR_TEMPLATE as TEMPLATE

    return error_message(call, TEMPLATE.format(requested_tool=call["name"], available_tools=", ".join(names)))


def bad_arguments(call: Call, why: object) -> ToolMessage:
    """Return the error message for arguments that the tool does not accept."""
    from langgraph.prebuilt.tool_node import TOOL_INVOCATION_ERROR_TEMPLATE as TEMPLATE

    return error_message(call, TEMPLATE.format(tool_name=call["name"], tool_kwargs=call["args"], error=why))
