"""The result of a check function, to which `run_checks` adds a name and a weight."""

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
    """The result of a check function.

    Attributes:
        score: from 0 to 1; 1 if the check holds.
        actual: the part of the run that was checked.
        message: what was expected and what was found, if the check does not hold.
        broken: the check could not be evaluated: it neither holds nor fails.
    """

    score: float
    actual: JSON
    message: str = ""
    broken: bool = False


def pass_or_fail(holds: bool, actual: JSON, message: str) -> Finding:
    """Return the finding of a check without partial credit; `message` is used if it does not hold."""
    return Finding(1.0, actual) if holds else Finding(0.0, actual, message)


def partial_credit(faults: Iterable[str | None], actual: JSON) -> Finding:
    """Return the share of parts that hold. `faults` has None for a part that holds, or else the reason."""
    parts = list(faults)
    wrong = [fault for fault in parts if fault is not None]
    score = (len(parts) - len(wrong)) / len(parts) if parts else 1.0
    return Finding(score, actual, "\n".join(wrong))


def as_list(expected: Any) -> list[Any]:
    """Return an expected value that may be a single item or a list, as a list."""
    return list(expected) if isinstance(expected, list | tuple) else [expected]


def trim(value: JSON) -> JSON:
    """Return the value with long texts and lists cut; it is still JSON."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}… ({len(value)} characters)"
    if type(value) in _SCALARS:
        return value
    if type(value) is dict or isinstance(value, Mapping):
        return {key: trim(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        kept = [trim(item) for item in value[:MOST_ITEMS]]
        return kept if len(value) <= MOST_ITEMS else [*kept, f"… {len(value) - MOST_ITEMS} more"]
    return value
