"""Values as JSON text that every reader accepts: strict JSON and valid UTF-8.

orjson writes plain data twenty times as fast as json does. What it would write otherwise than json (NaN as null,
objects in ways of its own) is not plain for marshal, which knows only the types of Python itself, or stands out in
what marshal writes.
"""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import orjson

from harness.graph.to_json import to_json

_SETTINGS: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "default": to_json}
_compact = json.JSONEncoder(**_SETTINGS, separators=(",", ":")).encode
_indented = json.JSONEncoder(**_SETTINGS, indent=2).encode
_NOT_FINITE: Final = re.compile(rb"[\xf0-\xff][\x7f\xff]")
"""The end of an infinity or a NaN as marshal writes it; now and then that of something else."""


def encode(data: Any, *, indented: bool = False) -> str:
    """JSON text of any value, converted by `to_json` where it is not JSON already; keys keep their order.

    Beyond that, lone surrogates become visible escapes.
    """
    if not indented and (text := _quickly(data)) is not None:
        return text
    encoder = _indented if indented else _compact
    try:
        text = encoder(data)
        text.encode()
    except (TypeError, ValueError, RecursionError):  # rare, so only then is every value looked at
        strict = _strict(to_json(data))
        # orjson where it can: whoever reads this and writes it again gets the same digits of every number.
        return (None if indented else _quickly(strict)) or encoder(strict)
    return text


def encode_each(values: Sequence[Any]) -> list[str]:
    """The JSON text of each of these values, as `encode` gives it: many small ones are looked at together."""
    if _is_plain(values):
        with suppress(TypeError):
            return [orjson.dumps(value).decode() for value in values]
    return [encode(value) for value in values]


def is_at_most(data: Any, length: int) -> bool:
    """True if the JSON text of the data has so many characters or fewer, as far as that is quickly seen."""
    try:
        return len(orjson.dumps(data)) <= length  # bytes, of which there are as many as characters or more
    except TypeError:
        return False


def _quickly(data: Any) -> str | None:
    """The JSON text by orjson; None for what it would write otherwise, or refuses.

    It refuses keys that are no texts, integers of more than 64 bits, lone surrogates, and deep nesting.
    """
    if _is_plain(data):
        with suppress(TypeError):
            return orjson.dumps(data).decode()
    return None


def _is_plain(data: Any) -> bool:
    """True if there is nothing in the data but values of Python's own types, and no infinity or NaN."""
    try:
        plain = marshal.dumps(data)
    except ValueError:
        return False
    return not (b"\x7f" in plain or b"\xff" in plain) or _NOT_FINITE.search(plain) is None


def _strict(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_strict(key): _strict(item) for key, item in value.items()}
    return [_strict(item) for item in value] if isinstance(value, list) else value
