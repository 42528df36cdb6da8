"""Searching text with a regular expression of a scenario or a schema, in linear time where that changes nothing.

Patterns are Python's. Its engine may take exponential time (`(a+)+$`), RE2 never does, and in ASCII text both find
the same, but for a few signs. So RE2 searches where none of those is in the way, and `re` everywhere else: there a
run's limit of real time ends a search that never would.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

_MEANS_SOMETHING_ELSE: Final = re.compile(r"\$|\\B|\{,|\[\[|\[\^?\[:|[^\x00-\x7f]")
"""In a pattern: `$` before a last line break, `\\B` in empty text, `{,3}`, POSIX classes, other letters."""
_BY_LINES: Final = re.compile(r"\(\?[a-zA-Z]*m")
_LAST_DOLLAR: Final = re.compile(r"(?<!\\)((?:\\\\)*)\$\Z")
_UNLIKE: Final = re.compile(r"[^\x00-\x7f]|[\x0b\x1c-\x1f]")
"""In a text: what is a letter, a digit or a blank for `re` alone."""


@lru_cache(maxsize=256)
def searcher(pattern: str) -> Callable[[str], bool]:
    """Whether this pattern is found anywhere in a text.

    Raises:
        re.error: it is not a pattern of Python's `re`.
    """
    search = re.compile(pattern).search
    linear = _linear(pattern)
    if linear is None:
        return lambda text: search(text) is not None
    return lambda text: (search(text) if _UNLIKE.search(text) else linear.search(text)) is not None


def _linear(pattern: str) -> Any:
    """The pattern for RE2; None where it does not know it, or takes it for something else."""
    # `$` is the end of the text for RE2, and may stand before a last line break for `re`.
    exact = pattern if _BY_LINES.search(pattern) else _LAST_DOLLAR.sub(r"\1(?:\n?\\z)", pattern)
    if _MEANS_SOMETHING_ELSE.search(exact):
        return None
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False  # it would print past Python
    try:
        return re2.compile(exact, options)
    except re2.error:
        return None
