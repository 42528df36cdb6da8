"""Functions that make text of unknown origin safe, and short enough, to display."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cs", "Cn", "Zl", "Zp"})


def printable(text: str, *, keep_newlines: bool = False) -> str:
    r"""Return the text without characters that a terminal or an XML parser would act on.

    Control characters (including escape sequences), characters that change the writing direction, lone surrogates and
    non-characters become visible escapes such as `\x1b`. Unless `keep_newlines`, line breaks and tabs become one
    space.

    >>> printable("a\x1b[31m\nb")
    'a\\x1b[31m b'
    """
    if text.isascii() and text.isprintable():
        return text
    if keep_newlines:
        return "\n".join(printable(line) for line in text.split("\n"))
    return "".join(_visible(character) for character in re.sub(r"[\r\n\t]+", " ", text))


def _visible(character: str) -> str:
    if unicodedata.category(character) in _UNSAFE_CATEGORIES or character in _BIDI:
        return repr(character)[1:-1] if not character.isprintable() else f"\\u{ord(character):04x}"
    return character


def clip(text: str, limit: int) -> str:
    """Shorten the text to at most `limit` characters, with an ellipsis if it was cut.

    >>> clip("classification", 9)
    'classifi…'
    """
    return text if len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + "…"


def truncated(value: Any, limit: int) -> Any:
    """Truncate JSON data to as much as a text of `limit` characters needs: rendering all of it may take minutes.

    >>> truncated([[1, 2], "abc", 3], 5)
    [[1, 2], 'abc']
    """
    left = limit

    def kept(value: Any) -> Any:
        nonlocal left
        left -= 1
        if isinstance(value, str):
            left -= len(value)
            return value if len(value) <= limit else value[: limit + 1]
        if isinstance(value, Mapping):
            pairs = {}
            for key, item in value.items():
                if left <= 0:
                    break
                pairs[key if not isinstance(key, str) else kept(key)] = kept(item)
            return pairs
        if isinstance(value, list | tuple):
            items = []
            for item in value:
                if left <= 0:
                    break
                items.append(kept(item))
            return items
        return value

    return kept(value)


def columns(text: str) -> int:
    """Return the width of the text in columns of a terminal."""
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
