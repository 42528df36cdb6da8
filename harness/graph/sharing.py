"""The file format of a trace, in which values that several events contain are written once.

A conversation is sent again with every call, and one long list may be in the update of every node. Each message, and
each long list or text, becomes an event of its own, before the first event that contains it:

    shared       number, value

Events then contain `{"$shared": number}` in its place; in a list, `{"$shared": [first, last]}` stands for values with
consecutive numbers. `harness.report.traces` restores the values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from harness.graph.snapshots import LONG_LIST, LONG_TEXT
from harness.graph.to_json import MAX_DEPTH, key_text, to_json
from harness.graph.trace import Event

SHARED: Final = "$shared"
DATA: Final = frozenset({"request", "update", "value", "values", "error", "output"})
"""The fields of events that hold arbitrary data of the run. Other fields are names, numbers and short texts."""

_ROLES: Final = ("type", "role")
_SCALARS: Final = frozenset({int, bool, float, type(None)})


def with_shared(events: Sequence[Event], plain_message: Callable[[Any], Any] = to_json) -> list[Event]:
    """Return the events as JSON data, with shared values as events of their own.

    `plain_message` converts a message to JSON data; `Trace.plain_message` does so with a cache.
    """
    sharing = _Sharing(plain_message)
    for event in events:
        if DATA.isdisjoint(event):
            sharing.events.append(event)
        else:
            sharing.add(event)
    return sharing.events


class _Sharing:
    def __init__(self, plain_message: Callable[[Any], Any]) -> None:
        self._plain_message = plain_message
        self.events: list[Event] = []
        self._by_id: dict[int, tuple[Any, int]] = {}
        self._by_text: dict[str | bytes, int] = {}
        self._count = 0

    def add(self, event: Event) -> None:
        if "usage" in event and "chunks" in event["value"]:
            # Only the number of chunks is kept: a secret split over several would not be found. The text is whole.
            event = {**event, "value": {**event["value"], "chunks": len(event["value"]["chunks"])}}
        shared = {
            key: self._value(item, 0)
            for key, item in event.items()
            if key in DATA and type(item) not in _SCALARS
        }
        self.events.append({**event, **shared} if shared else event)

    def _value(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _SCALARS:
            return value
        if kind is str:
            return value if len(value) < LONG_TEXT else {SHARED: self._known(value) or self._share(value)}
        if depth > MAX_DEPTH:
            return to_json(value)
        if kind is dict:
            if _is_message(value) or SHARED in value:
                return {SHARED: self._message(value)}
            return {key_text(key): self._value(item, depth + 1) for key, item in value.items()}
        if kind is list or kind is tuple:
            return self._list(value, depth)
        if hasattr(value, "content") and hasattr(value, "type"):
            return {SHARED: self._message(value)}
        return to_json(value)

    def _list(self, value: Sequence[Any], depth: int) -> Any:
        if len(value) >= LONG_LIST and not _is_conversation(value):
            return {SHARED: self._known(value) or self._share(value)}
        items: list[Any] = []
        for item in value:
            plain = self._value(item, depth + 1)
            if type(plain) is not dict or SHARED not in plain:
                items.append(plain)
                continue
            number = plain[SHARED]
            before = items[-1][SHARED] if items and type(items[-1]) is dict and SHARED in items[-1] else None
            if before is not None and before[1] + 1 == number:
                before[1] = number
            else:
                items.append({SHARED: [number, number]})
        return items

    def _message(self, value: Any) -> int:
        known = self._known(value)
        if known:
            return known
        plain = value if type(value) is dict else self._plain_message(value)
        text = _text_of(plain)
        number = self._by_text.get(text)
        if number is None:
            number = self._by_text[text] = self._share(plain)
        self._by_id[id(value)] = (value, number)
        return number

    def _known(self, value: Any) -> int:
        """Return the number of a value that was shared before, else 0."""
        found = self._by_id.get(id(value))
        return found[1] if found is not None else 0

    def _share(self, value: Any) -> int:
        self._count += 1
        self._by_id[id(value)] = (value, self._count)
        self.events.append({"event": "shared", "number": self._count, "value": value})
        return self._count


def _is_message(value: Mapping[Any, Any]) -> bool:
    return "content" in value and any(role in value for role in _ROLES)


def _is_conversation(value: Sequence[Any]) -> bool:
    """True for a list of messages. It grows with every call, so its messages are shared and not the list."""
    first = value[0]
    return _is_message(first) if type(first) is dict else hasattr(first, "content") and hasattr(first, "type")


def _text_of(plain: Any) -> str | bytes:
    """Return JSON text to compare values by, made by orjson if it can, which is faster."""
    try:
        return orjson.dumps(plain)
    except TypeError:
        return _text(plain)


_text = json.JSONEncoder(ensure_ascii=False, default=to_json).encode
