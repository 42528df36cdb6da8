"""Running a model's tool calls, and the messages that answer them.

Errors of the model (an unknown tool, wrong arguments) and failures that a tool reports are sent back to the model in
a tool message. Exceptions of a tool fail the node. The wording is LangGraph's (`engine.tool_messages`).

A call that cannot be made is refused: the trace and the calls of the run have it, with the reason.
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
"""A function that runs a tool with the model's arguments and returns its result: text, or content blocks.

Raises:
    BadArguments: the tool does not take these arguments.
    ToolReportedError: the tool reports a failure.
"""


class RefusedCall(Exception):
    """A tool call that cannot be made."""


class UnknownTool(RefusedCall):
    """The call of a tool that the model does not have."""


class BadArguments(RefusedCall):
    """Arguments that the tool does not take. The message is sent to the model; `effect` is the requested call."""

    def __init__(self, message: str, effect: Effect) -> None:
        super().__init__(message)
        self.effect = effect


class ToolReportedError(Exception):
    """A failure that the tool reports, which is sent to the model. `content` holds its content blocks, if any."""

    def __init__(self, message: str, content: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.content = list(content)


async def answer_call(
    call: Call, tools: Mapping[str, Tool], use: UseTool[Tool], ctx: NodeContext
) -> ToolMessage:
    """Run one tool call and return the message that answers it. `tools` are the model's tools by name."""
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
    """Run tool calls concurrently and return the messages that answer them, in the order of the calls."""
    return await gather(answer_call(call, tools, use, ctx) for call in calls)


def refuse_unknown(call: Call, known: Iterable[str], ctx: NodeContext) -> None:
    """Refuse the call of an unknown tool. `known` are the names of the model's tools."""
    names = list(known)
    hint = did_you_mean(call["name"], names) if names else "it has none"
    refuse(call, UnknownTool(f"the model has no tool '{call['name']}'" + (f" ({hint})" if hint else "")), ctx)


def refuse(call: Call, why: RefusedCall, ctx: NodeContext) -> None:
    """Record a call that the model requested and that cannot be made."""
    ctx.refuse(ToolCall(name=call["name"], args=call.get("args") or {}), why)


def refuse_all(calls: Sequence[Call], ctx: NodeContext) -> None:
    """Refuse the calls in the reply of a model that has no tools, with a warning that names them."""
    for call in calls:
        refuse_unknown(call, (), ctx)
    if calls:
        names = ", ".join(call["name"] for call in calls)
        ctx.warn(f"node '{ctx.name}': the model asks for tools, and it has none: {names}")


def mcp_texts(content: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the texts of the text blocks among MCP content blocks."""
    return [str(block["text"]) for block in content if block.get("type") == "text"]
