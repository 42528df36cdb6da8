"""Markdown code fences, which models often put around JSON."""

from __future__ import annotations

import re
from typing import Final

_FENCE: Final = re.compile(r"(`{3,})(?:[\w+-]+(?=[\s\[{\"]))?\s*(.*?)\s*\1", re.DOTALL)


def strip_code_fence(text: str) -> str:
    """Return the trimmed text; if all of it is one code fence, the content of the fence."""
    text = text.strip()
    found = _FENCE.fullmatch(text)
    return found[2] if found else text
