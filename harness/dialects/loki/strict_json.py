"""JSON as its standard has it, which Python's parser is more lenient than."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

from harness.source.display import clip

_SHOWN: Final = 20  # characters of a text in messages
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def parse_json(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is not JSON, has a number that is none (`NaN`) or too large, half of a surrogate pair, or is
            nested too deep. The message says so, and where.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise ValueError(_unexpected(text, error)) from None
    except RecursionError:
        raise ValueError("nested too deep") from None
    except ValueError as error:
        raise error if isinstance(error, Refused) else ValueError("a number is too long") from None
    if "\\u" in text and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("half of a surrogate pair in a text")
    return value


class Refused(ValueError):
    """A value that Python reads, and that is not JSON."""


def _refuse(word: str) -> NoReturn:
    raise Refused(f"{word} is not JSON")


def _finite(written: str) -> float:
    value = float(written)
    if math.isinf(value):
        raise Refused(f"the number {clip(written, _SHOWN)} is too large")
    return value


def _unexpected(text: str, error: json.JSONDecodeError) -> str:
    """Where a text stops being JSON."""
    if text.startswith("\ufeff"):
        return "a byte order mark stands before it"
    rest = text[error.pos :]
    what = f"{clip(rest, _SHOWN)!r} is unexpected" if rest else "the end is missing"
    return f"line {error.lineno}, column {error.colno}: {what}"
