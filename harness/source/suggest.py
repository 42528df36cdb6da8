"""Suggestions for misspelled words: the nearest known one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

_LISTED = 20
_FEW = 5
_CUTOFF = 0.6
_SURE = 0.75


def nearest(word: object, options: Iterable[object], *, cutoff: float = _CUTOFF) -> str | None:
    """Return the option most similar to `word`, ignoring case, or None if none is similar enough.

    All are compared as texts, since keys of YAML may be numbers. `cutoff` is the least similarity; with 1, only
    equal words match.
    """
    known = sorted({str(option) for option in options})
    by_lower = {option.lower(): option for option in reversed(known)}
    sought = str(word).lower()
    found = get_close_matches(sought, list(by_lower), n=_FEW, cutoff=cutoff)
    return next((by_lower[option] for option in found if _likely(sought, option)), None)


def _likely(word: str, option: str) -> bool:
    """True if an option is a plausible suggestion: it has the same first letter, or is very similar."""
    if word[:1] == option[:1] or word in option or option in word:
        return True
    return bool(get_close_matches(word, [option], n=1, cutoff=_SURE))


def did_you_mean(
    word: object,
    options: Sequence[object] | Mapping[Any, Any],
    *,
    cutoff: float = _CUTOFF,
    listing: bool = True,
) -> str:
    """Return a hint: `did you mean 'reply'?`, else (with `listing`) `known: a, b, c`, else "".

    The list has at most 20 options, in the order given (so do not pass a set).
    """
    known = list(dict.fromkeys(map(str, options)))
    found = nearest(word, known, cutoff=cutoff)
    if found is not None:
        return f"did you mean '{found}'?"
    if not known or not listing:
        return ""
    return f"known: {', '.join(known[:_LISTED])}{', …' if len(known) > _LISTED else ''}"


def nearest_names(word: str, names: Iterable[str]) -> str:
    """Return a hint for long names, such as those of scenarios: the nearest, else a few, one per line."""
    known = list(dict.fromkeys(names))
    found = nearest(word, known)
    if found is not None or not known:
        return f"did you mean '{found}'?" if found is not None else ""
    few = get_close_matches(word, known, n=_FEW, cutoff=0)
    more = len(known) - len(few)
    lines = ["there are:", *few, *([f"… and {more} more"] if more else [])]
    return "\n      ".join(lines)
