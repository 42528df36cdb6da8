"""A model's tool calls, and the messages that answer them.

What a model gets wrong (a tool it does not have, arguments that do not fit), and a failure that a tool reports, goes
back to it in a message. What a tool raises fails the node. The wording is LangGraph's (`engine.tool_messages`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.messages import ToolMessage

from harness.engine.tool_messages import Call, answered, bad_arguments, reported, unknown_tool
from harness.time.gather import gather

Tool = TypeVar("Tool")

UseTool = Callable[[Tool, Mapping[str, Any]], Awaitable[str | list[Any]]]
"""Runs a tool with the model's arguments. Returns the content of the answer: text, or content blocks.

Raises:
    BadArguments, ToolReportedError: see there.
"""


class BadArguments(Exception):
    """Arguments that the tool does not take; the model is told why."""


class ToolReportedError(Exception):
    """The tool itself reports that it failed; the model is told. `content` has its content blocks, if it gave any."""

    def __init__(self, message: str, content: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.content = list(content)


async def answer_call(call: Call, tools: Mapping[str, Tool], use: UseTool[Tool]) -> ToolMessage:
    """The message that answers one call. `tools` are those the model has, by name."""
    tool = tools.get(call["name"])
    if tool is None:
        return unknown_tool(call, tools)
    try:
        return answered(call, await use(tool, call["args"]))
    except BadArguments as error:
        return bad_arguments(call, error)
    except ToolReportedError as error:
        return reported(call, error.content or str(error))


async def answer_calls(
    calls: Iterable[Call], tools: Mapping[str, Tool], use: UseTool[Tool]
) -> list[ToolMessage]:
    """The messages that answer calls, in their order. The tools run side by side."""
    return await gather(answer_call(call, tools, use) for call in calls)


def mcp_texts(content: Iterable[Mapping[str, Any]]) -> list[str]:
    """The texts among MCP content blocks."""
    return [str(block["text"]) for block in content if block.get("type") == "text"]
