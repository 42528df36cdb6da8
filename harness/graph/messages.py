"""Conversations: LangChain messages in the state, and as plain data.

`MessageLog` is the value of a messages channel. Appending to it is O(1) and leaves older views unchanged, so a step
takes the same time in a conversation of a thousand messages as in one of ten (LangGraph's `add_messages` copies and
re-coerces the whole list at every step).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import islice
from typing import Any, overload

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from pydantic import ValidationError

from harness.errors import HarnessError

ROLES: Mapping[str, type[BaseMessage]] = {
    "human": HumanMessage,
    "user": HumanMessage,
    "ai": AIMessage,
    "assistant": AIMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
}


FIELDS = frozenset(
    {"name", "id", "tool_calls", "tool_call_id", "status", "additional_kwargs", "response_metadata"}
)
"""The fields of a message given as a mapping, besides role and content. Others are dropped."""


class NotAMessage(HarnessError, ValueError):
    """A value that cannot be converted to a message."""

    code = "not-a-message"


class MessageLog(Sequence[BaseMessage]):
    """An immutable view of an append-only list of messages. Several views share one list."""

    __slots__ = ("_items", "_length", "_positions")

    def __init__(self, messages: Sequence[BaseMessage] = ()) -> None:
        self._items: list[BaseMessage] = list(messages)
        self._length = len(self._items)
        self._positions: dict[str, int] = {m.id: i for i, m in enumerate(self._items) if m.id}

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> BaseMessage: ...

    @overload
    def __getitem__(self, index: slice) -> list[BaseMessage]: ...

    def __getitem__(self, index: int | slice) -> BaseMessage | list[BaseMessage]:
        if isinstance(index, slice):
            return self._items[: self._length][index]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._items[index % self._length]

    def __iter__(self) -> Iterator[BaseMessage]:
        return islice(self._items, self._length)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Sequence[BaseMessage]) -> list[BaseMessage]:
        return [*self, *other]

    def __repr__(self) -> str:
        return f"MessageLog({list(self)!r})"

    def merged(self, new: Sequence[BaseMessage]) -> MessageLog:
        """Return this log with `new` appended. A message with a known id replaces the old one in its place.

        The rule is that of LangGraph's `add_messages`, `RemoveMessage` included.
        """
        if not new:
            return self
        end = self._length + len(new)
        ahead = self._items[self._length : end]
        if len(ahead) == len(new) and all(one is other for one, other in zip(ahead, new, strict=True)):
            # The same messages were appended to a copy of this view before: LangGraph does so to show the
            # edges after a node its updates.
            return self._view(end)
        ids = [message.id for message in new if message.id is not None]
        if (
            ahead
            or len(set(ids)) < len(ids)
            or any(isinstance(message, RemoveMessage) or message.id in self._positions for message in new)
        ):
            return self._rewritten(new)
        for message in new:
            if message.id is not None:
                self._positions[message.id] = len(self._items)
            self._items.append(message)
        return self._view(end)

    def _view(self, length: int) -> MessageLog:
        view = MessageLog.__new__(MessageLog)
        view._items, view._positions, view._length = self._items, self._positions, length
        return view

    def _rewritten(self, new: Sequence[BaseMessage]) -> MessageLog:
        by_id: dict[object, BaseMessage] = {message.id or object(): message for message in self}
        for message in new:
            if not isinstance(message, RemoveMessage):
                by_id[message.id or object()] = message
            elif message.id == "__remove_all__":
                by_id.clear()
            else:
                by_id.pop(message.id, None)
        return MessageLog(list(by_id.values()))


def append_messages(left: MessageLog, right: Sequence[BaseMessage]) -> MessageLog:
    """Append messages to a log: the reducer of a messages channel. A log written to an empty one replaces it."""
    if not left and isinstance(right, MessageLog):
        return right
    return left.merged(right)


def to_message(value: Any) -> BaseMessage:
    """Return a message, given a message, a text (human), or a mapping with `content` and a `role` or `type`.

    Raises:
        NotAMessage: the value is none of these.
    """
    if isinstance(value, BaseMessage):
        return value
    if isinstance(value, str):
        return HumanMessage(content=value)
    if not isinstance(value, Mapping):
        raise NotAMessage(f"not a message: {value!r} (a text, or a mapping with 'role' and 'content')")
    fields = dict(value)
    alias = fields.pop("type", None)
    role = fields.pop("role", alias)
    message_class = ROLES.get(str(role))
    if message_class is None:
        known = ", ".join(ROLES)
        raise NotAMessage(f"not a message: role {role!r} is not one of {known}")
    if "content" not in fields:
        raise NotAMessage(f"not a message: {value!r} has no 'content'")
    content = fields.pop("content")
    # A field that a message lacks is null, or false in sherma's CEL.
    fields = {key: item for key, item in fields.items() if key in FIELDS and item not in (None, False)}
    if isinstance(fields.get("tool_calls"), list):
        fields["tool_calls"] = [
            {"id": None, **call} if isinstance(call, Mapping) else call for call in fields["tool_calls"]
        ]
    try:
        return message_class(content="" if content is None else content, **fields)
    except (TypeError, ValueError) as error:
        raise NotAMessage(f"not a message: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    """Return the error's text, without the documentation links that pydantic adds."""
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
    return str(error)


def to_messages(value: Any) -> list[BaseMessage]:
    """Return messages, given a list of values for `to_message`, one such value, or None for no messages."""
    if value is None:
        return []
    if isinstance(value, (list, tuple, MessageLog)):
        return [to_message(item) for item in value]
    return [to_message(value)]


def message_text(message: BaseMessage) -> str:
    """Return the text of a message. The texts of content blocks are joined; blocks without text are skipped."""
    if isinstance(message.content, str):
        return message.content
    blocks = (block if isinstance(block, str) else block.get("text", "") for block in message.content)
    return "".join(str(text) for text in blocks)


def message_json(message: BaseMessage) -> dict[str, Any]:
    """Return a message as JSON data for scenarios and results: type, content, name, tool_calls, …

    Fields that do not apply to the type of the message are left out.
    """
    plain: dict[str, Any] = {"type": message.type, "content": message.content}
    if message.name is not None:
        plain["name"] = message.name
    if isinstance(message, AIMessage):
        plain["tool_calls"] = [
            {"name": call["name"], "args": call["args"], "id": call["id"]} for call in message.tool_calls
        ]
    if isinstance(message, ToolMessage):
        plain["tool_call_id"] = message.tool_call_id
        if message.status == "error":
            plain["status"] = message.status
    plain["additional_kwargs"] = message.additional_kwargs
    if message.id is not None:
        plain["id"] = message.id
    return plain


class MessageViews(Sequence[Mapping[str, Any]]):
    """Messages as `when` reads them: mappings as in the state, plus `role` for `type`. Converted on access.

    The mappings are copies, which the functions of stubs may change.
    """

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        if isinstance(index, slice):
            return MessageViews(self._messages[index])
        message = self._messages[index]
        return {**deepcopy(message_json(message)), "role": message.type}
