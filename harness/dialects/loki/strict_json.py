"""A strict JSON parser, which like serde_json refuses texts that Python's parser accepts."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

from harness.graph.to_json import MAX_DEPTH
from harness.source.display import clip

_TOO_DEEP: Final = f"nested more than {MAX_DEPTH} levels deep"
_SHOWN: Final = 20  # characters of a text in messages
_INTEGERS: Final = range(-(2**63), 2**64)  # i64 and u64
_MAX_DIGITS: Final = 20  # characters of such an integer, the sign included
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def parse_json(text: str) -> Any:
    """Parse a JSON text.

    Raises:
        ValueError: the text is not JSON, or it has `NaN` or an infinite or too large number, half of a surrogate
            pair, or more than `MAX_DEPTH` levels of nesting. The message has the reason, and for a syntax error the
            position.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_parse_float, parse_int=_parse_integer)
    except json.JSONDecodeError as error:
        raise ValueError(_error_message(text, error)) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_too_deep(value):
        raise ValueError(_TOO_DEEP)
    if "\\u" in text and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("half of a surrogate pair in a text")
    return value


def _is_too_deep(value: Any) -> bool:
    """True if lists and mappings are nested more than `MAX_DEPTH` levels deep. Traces would cut the rest off."""
    level: list[Any] = [[value]]
    for _ in range(MAX_DEPTH + 1):
        level = [
            part
            for held in level
            for part in (held.values() if isinstance(held, dict) else held)
            if isinstance(part, dict | list)
        ]
    return bool(level)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _parse_float(written: str) -> float:
    value = float(written)
    if math.isinf(value):
        raise ValueError(f"the number {clip(written, _SHOWN)} is too large")
    return value


def _parse_integer(written: str) -> int | float:
    """Return an integer; as in serde_json a floating-point number if it does not fit into 64 bits."""
    if len(written) <= _MAX_DIGITS and (value := int(written)) in _INTEGERS:
        return value
    return _parse_float(written)


def _error_message(text: str, error: json.JSONDecodeError) -> str:
    """Describe a syntax error and its position."""
    if text.startswith("\ufeff"):
        return "it begins with a byte order mark"
    rest = text[error.pos :]
    what = f"{clip(rest, _SHOWN)!r} is unexpected" if rest else "the end is missing"
    return f"line {error.lineno}, column {error.colno}: {what}"
