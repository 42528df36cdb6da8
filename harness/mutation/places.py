"""The places of a document that a pattern leads to, and the node that each belongs to.

A pattern is a list of steps with `/` between them: a key, `*` (each item or value) or `**` (each mapping, at any
depth). After a step, `[key=value]` keeps the mappings with this value, and `@key` names the node that everything
below belongs to: `@` is its own key, `@.` its own text. A reference to another component stands for its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from harness.source.document import Document, DocumentPath

_STEP: Final = re.compile(r"(?P<step>[^@\[]+)(?:\[(?P<key>\w+)=(?P<value>\w+)\])?(?P<owner>@[\w.]*)?")
_REFERENCE: Final = "$component_ref"
_NAMES: Final = ("name", "id", "title", "source", "from_node", "agent", "to_node", "target", "role")
"""The keys that name an item of a list, the most telling ones first."""


@dataclass(frozen=True)
class Place:
    """A value in a document.

    Attributes:
        document: the document.
        path: its path.
        owner: the node that it belongs to; None if it may matter in any run.
        part: the path of what the owner is written in; of the value itself without one.
    """

    document: Document
    path: DocumentPath = ()
    owner: str | None = None
    part: DocumentPath = ()

    @property
    def value(self) -> Any:
        """The value."""
        return self.document.at(self.path).value

    def below(self, step: str | int) -> Place:
        """Return the place of an item or entry of this value."""
        return replace(self, path=(*self.path, step))

    def names(self) -> list[str]:
        """Return its path by names: that of an item of a list instead of its index, where it has one."""
        return list(_names(self.document.value, self.path, self.document.value))


def places(document: Document, pattern: str) -> Iterator[Place]:
    """Yield the places that a pattern leads to, in the order of the document."""
    yield from _places(Place(document), pattern.split("/"))


def _places(at: Place, steps: Sequence[str]) -> Iterator[Place]:
    if not steps:
        yield at if at.part else replace(at, part=at.path)
        return
    found = _STEP.fullmatch(steps[0])
    assert found is not None, steps[0]
    for each in _step(at, found["step"]):
        value = each.value
        if found["key"] and not (isinstance(value, dict) and value.get(found["key"]) == found["value"]):
            continue
        if found["owner"]:
            each = replace(each, owner=_owner(each, found["owner"][1:]), part=each.path)
        yield from _places(each, steps[1:])


def _step(at: Place, step: str) -> Iterator[Place]:
    value = at.value
    if step == "**":
        if isinstance(value, dict):
            yield at
        for inside in _step(at, "*"):
            yield from _step(inside, "**")
    elif step == "*":
        keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        yield from (at.below(key) for key in keys)
    elif isinstance(value, dict) and step in value:
        yield at.below(step)


def _owner(at: Place, key: str) -> str | None:
    if key == "":
        return str(at.path[-1])
    value = at.value if key == "." else at.value.get(key) if isinstance(at.value, dict) else None
    return _name(value, at.document.value)


def _name(value: Any, root: Any) -> str | None:
    """Return the name that a value is, or that the component has which it is or refers to."""
    if isinstance(value, dict) and (reference := value.get(_REFERENCE)) is not None:
        value = next(_defined(root, reference), {"name": reference})
    name = value.get("name") if isinstance(value, dict) else value
    return name if isinstance(name, str) else None


def _defined(value: Any, reference: Any) -> Iterator[Any]:
    """Yield the component that a reference stands for."""
    if isinstance(value, dict):
        if value.get("id") == reference and "name" in value:
            yield value
        table = value.get("$referenced_components")
        if isinstance(table, dict) and reference in table:
            yield table[reference]
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _defined(item, reference)


def _names(value: Any, path: DocumentPath, root: Any) -> Iterator[str]:
    for step in path:
        inner = value[step]
        name = str(step)
        if isinstance(value, list):
            found = (_name(inner.get(key), root) for key in _NAMES) if isinstance(inner, dict) else iter(())
            told = inner if isinstance(inner, str) else next((each for each in found if each), None)
            same = [item for item in value[: int(step)] if item == inner] if told else []
            name = f"{told}~{len(same) + 1}" if told and same else told or name
        yield name
        value = inner


def lines_of(document: Document, place: Place) -> tuple[int, int]:
    """Return the first and the last line of the part that a place is in."""
    start, end = document.extent_of(place.part)
    first = document.key_span(place.part).line if place.part else 1
    return first, max(first, document.text.count("\n", 0, start + len(document.text[start:end].rstrip())) + 1)
