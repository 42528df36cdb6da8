"""Replaces ids that differ from run to run by ordinals, so that requests can be compared.

Each id becomes `<id N>`, numbered by first appearance, so that it still matters which reply belongs to which call.
In conversations with models and in JSON-RPC, all ids of calls and messages and all UUIDs are replaced. In other
bodies an id may be part of the question, so only ids of requests and traces are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

_MAX_DEPTH: Final = 200  # deeper JSON is compared as text

_HEX: Final = "[0-9a-fA-F]"
_UUID: Final = re.compile(rf"(?<![0-9A-Za-z]){_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}(?![0-9A-Za-z])")
_LIKE_UUID: Final = re.compile(rf"-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}")
_LIKE_UUID_BYTES: Final = re.compile(_LIKE_UUID.pattern.encode())

_WORDS: Final = ("tool_call", "call", "tool_use", "request", "client_request", "trace", "span", "message")
_ALWAYS: Final = frozenset(
    [f"{word}_id" for word in _WORDS]
    + ["toolCallId", "callId", "toolUseId", "requestId", "traceId", "spanId", "messageId"]
)
_GENERATED: Final = re.compile(r"(?:call|toolu|chatcmpl|msg|resp|fc|rs|run|lc_run)[_-][\w-]{6,}")
_CONVERSATION: Final = re.compile("function|tool|call|message|reasoning|item", re.IGNORECASE)


# Top-level keys that only conversations and JSON-RPC have.
_CONVERSATION_KEYS: Final = frozenset({"messages", "input", "contents", "prompt", "jsonrpc"})
_TRACE_KEYS: Final = frozenset(
    ["request_id", "client_request_id", "trace_id", "span_id", "requestId", "traceId", "spanId"]
)


def without_ids(value: Any, body: bytes) -> Any:
    """Return parsed JSON with its variable ids replaced. Lists and mappings are changed in place.

    Args:
        value: the parsed JSON.
        body: its text.

    Raises:
        RecursionError: nested more than 200 levels deep.
    """
    if isinstance(value, dict) and _CONVERSATION_KEYS.intersection(value):
        return _IdReplacer(_is_id, has_uuids=_LIKE_UUID_BYTES.search(body) is not None).replace(value)
    return _IdReplacer(lambda key, item, _: key in _TRACE_KEYS and isinstance(item, str)).replace(value)


class _IdReplacer:
    """Replaces ids by `<id 1>`, `<id 2>` …, in the order of appearance with keys sorted."""

    def __init__(self, is_id: Callable[[str, Any, dict[str, Any]], bool], *, has_uuids: bool = False) -> None:
        self._is_id = is_id
        self._seen: dict[Any, str] = {}
        self._has_uuids = has_uuids

    def replace(self, value: Any, depth: int = 0) -> Any:
        """Return the value with its ids replaced. Lists and mappings are changed in place."""
        if depth > _MAX_DEPTH:
            raise RecursionError
        if isinstance(value, str):
            return self._without_uuids(value) if self._has_uuids and len(value) >= 36 else value
        if isinstance(value, list):
            for at, item in enumerate(value):
                if not isinstance(item, int):
                    value[at] = self.replace(item, depth + 1)
        elif isinstance(value, dict):
            for key in sorted(value):
                item = value[key]
                if self._is_id(key, item, value):
                    value[key] = self._ordinal(item)
                else:
                    value[key] = self.replace(item, depth + 1)
        return value

    def _ordinal(self, given: Any) -> str:
        return self._seen.setdefault(given, f"<id {len(self._seen) + 1}>")

    def _without_uuids(self, text: str) -> str:
        if _LIKE_UUID.search(text) is None:  # much faster than the substitution
            return text
        return _UUID.sub(lambda found: self._ordinal(found[0].lower()), text)


def _is_id(key: str, value: Any, holder: dict[str, Any]) -> bool:
    """Return True if `holder[key]` is an id that may differ from run to run.

    A value under `id` may also be part of the question, as in `{"id": 42}` for a customer. It is an id if the other
    keys are those of a message or of JSON-RPC, or if it looks generated.
    """
    if key in _ALWAYS:
        return isinstance(value, str) and bool(value)
    if key != "id":
        return False
    if "jsonrpc" in holder:
        return isinstance(value, str | int)
    if not isinstance(value, str) or not value:
        return False
    kind = holder.get("type", holder.get("kind"))
    return (
        "role" in holder
        or "function" in holder
        or (isinstance(kind, str) and _CONVERSATION.search(kind) is not None)
        or _GENERATED.fullmatch(value) is not None
        or _UUID.fullmatch(value) is not None
    )
