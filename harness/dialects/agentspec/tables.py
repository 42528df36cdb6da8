"""The keys that hold a configuration together, and the tables of what is referred to.

spec: "Symbolic references", "Disaggregated components". Cheap to import: detection needs nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from harness.errors import Problem
from harness.source.document import Document, DocumentPath

REFERENCE: Final = "$component_ref"
TABLE: Final = "$referenced_components"
VERSION: Final = "agentspec_version"
TYPE: Final = "component_type"


def missing_root_problem(document: Document) -> Problem | None:
    """The problem of a document that has nothing but components for others; None for any other."""
    value = document.value
    if not isinstance(value, dict) or TABLE not in value or not value.keys() <= {TABLE, VERSION}:
        return None
    text = "there is no component at the top to run"
    hint = "a document of disaggregated components goes behind the one that refers to them"
    return Problem("no-component", text, document.span(), hint)


def table_entries(document: Document) -> Iterator[tuple[str, Document]]:
    """What the tables of a document hold, by key; they may stand at any depth. spec: "Symbolic references"."""
    for path in _tables(document.value, ()):
        part = document.at(path)
        for key in part.value:
            yield key, part.at((key,))


def _tables(value: Any, path: DocumentPath) -> Iterator[DocumentPath]:
    """Where tables stand. Metadata means nothing, so that nothing is looked for in it."""
    if isinstance(value, dict):
        if isinstance(value.get(TABLE), dict):
            yield (*path, TABLE)
        for key, item in value.items():
            if key != "metadata":
                yield from _tables(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _tables(item, (*path, at))
