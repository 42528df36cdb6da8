"""The messages that answer a model's tool calls, in the same words whatever the dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage

Call = Mapping[str, Any]
"""A tool call of an ai message: {name, args, id}."""


def answered(call: Call, content: str | list[Any]) -> ToolMessage:
    """What the tool gave back."""
    return ToolMessage(content=content, name=call["name"], tool_call_id=call["id"], status="success")


def reported(call: Call, error: Exception) -> ToolMessage:
    """The tool says that it failed, and the model is to know."""
    return _failed(call, f"Error: {error}")


def unknown_tool(call: Call, hint: str) -> ToolMessage:
    """The model asked for a tool it does not have. `hint` names those it has, or the one it may have meant."""
    return _failed(call, f"Error: {call['name']} is not a valid tool" + (f" ({hint})." if hint else "."))


def bad_arguments(call: Call, why: object) -> ToolMessage:
    """The model's arguments are not those the tool takes."""
    text = f"Error: the arguments of tool '{call['name']}' do not fit: {why}. Please fix them and try again."
    return _failed(call, text)


def _failed(call: Call, text: str) -> ToolMessage:
    return ToolMessage(content=text, name=call["name"], tool_call_id=call["id"], status="error")
