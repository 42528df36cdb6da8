"""JSON as its standard has it, which Python's parser is more lenient than."""

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
_MOST_DIGITS: Final = 20  # of one of them, its sign counted
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def parse_json(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is not JSON, has a number that is none (`NaN`) or too large, half of a surrogate pair, or is
            nested more deeply than values are kept. The message says so, and where.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise ValueError(_unexpected(text, error)) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_too_deep(value):
        raise ValueError(_TOO_DEEP)
    if "\\u" in text and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("half of a surrogate pair in a text")
    return value


def _is_too_deep(value: Any) -> bool:
    """True if lists and mappings stand in each other more than `MAX_DEPTH` levels deep: the rest would be cut off."""
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


def _finite(written: str) -> float:
    value = float(written)
    if math.isinf(value):
        raise ValueError(f"the number {clip(written, _SHOWN)} is too large")
    return value


def _integer(written: str) -> int | float:
    """A whole number; as in serde_json a floating-point number if it does not fit into 64 bits."""
    if len(written) <= _MOST_DIGITS and (value := int(written)) in _INTEGERS:
        return value
    return _finite(written)


def _unexpected(text: str, error: json.JSONDecodeError) -> str:
    """Where a text stops being JSON."""
    if text.startswith("\ufeff"):
        return "a byte order mark stands before it"
    rest = text[error.pos :]
    what = f"{clip(rest, _SHOWN)!r} is unexpected" if rest else "the end is missing"
    return f"line {error.lineno}, column {error.colno}: {what}"
