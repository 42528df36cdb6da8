"""Tool messages that answer a model's tool calls, with the texts of LangGraph's tool node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import ToolMessage

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
