"""Shorten names and messages from manifests, whose length is not limited, to readable ones."""

from __future__ import annotations

import re
from typing import Any, Final

from harness.source.display import clip, printable

NAME_LENGTH: Final = 60
_WORD_LENGTH: Final = 200

_LONG_WORD: Final = re.compile(rf"\S{{{_WORD_LENGTH + 1},}}")


def short_name(name: Any) -> str:
    """Return at most 60 characters of the name of a node, a tool or a check, on one line."""
    return printable(clip(str(name), NAME_LENGTH))


def short_words(text: str) -> str:
    """Return the text with each word cut to 200 characters.

    >>> short_words(f"known: a, {'b' * 10_000}")[-5:]
    'bbbb…'
    """
    return _LONG_WORD.sub(lambda found: clip(found[0], _WORD_LENGTH), text)
