"""Words that messages of several rules share."""

from __future__ import annotations

from collections.abc import Collection, Iterable


def listed(names: Iterable[str]) -> str:
    """Names in quotes, or "none"."""
    return ", ".join(f"'{name}'" for name in names) or "none"


def none_at_all(known: Collection[str]) -> str:
    """Where there is nothing to suggest."""
    return "" if known else ", as it has none"
