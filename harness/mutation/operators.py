"""The operators: what each changes, and how a value is changed.

A variation is a function that yields changes of a place: a name for the id, and edits of the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from jsonpatch import JsonPointer

from harness.mutation.places import Place
from harness.source.document import DocumentPath
from harness.source.edited_files import EditedDocuments
from harness.units import is_number


class Edit(NamedTuple):
    """An edit of a document: a value is written at a path, or removed from it, or its key is renamed to `value`."""

    kind: Literal["write", "remove", "rename"]
    path: DocumentPath
    value: Any = None

    def as_patch(self) -> Mapping[str, Any]:
        """Return it as an operation of a JSON Patch (RFC 6902)."""
        at = JsonPointer.from_parts(self.path).path
        if self.kind == "rename":
            return {
                "op": "move",
                "from": at,
                "path": JsonPointer.from_parts((*self.path[:-1], self.value)).path,
            }
        if self.kind == "remove":
            return {"op": "remove", "path": at}
        return {"op": "replace" if isinstance(self.path[-1], int) else "add", "path": at, "value": self.value}

    def apply(self, files: EditedDocuments, file: Path) -> bool:
        """Make it in the text of a file; return False if that is not possible."""
        if self.kind == "rename":
            return files.rename(file, self.path, self.value)
        if self.kind == "remove":
            return files.remove(file, self.path)
        return files.write_value(file, self.path, self.value)


class Change(NamedTuple):
    """A change of a document: its name, the edits, and names that it takes away."""

    name: str
    edits: tuple[Edit, ...]
    names: frozenset[str] = frozenset()


_RENAMED: Final = "renamed"


def _to(name: str, place: Place, value: Any, *names: str) -> Change:
    return Change(name, (Edit("write", place.path, value),), frozenset(names))


def drop(place: Place) -> Iterator[Change]:
    """Leave out a key, or an item of a list."""
    value = place.value
    told = [value.get("name"), value.get("id")] if isinstance(value, dict) else [value, place.path[-1]]
    known = frozenset(name for name in told if isinstance(name, str))
    yield Change("dropped", (Edit("remove", place.path),), known)


def negate(form: str, place: Place) -> Iterator[Change]:
    """Negate a condition; `form` has a `{}` for it."""
    if isinstance(place.value, str) and place.value not in ("always", "true", ""):
        yield _to("negated", place, form.format(place.value))


def reorder(place: Place) -> Iterator[Change]:
    """Exchange two neighbours of a list."""
    items = place.value if isinstance(place.value, list) else []
    for at, (one, other) in enumerate(pairwise(items)):
        if one != other:
            both = Edit("write", (*place.path, at), other), Edit("write", (*place.path, at + 1), one)
            yield Change(f"order-{at + 1}", both)


def swap(targets: Sequence[Place]) -> Iterator[tuple[Place, Change]]:
    """Exchange the targets of neighbours that belong to one node."""
    for one, other in pairwise(targets):
        if one.value != other.value:
            both = Edit("write", one.path, other.value), Edit("write", other.path, one.value)
            yield one, Change("swapped", both)


def raise_limit(place: Place) -> Iterator[Change]:
    """Double a limit."""
    if is_number(place.value):
        yield _to("raised", place, place.value * 2 or 1)


def change_default(place: Place) -> Iterator[Change]:
    """Change a value to another one of its type; an empty list or mapping stays."""
    old = place.value
    if isinstance(old, bool):
        new: Any = not old
    elif is_number(old):
        new = old + 1
    elif isinstance(old, str):
        new = "" if old else "changed"
    else:
        new = type(old)() if isinstance(old, list | dict) else None
    if new != old:
        yield _to("changed", place, new)


def _append(name: str, mark: str, place: Place) -> Iterator[Change]:
    if isinstance(place.value, str) and place.value:
        yield _to(name, place, f"{place.value}{mark}{name}", place.value)


rename: Final = partial(_append, _RENAMED, "_")
"""Change a name."""
other_model: Final = partial(_append, "other", "-")
"""Change the name of a model."""


def rename_key(place: Place) -> Iterator[Change]:
    """Change the name of a key."""
    key = str(place.path[-1])
    yield Change(_RENAMED, (Edit("rename", place.path, f"{key}_{_RENAMED}"),), frozenset({key}))


def loosen(place: Place) -> Iterator[Change]:
    """Loosen a JSON Schema: no key is required, values have any type."""
    schema = place.value
    if not isinstance(schema, dict):
        return
    if schema.get("required"):
        yield Change("required-dropped", (Edit("remove", (*place.path, "required")),))
    properties = schema.get("properties")
    for name, of in properties.items() if isinstance(properties, dict) else ():
        for key in ("type", "enum"):
            if isinstance(of, dict) and key in of:
                at = (*place.path, "properties", name, key)
                yield Change(f"{name}-{key}-dropped", (Edit("remove", at),))


def pass_on(node: Place) -> Iterator[Change]:
    """Put a node of sherma that changes nothing in the place of another one."""
    values = {"type": "set_state", "args": {"values": {}}}
    yield Change("dropped", tuple(Edit("write", (*node.path, key), value) for key, value in values.items()))


def write(new: Any, place: Place) -> Iterator[Change]:
    """Write a value, unless it is there already."""
    if place.value != new:
        yield _to("dropped", place, new)
