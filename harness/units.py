"""Numbers and instants: the precision of times, upper limits, and the beginning of virtual time."""

import math
from datetime import UTC, datetime
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


DEFAULT_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The instant at which virtual time begins where nothing says otherwise."""

_LAST_YEAR: Final = 9000


def parse_instant(text: str) -> datetime:
    """Parse an instant of ISO 8601, or a day; without a time zone it is in UTC.

    Raises:
        ValueError: it is something else, or no run can begin then.
    """
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expected an instant such as 2026-03-01T09:00:00Z, found '{text}'") from None
    if not 1970 <= instant.year <= _LAST_YEAR:
        raise ValueError(f"expected an instant in the years 1970 to {_LAST_YEAR}, found '{text}'")
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).astimezone(UTC)


def instant_text(instant: datetime) -> str:
    """Return an instant in UTC as results and recordings have it, such as 2026-03-01T09:00:00Z."""
    return instant.replace(tzinfo=None).isoformat() + "Z"


def is_number(value: Any) -> TypeGuard[int | float]:
    """True for a number, but not for a boolean, which is an int in Python."""
    return isinstance(value, int | float) and not isinstance(value, bool)


_LEAST_S: Final = 5000
_ROUND_MS: Final = 500
_HALF_HOUR_S: Final = 1800


def milliseconds_hint(name: str, seconds: float) -> tuple[str, str] | None:
    """Return a message and a hint for a time that is hardly in seconds, and None for any other.

    It is a large round number that is no whole number of half hours.
    """
    if not math.isfinite(seconds) or seconds < _LEAST_S or seconds % _ROUND_MS or not seconds % _HALF_HOUR_S:
        return None
    right = f"{seconds / 1000:g}"
    return f"'{name}' is in seconds, and {seconds:g} looks like milliseconds", f"write {right} for {right} s"
