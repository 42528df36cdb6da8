"""Numbers: the precision of times, and upper limits."""

from typing import Any, Final, TypeGuard

PRECISION: Final = 9
"""Decimal places of virtual times in seconds (a nanosecond). Times are rounded, so that 0.1 + 0.2 is 0.3."""

MEASURED_PRECISION: Final = 6
"""Decimal places of measured durations of real work in seconds (a microsecond)."""

LARGEST_FIGURE: Final = 1e15
"""The largest weight, and the largest figure in results. Sums of such numbers are still exact to a tenth."""

LONGEST_RUN_S: Final = 1e9
"""The most virtual seconds of a run (some 30 years). The clock is still exact to a microsecond there."""

MOST_TOKENS: Final = 10**15
"""A number of tokens from which a report is not credible, and ignored."""


def is_number(value: Any) -> TypeGuard[int | float]:
    """True for a number, but not for a boolean, which is an int in Python."""
    return isinstance(value, int | float) and not isinstance(value, bool)
