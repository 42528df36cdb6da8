"""A model's tool calls, and the messages that answer them.

What a model gets wrong (a tool it does not have, arguments that do not fit), and a failure that a tool reports, goes
back to it in a message. What a tool raises fails the node. The wording is LangGraph's (`engine.tool_messages`).

A call that cannot be made is refused: it is in the trace and among the calls of the run, with the reason.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.messages import ToolMessage

from harness.engine.context import NodeContext
from harness.engine.tool_messages import Call, bad_arguments, error_message, result_message, unknown_tool
from harness.graph.effects import Effect, ToolCall
from harness.source.suggest import did_you_mean
from harness.time.gather import gather

Tool = TypeVar("Tool")

UseTool = Callable[[Tool, Mapping[str, Any]], Awaitable[str | list[Any]]]
"""Runs a tool with the model's arguments. Returns the content of the answer: text, or content blocks.

Raises:
    BadArguments, ToolReportedError: see there.
"""


class RefusedCall(Exception):
    """A call that cannot be made."""


class UnknownTool(RefusedCall):
    """A tool that the model does not have."""


class BadArguments(RefusedCall):
    """Arguments that the tool does not take; the model reads why. `effect` is the call that was asked for."""

    def __init__(self, message: str, effect: Effect) -> None:
        super().__init__(message)
        self.effect = effect


class ToolReportedError(Exception):
    """The tool reports that it failed; the model reads it. `content` has its content blocks, if it gave any."""

    def __init__(self, message: str, content: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.content = list(content)


async def answer_call(
    call: Call, tools: Mapping[str, Tool], use: UseTool[Tool], ctx: NodeContext
) -> ToolMessage:
    """The message that answers one call. `tools` are those the model has, by name."""
    tool = tools.get(call["name"])
    if tool is None:
        refuse_unknown(call, tools, ctx)
        return unknown_tool(call, tools)
    try:
        return result_message(call, await use(tool, call["args"]))
    except BadArguments as error:
        ctx.refuse(error.effect, error)
        return bad_arguments(call, error)
    except ToolReportedError as error:
        return error_message(call, error.content or str(error))


async def answer_calls(
    calls: Iterable[Call], tools: Mapping[str, Tool], use: UseTool[Tool], ctx: NodeContext
) -> list[ToolMessage]:
    """The messages that answer calls, in their order. The tools run side by side."""
    return await gather(answer_call(call, tools, use, ctx) for call in calls)


def refuse_unknown(call: Call, known: Iterable[str], ctx: NodeContext) -> None:
    """Refuse the call of a tool that the model does not have; `known` are the names of those it has."""
    names = list(known)
    hint = did_you_mean(call["name"], names) if names else "it has none"
    refuse(call, UnknownTool(f"the model has no tool '{call['name']}'" + (f" ({hint})" if hint else "")), ctx)


def refuse(call: Call, why: RefusedCall, ctx: NodeContext) -> None:
    """Record a call that a model asked for and that cannot be made."""
    ctx.refuse(ToolCall(name=call["name"], args=call.get("args") or {}), why)


def refuse_all(calls: Sequence[Call], ctx: NodeContext) -> None:
    """Refuse the calls in the reply of a model that has no tools, with a warning that names them."""
    for call in calls:
        refuse_unknown(call, (), ctx)
    if calls:
        names = ", ".join(call["name"] for call in calls)
        ctx.warn(f"node '{ctx.name}': the model asks for tools, and it has none: {names}")


def mcp_texts(content: Iterable[Mapping[str, Any]]) -> list[str]:
    """The texts among MCP content blocks."""
    return [str(block["text"]) for block in content if block.get("type") == "text"]
