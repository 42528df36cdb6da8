"""JSON as its standard has it, which Python's parser is more lenient than."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

_FENCE: Final = re.compile(r"```[^\n`]*\n(.*?)\n?```", re.DOTALL)


def parse_json(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is not JSON, has a number that is none (`NaN`), or is nested too deep.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def without_fence(text: str) -> str:
    """The text, trimmed; if all of it is a Markdown code fence, what stands inside."""
    text = text.strip()
    found = _FENCE.fullmatch(text)
    return found[1].strip() if found else text
