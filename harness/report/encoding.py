"""Values as JSON text that every reader accepts: strict JSON, valid UTF-8, the same on every run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

_MAX_DEPTH = 100
_MAX_BITS = 10_000  # readers refuse integers of more than 4300 digits
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def as_json(value: Any, inside: tuple[int, ...] = ()) -> Any:
    """The value as JSON data with mapping keys sorted.

    NaN and infinities become null, lone surrogates visible escapes, sets sorted lists, and whatever else
    JSON has no form for its text (without memory addresses). What contains itself, or stands below 100
    levels, is "…".
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return int(value) if value.bit_length() < _MAX_BITS else hex(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if id(value) in inside or len(inside) >= _MAX_DEPTH:
        return "…"
    inside = (*inside, id(value))
    if isinstance(value, Mapping):
        items = {_text(key): as_json(item, inside) for key, item in value.items()}
        return dict(sorted(items.items()))
    if isinstance(value, Set):
        return sorted((as_json(item, inside) for item in value), key=encode)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [as_json(item, inside) for item in value]
    return _text(value)


def _text(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else _ADDRESS.sub("", str(value))
    except Exception:  # somebody else's __str__
        text = f"<{type(value).__name__}>"
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def encode(data: Any, *, indent: int | None = None) -> str:
    """JSON text of what `as_json` made, keys in the order they have."""
    if indent is None:
        return _encode(data)
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent)
