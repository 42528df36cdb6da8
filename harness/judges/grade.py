"""Parsing of a judge's answer."""

from __future__ import annotations

import json
import math

from harness.units import is_number

_MAX_QUOTE = 200


def read_grade(answer: str, *, strict: bool = False) -> tuple[float, str]:
    """Return the grade (0 to 1) and its reason; if the answer has no grade, 0 and a reason that quotes it.

    Text around the JSON object, such as a code fence, is ignored. A grade outside 0 to 1 is clamped, and may be
    written as text. With `strict`, it must be a number from 0 to 1 and have a reason.
    """
    try:
        found = json.loads(answer[answer.index("{") : answer.rindex("}") + 1])
        grade, reason = found["grade"], found.get("reason", "")
        sound = not strict or _is_sound(grade, reason)
        grade = float(grade)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return _unreadable(answer)
    if math.isnan(grade) or not sound:
        return _unreadable(answer)
    return min(max(grade, 0.0), 1.0), str(reason)


def is_unreadable(reason: str) -> bool:
    """True if this is the reason of an answer without a grade."""
    return reason.startswith(_NO_GRADE)


_NO_GRADE = "no grade in the answer: "


def _unreadable(answer: str) -> tuple[float, str]:
    return 0.0, f"{_NO_GRADE}{answer[:_MAX_QUOTE]}"


def _is_sound(grade: object, reason: object) -> bool:
    return is_number(grade) and 0 <= grade <= 1 and isinstance(reason, str) and bool(reason.strip())
