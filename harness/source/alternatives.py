"""Reduction of the errors of a pydantic union to those of the member that was meant.

Pydantic reports the errors of every member of a union. The author meant one of them: these functions keep the errors
of the member that fits best, or a single error if no member fits at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from harness.source.document import DocumentPath

Step = tuple[bool, int | str]

_KEY_LABEL: Final = "[key]"


@dataclass(frozen=True, slots=True)
class ValidationIssue:
    """One error of a validation.

    Attributes:
        type: pydantic's error type.
        steps: the path to the value: (True, a key or index of the document) or (False, the label of a union member).
        found: the value.
        message: pydantic's message.
        context: pydantic's details of the error.
        key: the key that is missing, if one is.
        types: the error types of all members of a union, if none fits.
    """

    type: str
    steps: tuple[Step, ...]
    found: Any
    message: str
    context: dict[str, Any]
    key: str | None = None
    types: tuple[str, ...] = ()

    @property
    def path(self) -> DocumentPath:
        """The path of the value in the document."""
        return tuple(element for inside, element in self.steps if inside)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The error type of this error, or those of all members if none fits."""
        return self.types or (self.type,)

    @property
    def on_key(self) -> bool:
        """True if the error is in the key, and not in its value."""
        return bool(self.steps) and self.steps[-1] == (False, _KEY_LABEL)


def without_alternatives(findings: Sequence[ValidationIssue], depth: int = 0) -> list[ValidationIssue]:
    """Return the errors without those of union members that were not meant. The first `depth` steps are resolved."""
    kept: list[ValidationIssue] = []
    unions: dict[tuple[Step, ...], dict[int | str, list[ValidationIssue]]] = {}
    for finding in findings:
        label = next((at for at in range(depth, len(finding.steps)) if not finding.steps[at][0]), None)
        if label is None or finding.steps[label][1] == _KEY_LABEL:
            kept.append(finding)
        else:
            point = finding.steps[:label]
            unions.setdefault(point, {}).setdefault(finding.steps[label][1], []).append(finding)
    for point, members in unions.items():
        kept += _best_member(len(point), list(members.values()))
    return kept


def _best_member(point: int, members: list[list[ValidationIssue]]) -> list[ValidationIssue]:
    """Return the errors of the best member of a union that is `point` steps deep, or one error for all members."""
    settled = [without_alternatives(member, point + 1) for member in members]
    fitting = [member for member in settled if not any(_misfits(finding, point) for finding in member)]
    # For a mapping, prefer a member that takes mappings, even if that reports a missing key.
    taking_mappings = [
        member for member in fitting if not any(_is_choice_for_mapping(finding) for finding in member)
    ]
    if fitting := taking_mappings or fitting:
        return min(fitting, key=lambda member: (len(member), -max(len(finding.path) for finding in member)))
    first = settled[0][0]
    types = (kind for member in settled for finding in member for kind in finding.kinds)
    return [replace(first, types=tuple(dict.fromkeys(types)))]


def _is_choice_for_mapping(finding: ValidationIssue) -> bool:
    """True if the member is a choice of texts, but the value is a mapping."""
    return finding.type in ("literal_error", "enum") and isinstance(finding.found, Mapping)


def _misfits(finding: ValidationIssue, point: int) -> bool:
    """True if the value itself, and not a value inside it, has a type that the member does not allow."""
    at_the_point = not any(inside for inside, _ in finding.steps[point:])
    return at_the_point and all(
        kind.endswith(("_type", "_parsing", "none_required")) for kind in finding.kinds
    )
