"""The verdict of several runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

WORST_FIRST: Final = ("error", "failed", "passed", "skipped")
NOT_PASSED: Final = ("error", "failed")


def worst(verdicts: Iterable[str]) -> str:
    """Return the worst of the verdicts; `skipped` only if there is no other.

    >>> worst(["skipped", "passed", "failed"])
    'failed'
    """
    return min(verdicts, key=WORST_FIRST.index)
