"""Placeholders in the texts of a manifest, such as `{{name}}`: found, and filled.

The pattern of a placeholder, and the text that stands for it, are the dialect's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any


def placeholders(value: Any, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """The placeholders in a text, or in the texts of lists and mappings at any depth, keys included, in order."""
    if isinstance(value, str):
        yield from pattern.finditer(value)
    elif isinstance(value, Mapping):
        for key, held in value.items():
            yield from placeholders(key, pattern)
            yield from placeholders(held, pattern)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from placeholders(item, pattern)


def fill(value: Any, pattern: re.Pattern[str], text_of: Callable[[re.Match[str]], str]) -> Any:
    """The same text, list or mapping with `text_of` each placeholder in its place.

    Placeholders in what is filled in stay as they are.
    """
    if isinstance(value, str):
        return pattern.sub(text_of, value)
    if isinstance(value, Mapping):
        return {fill(key, pattern, text_of): fill(held, pattern, text_of) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [fill(item, pattern, text_of) for item in value]
    return value
