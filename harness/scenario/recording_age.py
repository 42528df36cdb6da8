"""The age of a recording, by the day that it says itself: what git checks out has no other age.

max_age_days = 90           older than that: a warning with the command that records it again
stale_cassettes = "fail"    … an error instead, so that the scenario cannot be judged
"""

from __future__ import annotations

import math
from datetime import date

from harness.errors import CassetteTooOld
from harness.recording.interactions import RecordingMetadata
from harness.settings import Settings


def age_days(metadata: RecordingMetadata) -> int | None:
    """How many days ago it was recorded; None if it does not say."""
    return (date.today() - date.fromisoformat(metadata.recorded)).days if metadata.recorded else None


def is_too_old(age: int | None, settings: Settings) -> bool:
    """True if an age is over the limit, or not known where there is one."""
    return settings.max_age_days < math.inf and (age is None or age > settings.max_age_days)


def age_warning(name: str, metadata: RecordingMetadata, settings: Settings, again: str) -> str:
    """What to warn of a recording of cassette `name` that is replayed; "" if it is young enough.

    It names the day and not the age, so that it is the same every day.

    Raises:
        CassetteTooOld: it is not, and that is to be an error.
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
