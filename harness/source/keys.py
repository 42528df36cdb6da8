"""Lookup of the pydantic models, and so of the known keys, at a path in a model's fields."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, RootModel, Tag

from harness.source.alternatives import Step


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
