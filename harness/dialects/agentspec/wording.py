"""Phrases that messages of several rules share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from harness.source.suggest import did_you_mean


def quoted_list(names: Iterable[str]) -> str:
    """Return names in quotes, separated by commas; "none" if there are none."""
    return ", ".join(f"'{name}'" for name in names) or "none"


def none_suffix(known: Collection[str]) -> str:
    """Return the end of a message if there is nothing to suggest, else ""."""
    return "" if known else ", as it has none"


_KINDS: Final = ("Node", "Tool", "Config", "Transport", "Agent", "Edge")
_MISSPELLING_CUTOFF: Final = 0.8


def nearest_type(word: str, known: Sequence[str]) -> str:
    """Return a hint for an unknown component type: a similar one, else all of its kind."""
    kind = next((kind for kind in _KINDS if word.endswith(kind)), "")
    return did_you_mean(word, [name for name in known if name.endswith(kind)], cutoff=_MISSPELLING_CUTOFF)
