"""How exactly time is kept, for whoever computes with it."""

from typing import Final

# Virtual time is kept to the nanosecond, so that 0.1 + 0.2 is 0.3 and sums compare equal.
PRECISION: Final = 9

# Durations of real work are measured to the microsecond.
MEASURED: Final = 6
