"""The errors of a union, reduced to those of the alternative that was meant.

Pydantic reports the errors of every member of a union. The author meant one of them: these functions keep the
errors of the member that fits best, and one error where no member fits at all.
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

    `steps` lead to the value: (True, a key or index of the document) or (False, the label of a union's
    member). `key` is the key that is missing; `types` the error types of all members where none fits.
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
        """The error types of this error, or of all members where none fits."""
        return self.types or (self.type,)

    @property
    def on_key(self) -> bool:
        """True if the key is wrong, not its value."""
        return bool(self.steps) and self.steps[-1] == (False, _KEY_LABEL)


def chosen(findings: Sequence[ValidationIssue], depth: int = 0) -> list[ValidationIssue]:
    """The findings without those of alternatives that were not meant. The first `depth` steps are resolved."""
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
        kept += _meant(len(point), list(members.values()))
    return kept


def _meant(point: int, members: list[list[ValidationIssue]]) -> list[ValidationIssue]:
    """The findings of the best member of a union `point` steps deep; or one for all members."""
    settled = [chosen(member, point + 1) for member in members]
    fitting = [member for member in settled if not any(_misfits(finding, point) for finding in member)]
    # A mapping is meant as the member that takes one, although that finds a key missing.
    of_its_kind = [member for member in fitting if not any(_is_no_option(finding) for finding in member)]
    if fitting := of_its_kind or fitting:
        return min(fitting, key=lambda member: (len(member), -max(len(finding.path) for finding in member)))
    first = settled[0][0]
    types = (kind for member in settled for finding in member for kind in finding.kinds)
    return [replace(first, types=tuple(dict.fromkeys(types)))]


def _is_no_option(finding: ValidationIssue) -> bool:
    """True if a member is a choice of texts and the value a mapping."""
    return finding.type in ("literal_error", "enum") and isinstance(finding.found, Mapping)


def _misfits(finding: ValidationIssue, point: int) -> bool:
    """True if the value itself, not something inside it, has a type that this member does not allow."""
    at_the_point = not any(inside for inside, _ in finding.steps[point:])
    return at_the_point and all(
        kind.endswith(("_type", "_parsing", "none_required")) for kind in finding.kinds
    )
