"""Values as JSON text that every reader accepts: strict JSON and valid UTF-8."""

from __future__ import annotations

import json
from typing import Any

from harness.graph.to_json import to_json

_SETTINGS: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "default": to_json}
_compact = json.JSONEncoder(**_SETTINGS, separators=(",", ":")).encode
_indented = json.JSONEncoder(**_SETTINGS, indent=2).encode


def encode(data: Any, *, indented: bool = False) -> str:
    """JSON text of any value, converted by `to_json` where it is not JSON already; keys keep their order.

    Beyond that, lone surrogates become visible escapes.
    """
    encoder = _indented if indented else _compact
    try:
        text = encoder(data)
        text.encode()
    except (TypeError, ValueError, RecursionError):  # rare, so only then is every value looked at
        return encoder(_strict(to_json(data)))
    return text


def _strict(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_strict(key): _strict(item) for key, item in value.items()}
    return [_strict(item) for item in value] if isinstance(value, list) else value
