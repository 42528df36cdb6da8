"""The result of a check function, before it has a name and a weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.scenario.outcome import JSON

LONGEST_TEXT = 500
MOST_ITEMS = 50
_SCALARS = frozenset({int, bool, float, type(None)})


@dataclass(frozen=True, slots=True)
class Finding:
    """`score` is 0 to 1 and 1 when the check holds; `actual` is the part of the run it looked at.

    `broken`: the check could not be evaluated, so that it neither holds nor fails.
    """

    score: float
    actual: JSON
    message: str = ""
    broken: bool = False


def pass_or_fail(holds: bool, actual: JSON, message: str) -> Finding:
    """A check without partial credit; `message` is for when it does not hold."""
    return Finding(1.0, actual) if holds else Finding(0.0, actual, message)


def partial_credit(faults: Iterable[str | None], actual: JSON) -> Finding:
    """The share of parts that hold; a part is None when it holds, or says why it does not."""
    parts = list(faults)
    wrong = [fault for fault in parts if fault is not None]
    score = (len(parts) - len(wrong)) / len(parts) if parts else 1.0
    return Finding(score, actual, "\n".join(wrong))


def as_list(expected: Any) -> list[Any]:
    """An expected value that may be written alone or as a list, as a list."""
    return list(expected) if isinstance(expected, list | tuple) else [expected]


def trimmed(value: JSON) -> JSON:
    """The value with long texts and lists cut; still JSON."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}… ({len(value)} characters)"
    if type(value) in _SCALARS:
        return value
    if type(value) is dict or isinstance(value, Mapping):
        return {key: trimmed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        kept = [trimmed(item) for item in value[:MOST_ITEMS]]
        return kept if len(value) <= MOST_ITEMS else [*kept, f"… {len(value) - MOST_ITEMS} more"]
    return value
