"""Search with regular expressions of scenarios and schemas, in linear time where that gives the same result.

The syntax is that of Python's `re`, which may take exponential time (`(a+)+$`). RE2 never does, and both agree on
ASCII text, except for a few constructs. RE2 is therefore used for patterns and texts without those, and `re` for all
others; a search of `re` that does not end is stopped by the run's limit of real time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final

_PATTERN_DIFFERS_IN_RE2: Final = re.compile(r"\$|\\B|\{,|\[\[|\[\^?\[:|[^\x00-\x7f]")
r"""Parts of a pattern that RE2 reads differently: `$` before a last line break, `\B` in an empty text, `{,3}`,
POSIX classes, and letters that are not ASCII.
"""
_MULTILINE: Final = re.compile(r"\(\?[a-zA-Z]*m")
_LAST_DOLLAR: Final = re.compile(r"(?<!\\)((?:\\\\)*)\$\Z")
_WILDCARD: Final = re.compile(r"[*?\[]")
_TEXT_DIFFERS_IN_RE2: Final = re.compile(r"[^\x00-\x7f]|[\x0b\x1c-\x1f]")
"""Characters of a text that only `re` takes for a letter, a digit or white space."""


@lru_cache(maxsize=256)
def searcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that is true if the pattern is found anywhere in a text.

    Raises:
        re.error: `pattern` is not a valid pattern of Python's `re`.
    """
    search = re.compile(pattern).search
    linear = _linear(pattern)
    if linear is None:
        return lambda text: search(text) is not None
    return lambda text: (
        (search(text) if _TEXT_DIFFERS_IN_RE2.search(text) else linear.search(text)) is not None
    )


def _linear(pattern: str) -> Any:
    """Return the pattern compiled by RE2, or None if RE2 does not support it or reads it differently."""
    # In RE2 `$` matches only at the end of the text, in `re` also before a last line break.
    exact = pattern if _MULTILINE.search(pattern) else _LAST_DOLLAR.sub(r"\1(?:\n?\\z)", pattern)
    if _PATTERN_DIFFERS_IN_RE2.search(exact):
        return None
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False  # RE2 would write to the file descriptor of stderr
    try:
        return re2.compile(exact, options)
    except re2.error:
        return None


def glob_matches(pattern: str, name: str) -> bool:
    """True if the whole name matches the glob, or equals it (a name may contain `[` or `?`)."""
    return pattern == name or fnmatchcase(name, pattern)


def name_matches(pattern: str, name: str, *, in_parts: bool) -> bool:
    """True if the name of a call matches the glob. `in_parts`: names of its kind are those of nodes or models."""
    return (last_part_matches if in_parts else glob_matches)(pattern, name)


def last_part_matches(pattern: str, name: str) -> bool:
    """True if the name matches the glob, which may leave out parts before the last one.

    `model` matches `tools/searcher/model`, and so do `tools/model` and `tools*`.
    """
    before = pattern.count("/")
    parts = name.split("/")
    shorter = "/".join([*parts[:before], parts[-1]]) if len(parts) > before + 1 else name
    return glob_matches(pattern, shorter) or (shorter != name and glob_matches(pattern, name))


def vagueness(pattern: str) -> tuple[int, bool]:
    """Return the rank of a glob among those that match the same name: less for more parts, and for no wildcard."""
    return -pattern.count("/"), bool(_WILDCARD.search(pattern))
