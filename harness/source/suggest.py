"""Suggestions: the known word nearest to one that is not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

_LISTED = 20
_FEW = 5
_CUTOFF = 0.6


def nearest(word: str, options: Iterable[str], *, cutoff: float = _CUTOFF) -> str | None:
    """The option most like `word`, whatever its case, or None when none is near (`cutoff`: 1 for equal only)."""
    known = sorted(set(options))
    by_lower = {option.lower(): option for option in reversed(known)}
    found = get_close_matches(word.lower(), list(by_lower), n=1, cutoff=cutoff)
    return by_lower[found[0]] if found else None


def did_you_mean(
    word: str, options: Sequence[str] | Mapping[str, Any], *, cutoff: float = _CUTOFF, listing: bool = True
) -> str:
    """A hint: `did you mean 'reply'?`, else (with `listing`) `known: a, b, c`, else an empty text.

    Options keep their order in the list, which is why no set will do; of more than 20 the first 20 are named.
    """
    known = list(dict.fromkeys(options))
    found = nearest(word, known, cutoff=cutoff)
    if found is not None:
        return f"did you mean '{found}'?"
    if not known or not listing:
        return ""
    return f"known: {', '.join(known[:_LISTED])}{', …' if len(known) > _LISTED else ''}"


def nearest_names(word: str, names: Iterable[str]) -> str:
    """A hint for names that are long, as those of scenarios: the one that is near, else a few, each on its line."""
    known = list(dict.fromkeys(names))
    found = nearest(word, known)
    if found is not None or not known:
        return f"did you mean '{found}'?" if found is not None else ""
    few = get_close_matches(word, known, n=_FEW, cutoff=0)
    more = len(known) - len(few)
    lines = ["there are:", *few, *([f"… and {more} more"] if more else [])]
    return "\n      ".join(lines)
