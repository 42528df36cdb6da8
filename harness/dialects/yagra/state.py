"""The state of a workflow: its keys and their reducers.

spec: "State Schema". Without a schema the state is a plain mapping that keeps every key (an open state).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import convert_to_messages

from harness.dialects.kit.tool_calls import NewId, ensure_id
from harness.dialects.yagra.document import ERROR, StateField, Workflow
from harness.errors import HarnessError
from harness.graph.messages import MessageLog, append_messages
from harness.graph.model import Channel
from harness.source.models import describe


class BadState(HarnessError):
    """A value that the reducer of a key cannot merge."""

    code = "bad-state"


class StateKeys:
    """The keys that the state of a workflow keeps: the declared ones, or all if `is_open`."""

    def __init__(self, workflow: Workflow) -> None:
        self.fields = workflow.state_schema
        self.is_open = not self.fields
        has_fallback = any(node.fallback is not None for node in workflow.nodes)
        self._keeps_error = has_fallback and not self.is_open and ERROR not in self.fields

    def channels(self) -> tuple[Channel, ...]:
        """Return the channels of the declared keys, and one for the error if a node has a fallback."""
        channels = [_channel(name, field) for name, field in self.fields.items()]
        if self._keeps_error:
            channels.append(Channel(ERROR, reducer=_replace))
        return tuple(channels)

    def kept(self, values: Mapping[str, Any], new_id: NewId) -> dict[str, Any]:
        """Return the values that the state keeps, prepared for its reducers.

        Raises:
            BadState: the reducer of a key cannot merge its value.
        """
        if self.is_open:
            return dict(values)
        return {
            name: _prepared(name, field, values[name], new_id)
            for name, field in self.fields.items()
            if name in values
        }

    def dropped(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that the state does not keep. Only the edges after a node see them."""
        if self.is_open:
            return {}
        return {key: value for key, value in values.items() if key not in self.fields and key != ERROR}


def _channel(name: str, field: StateField) -> Channel:
    if field.type == "messages":
        return Channel(name, _merge_messages, MessageLog)
    return Channel(name, _append, list) if field.is_reduced_list else Channel(name)


def _prepared(name: str, field: StateField, value: Any, new_id: NewId) -> Any:
    if field.type == "messages":
        return _messages(name, value, new_id)
    if field.is_reduced_list and not isinstance(value, list):
        raise BadState(f"'{name}' appends lists (reducer: add): expected a list, found {describe(value)}")
    return value


def _messages(name: str, value: Any, new_id: NewId) -> Any:
    """Convert one or a list of `{role, content}`, `(role, text)`, text or messages to messages with ids."""
    if isinstance(value, MessageLog):
        return value
    try:
        messages = convert_to_messages(value if isinstance(value, list) else [value])
    except (NotImplementedError, ValueError, TypeError, KeyError) as error:
        raise BadState(f"'{name}' takes messages: {str(error).splitlines()[0]}") from error
    return [ensure_id(message, new_id) for message in messages]


def _append(old: list[Any], new: list[Any]) -> list[Any]:
    return [*old, *new]


def _merge_messages(old: MessageLog, new: Any) -> MessageLog:
    """Append messages. A node usually writes back the unchanged log, which needs no work."""
    return old if new is old else append_messages(old, new)


def _replace(_old: Any, new: Any) -> Any:
    return new
