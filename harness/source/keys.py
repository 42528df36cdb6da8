"""Lookup of the pydantic models, and so of the known keys, at a path in a model's fields."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, RootModel, Tag

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
    taking_mappings = [member for member in fitting if not any(map(_is_choice_for_mapping, member))]
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
    ends = ("_type", "_parsing", "none_required")
    return at_the_point and all(kind.endswith(ends) for kind in finding.kinds)


def models_at(model: type[BaseModel], steps: Sequence[Step]) -> list[type[BaseModel]]:
    """Return the models that the value at `steps` may be an instance of. Labels in `steps` select union members."""
    members = list(_members(model))
    for inside, element in steps:
        if inside:
            members = [found for member, _ in members for found in _below(member, element)]
        else:
            members = [member for member in members if _is_called(member, element)] or members
    return [member for member, _ in members if isinstance(member, type) and issubclass(member, BaseModel)]


def hint_where_known(key: str, model: type[BaseModel], steps: Sequence[Step]) -> str:
    """Return a hint that names the key, or the enclosing mapping, where a key unknown at `steps` is known; or ""."""
    here = models_at(model, steps)
    for candidate in here:
        if hint := getattr(candidate, "elsewhere", {}).get(key):
            return str(hint)
    if key in _EVERYWHERE:
        return ""
    known = [field.alias or name for candidate in here for name, field in candidate.model_fields.items()]
    below = [name for name in known if any(_has(inner, key) for inner in _all_at(here, ((True, name),)))]
    items = [
        name for name in known if any(_has(inner, key) for inner in _all_at(here, ((True, name), (True, 0))))
    ]
    if below and len(below) <= _FEW:
        return f"'{key}' belongs under {' or '.join(map(repr, below))}"
    if items and len(items) <= _FEW:
        return f"'{key}' belongs in an item of {' or '.join(map(repr, items))}"
    inside = [end for end, (into, _) in enumerate(steps) if into]
    outer = (candidate for end in reversed(inside) for candidate in models_at(model, steps[:end]))
    titles = (candidate.model_config.get("title") for candidate in outer if _has(candidate, key))
    title = next(titles, None)
    return f"'{key}' belongs further out, in {title}" if title else ""


_EVERYWHERE: Final = frozenset({"name", "id", "type", "kind", "description"})
"""Keys that too many models have for a hint to help."""
_FEW: Final = 2


def _all_at(models: Sequence[type[BaseModel]], steps: Sequence[Step]) -> list[type[BaseModel]]:
    return [found for candidate in models for found in models_at(candidate, steps)]


def _has(model: type[BaseModel], key: str) -> bool:
    return any(key == (field.alias or name) for name, field in model.model_fields.items())


_Member = tuple[Any, str | None]
"""A member of a union (or a type that is no union), and its tag."""


def _members(annotation: Any, tag: str | None = None) -> Iterator[_Member]:
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        yield from _members(inner, next((m.tag for m in metadata if isinstance(m, Tag)), tag))
    elif origin in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _members(member, tag)
    elif isinstance(annotation, type) and origin is None and issubclass(annotation, RootModel):
        yield from _members(annotation.model_fields["root"].annotation, tag)
    else:
        yield annotation, tag


def _below(member: Any, element: int | str) -> Iterable[_Member]:
    """Return the types of the items of a list or mapping, or of a key of a model."""
    if isinstance(member, type) and get_origin(member) is None and issubclass(member, BaseModel):
        for name, field in member.model_fields.items():
            if element == (field.alias or name):
                return _members(field.annotation)
        return ()
    arguments = get_args(member)
    if not arguments:
        return ()
    return _members(arguments[0] if isinstance(element, int) else arguments[-1])


def _is_called(member: _Member, label: int | str) -> bool:
    kind, tag = member
    if tag is not None:
        return tag == label
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return False
    if kind.__name__ == label:
        return True
    annotations = (field.annotation for field in kind.model_fields.values())
    return any(get_origin(a) is Literal and label in get_args(a) for a in annotations)
