"""Arithmetic for summaries that does not depend on the order of values: exact sums, percentiles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum
from typing import Any, Final

PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}


class ExactSum:
    """A sum of floats without rounding errors. It is rounded once, when read, like `math.fsum` of all values.

    Source: Shewchuk 1997, "Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric Predicates",
    section 2.4 (Grow-Expansion): `parts` are non-overlapping floats with the same exact sum.
    """

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[float] = []

    def add(self, value: float) -> None:
        """Add a value."""
        kept = 0
        for part in self.parts:
            large, small = (value, part) if abs(value) >= abs(part) else (part, value)
            value = large + small
            if rest := small - (value - large):
                self.parts[kept] = rest
                kept += 1
        self.parts[kept:] = [value]


def total(sums: Iterable[ExactSum]) -> float:
    """Return the total of several sums, rounded once."""
    return fsum(part for each in sums for part in each.parts)


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return a percentile of sorted values by linear interpolation; None if there are no values."""
    if not ordered:
        return None
    whole, part = divmod((len(ordered) - 1) * share, 1)
    low = ordered[int(whole)]
    return low + (ordered[int(whole) + 1] - low) * part if part else low


def percentiles(values: Iterable[float]) -> dict[str, Any]:
    """Return {p50, p90, p95, p99, max} of the values; each is None if there are no values."""
    ordered = sorted(values)
    return {name: percentile(ordered, share) for name, share in PERCENTILES.items()}
