"""Replaces parts of secrets that are left where a text was cut.

A cut is marked by an ellipsis, as by `harness.source.display.clip`. Parts shorter than the minimal length of a secret
are not replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness.secrets.placeholders import placeholder
from harness.secrets.policy import MIN_LENGTH

_CUT: Final = "…"


def without_cut_values(value: Any, names: Mapping[str, str]) -> Any:
    """Return JSON data without parts of secrets beside cuts; the same object if nothing changes.

    `names` maps each secret to its name.
    """
    if isinstance(value, str):
        return _scrubbed(value, names) if _CUT in value else value
    if isinstance(value, dict):
        kept = {key: without_cut_values(item, names) for key, item in value.items()}
        return kept if any(kept[key] is not item for key, item in value.items()) else value
    if isinstance(value, list):
        items = [without_cut_values(item, names) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def _scrubbed(text: str, names: Mapping[str, str]) -> str:
    pieces = text.split(_CUT)
    for at, piece in enumerate(pieces):
        kept = piece
        if at < len(pieces) - 1:
            size, name = max((_overlap(kept, secret), name) for secret, name in names.items())
            kept = kept[: len(kept) - size] + placeholder(name) if size else kept
        if at > 0:
            size, name = max((_overlap(secret, kept), name) for secret, name in names.items())
            kept = placeholder(name) + kept[size:] if size else kept
        pieces[at] = kept
    scrubbed = _CUT.join(pieces)
    return text if scrubbed == text else scrubbed


def _overlap(text: str, other: str) -> int:
    """Return the length of the longest suffix of `text` that is a prefix of `other`; 0 if it is too short."""
    start = other[:MIN_LENGTH]
    at = text.find(start, max(len(text) - len(other), 0)) if len(start) == MIN_LENGTH else -1
    while at >= 0:
        if other.startswith(text[at:]):
            return len(text) - at
        at = text.find(start, at + 1)
    return 0
