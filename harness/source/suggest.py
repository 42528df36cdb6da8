"""Suggestions: the known word nearest to one that is not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

_LISTED = 20
_FEW = 5
_CUTOFF = 0.6
_SURE = 0.75


def nearest(word: str, options: Iterable[str], *, cutoff: float = _CUTOFF) -> str | None:
    """The option most like `word`, whatever its case, or None when none is near (`cutoff`: 1 for equal only)."""
    known = sorted(set(options))
    by_lower = {option.lower(): option for option in reversed(known)}
    found = get_close_matches(word.lower(), list(by_lower), n=_FEW, cutoff=cutoff)
    return next((by_lower[option] for option in found if _likely(word.lower(), option)), None)


def _likely(word: str, option: str) -> bool:
    """A slip seldom changes the first letter: `path` is not `repeat`. Of words that are much alike it may."""
    if word[:1] == option[:1] or word in option or option in word:
        return True
    return bool(get_close_matches(word, [option], n=1, cutoff=_SURE))


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
