"""Serialization of values as Loki does it: compact JSON, with numbers formatted like serde_json.

spec: "Graph state is a `serde_json::Value` map", "Rendering rules per value type".
"""

from __future__ import annotations

import re
from typing import Any, Final

from harness.graph.to_json import compact_json

_EXPONENT: Final = re.compile(r"\de[+-]\d")
_NUMBER: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(\d)(?:\.(\d+))?e([+-]\d+)')
_LOWEST_DECIMAL: Final = -5  # serde_json writes 0.00001 without an exponent, Python 1e-05


def json_text(value: Any) -> str:
    """Return a value as compact JSON. Only number exponents differ from Python's: `1e20`, not `1e+20`."""
    text = compact_json(value)
    return _NUMBER.sub(_as_serde, text) if _EXPONENT.search(text) else text


def text_of(value: Any) -> str:
    """Return text as it is, and any other value as compact JSON."""
    return value if isinstance(value, str) else json_text(value)


def _as_serde(found: re.Match[str]) -> str:
    """Reformat a number with an exponent; return a string literal, which the pattern also matches, as it is."""
    if found[3] is None:
        return found[0]
    digit, decimals, exponent = found[1], found[2] or "", int(found[3])
    if exponent == _LOWEST_DECIMAL:
        return f"0.{'0' * (-exponent - 1)}{digit}{decimals}"
    return f"{digit}.{decimals}e{exponent}" if decimals else f"{digit}e{exponent}"
