"""Shortening of material that is too long to send: long texts and lists lose their middle, with a note."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

MAX_LENGTH: Final = 60_000
"""Maximum length of each part of the material, in characters of JSON."""
_STEPS: Final = ((50_000, 1_000), (20_000, 200), (4_000, 100), (1_000, 50), (200, 20))
"""Limits to try in order: characters kept of a text, and items kept of a list or mapping."""
_MAX_DEPTH: Final = 60


class Cut(NamedTuple):
    """A shortened part of the material, and its length in characters of JSON before and after."""

    part: str
    before: int
    after: int

    def __str__(self) -> str:
        return f"{self.after:,} of {self.before:,} characters of '{self.part}'"


def shorten(part: str, value: Any, cuts: list[Cut]) -> Any:
    """Return the value, shortened if it is longer than the maximum; then also append to `cuts`."""
    before = _length(value)
    if before <= MAX_LENGTH:
        return value
    kept = value
    for text, items in _STEPS:
        kept = _shorten(value, text, items, _MAX_DEPTH)
        if _length(kept) <= MAX_LENGTH:
            break
    else:  # deeply nested with many long keys: both ends, as text
        kept = _shorten_text(json.dumps(kept, ensure_ascii=False, default=str), MAX_LENGTH // 2)
    cuts.append(Cut(part, before, _length(kept)))
    return kept


def _length(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=str))


def _shorten(value: Any, text: int, items: int, depth: int) -> Any:
    if isinstance(value, str):
        return _shorten_text(value, text)
    if not depth:
        return _shorten_text(str(value), text)
    if isinstance(value, Mapping):
        kept = {key: _shorten(value[key], text, items, depth - 1) for key in list(value)[:items]}
        left = len(value) - len(kept)
        return kept if not left else {**kept, "…": f"{left} more keys left out"}
    if isinstance(value, list | tuple):
        if len(value) <= items:
            return [_shorten(item, text, items, depth - 1) for item in value]
        half = items // 2
        ends = [
            [_shorten(item, text, items, depth - 1) for item in end] for end in (value[:half], value[-half:])
        ]
        return [*ends[0], f"… {len(value) - 2 * half} items left out …", *ends[1]]
    return value


def _shorten_text(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}… {len(text) - 2 * half} characters left out …{text[-half:]}"
