"""The age of a recording, computed from the date in it, since files checked out by git have no age of their own.

max_age_days = 90           older than that: a warning with the command that records it again
stale_cassettes = "fail"    … an error instead, so that the scenario cannot be judged
"""

from __future__ import annotations

import math
from datetime import date

from harness.errors import CassetteTooOld
from harness.recording.interactions import RecordingMetadata
from harness.settings import Settings
from harness.time.real import real


def age_days(metadata: RecordingMetadata) -> int | None:
    """Return the age of a recording in days, or None if it has no date."""
    return (real.now().date() - date.fromisoformat(metadata.recorded)).days if metadata.recorded else None


def is_too_old(age: int | None, settings: Settings) -> bool:
    """True if the age exceeds the limit, or is unknown although there is a limit."""
    return settings.max_age_days < math.inf and (age is None or age > settings.max_age_days)


def age_warning(name: str, metadata: RecordingMetadata, settings: Settings, again: str) -> str:
    """Return the warning for a recording of cassette `name` that is too old, or "".

    It contains the date and not the age, so that the text is the same every day.

    Raises:
        CassetteTooOld: the recording is too old, and the settings make that an error.
    """
    if not is_too_old(age_days(metadata), settings):
        return ""
    limit = f"{settings.max_age_days:g} days (max_age_days)"
    recorded = (
        f"was recorded on {metadata.recorded}" if metadata.recorded else "does not say when it was recorded"
    )
    text = f"cassette '{name}' {recorded}, and {limit} is the limit; record it again: {again}"
    if settings.stale_cassettes == "fail":
        raise CassetteTooOld(text)
    return text
