"""Verdicts of several runs, as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

WORST_FIRST: Final = ("error", "failed", "passed", "skipped")
NOT_PASSED: Final = ("error", "failed")


def worst(verdicts: Iterable[str]) -> str:
    """The worst of these verdicts; a skipped run says less than any other.

    >>> worst(["skipped", "passed", "failed"])
    'failed'
    """
    return min(verdicts, key=WORST_FIRST.index)
