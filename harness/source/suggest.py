"""Did you mean …? The known word nearest to one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LISTED = 20


def nearest(word: str, options: Iterable[str]) -> str | None:
    """The option most like `word`, whatever its case, or None when none is near."""
    known = sorted(set(options))
    by_lower = {option.lower(): option for option in reversed(known)}
    found = get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """A hint: `did you mean 'reply'?`, else `known: a, b, c`, else nothing when nothing is known.

    Options keep their order in the list; of more than 20 the first 20 are named.
    """
    known = list(dict.fromkeys(options))
    found = nearest(word, known)
    if found is not None:
        return f"did you mean '{found}'?"
    if not known:
        return ""
    return f"known: {', '.join(known[:_LISTED])}{', …' if len(known) > _LISTED else ''}"
