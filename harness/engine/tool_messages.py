"""The messages that answer a model's tool calls, in the words of LangGraph's own tool node, whatever the dialect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import ToolMessage

Call = Mapping[str, Any]
"""A tool call of an ai message: {name, args, id}."""


def answered(call: Call, content: str | list[Any]) -> ToolMessage:
    """What the tool gave back."""
    return ToolMessage(content=content, name=call["name"], tool_call_id=call["id"], status="success")


def reported(call: Call, content: str | list[Any]) -> ToolMessage:
    """What the tool said of its failure."""
    return _failed(call, content)


def unknown_tool(call: Call, names: Iterable[str]) -> ToolMessage:
    """The model asked for a tool it does not have. `names` are those it has."""
    from langgraph.prebuilt.tool_node import INVALID_TOOL_NAME_ERROR_TEMPLATE as TEMPLATE

    return _failed(call, TEMPLATE.format(requested_tool=call["name"], available_tools=", ".join(names)))


def bad_arguments(call: Call, why: object) -> ToolMessage:
    """The model's arguments are not those the tool takes."""
    from langgraph.prebuilt.tool_node import TOOL_INVOCATION_ERROR_TEMPLATE as TEMPLATE

    return _failed(call, TEMPLATE.format(tool_name=call["name"], tool_kwargs=call["args"], error=why))


def _failed(call: Call, content: str | list[Any]) -> ToolMessage:
    return ToolMessage(content=content, name=call["name"], tool_call_id=call["id"], status="error")
