"""What a number is, how exactly time is kept, and how large numbers may be, for whoever computes with them."""

from typing import Any, Final, TypeGuard

# Virtual time is kept to the nanosecond, so that 0.1 + 0.2 is 0.3 and sums compare equal.
PRECISION: Final = 9

# Durations of real work are measured to the microsecond.
MEASURED: Final = 6

# The largest weight, and the largest of all figures in results: sums of them are still exact to a tenth.
MOST: Final = 1e15

# Virtual seconds of a run, some 30 years: the clock is still exact to a microsecond there.
LONGEST_RUN_S: Final = 1e9

# No call has so many tokens: who reports them is wrong.
MOST_TOKENS: Final = 10**15


def is_number(value: Any) -> TypeGuard[int | float]:
    """True for a number; a boolean, which is one for Python, is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)
