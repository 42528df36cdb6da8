"""Finding and filling placeholders, such as `{{name}}`, in the texts of a manifest.

The dialect gives the pattern of a placeholder and the text that replaces it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final


def placeholders(value: Any, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield the placeholders in a text, or in the texts of lists and mappings at any depth, keys included."""
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
    """Return a text, list or mapping with each placeholder replaced by `text_of` its match.

    Placeholders in the inserted text are not expanded.
    """
    if isinstance(value, str):
        return pattern.sub(text_of, value)
    if isinstance(value, Mapping):
        return {fill(key, pattern, text_of): fill(held, pattern, text_of) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [fill(item, pattern, text_of) for item in value]
    return value


_FENCE: Final = re.compile(r"(`{3,})(?:[\w+-]+(?=[\s\[{\"]))?\s*(.*?)\s*\1", re.DOTALL)


def strip_code_fence(text: str) -> str:
    """Return the trimmed text; if all of it is one code fence, the content of the fence."""
    text = text.strip()
    found = _FENCE.fullmatch(text)
    return found[2] if found else text
