"""Any value as plain JSON data: what traces, results and reports are made of."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence, Set
from enum import Enum
from typing import Any

MAX_DEPTH = 100


def plain(value: Any, depth: int = 0) -> Any:
    """The value as JSON data, a snapshot that shares nothing mutable with it.

    Messages become mappings (`message_json`); dataclasses, models and other objects mappings of their
    public fields; sets sorted lists; what has no such form its type's name in angle brackets. Values
    nested deeper than 100 levels, cycles among them, end in "…".
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Set):
        return sorted((plain(item, depth + 1) for item in value), key=repr)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [plain(item, depth + 1) for item in value]
    return _plain_object(value, depth)


def _plain_object(value: Any, depth: int) -> Any:
    from langchain_core.messages import BaseMessage

    from harness.graph.messages import message_json

    if isinstance(value, BaseMessage):
        return plain(message_json(value), depth + 1)
    if isinstance(value, Enum):
        return plain(value.value, depth + 1)
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, type):
        return f"<{value.__name__}>"
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(), depth + 1)
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return plain(fields, depth + 1)
    if hasattr(value, "__dict__"):
        public = {key: item for key, item in vars(value).items() if not key.startswith("_")}
        return plain(public, depth + 1)
    return f"<{type(value).__name__}>"
