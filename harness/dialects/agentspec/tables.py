"""The structural keys of a configuration, and the tables under `$referenced_components`.

spec: "Symbolic references", "Disaggregated components". This module is cheap to import, for detection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.errors import Problem
from harness.source.document import Document, DocumentPath

REFERENCE: Final = "$component_ref"
TABLE: Final = "$referenced_components"
VERSION: Final = "agentspec_version"
TYPE: Final = "component_type"


def missing_root_problem(document: Document) -> Problem | None:
    """Return the problem of a document of disaggregated components alone; None for any other document."""
    value = document.value
    if not isinstance(value, dict) or TABLE not in value or not value.keys() <= {TABLE, VERSION}:
        return None
    text = "there is no top-level component to run"
    hint = "a document of disaggregated components comes after the document that refers to them"
    return Problem("no-component", text, document.span(), hint)


def mapped_entries(components: Mapping[str, str], entries: Mapping[str, Document]) -> dict[str, Document]:
    """Return an entry for each id that stands for another component: a reference to its key.

    spec: "Users can override this behavior at deserialization time by mapping it to a different ID".
    """
    return {
        id_: entries[key].with_value({REFERENCE: key})
        for id_, key in components.items()
        if key in entries and id_ not in entries
    }


def table_entries(document: Document) -> Iterator[tuple[str, Document]]:
    """Yield the key and entry of all tables in a document, at any depth. spec: "Symbolic references"."""
    for path in _tables(document.value, ()):
        part = document.at(path)
        for key in part.value:
            yield key, part.at((key,))


def _tables(value: Any, path: DocumentPath) -> Iterator[DocumentPath]:
    """Yield the paths of tables. Metadata is not interpreted, and not searched."""
    if isinstance(value, dict):
        if isinstance(value.get(TABLE), dict):
            yield (*path, TABLE)
        for key, item in value.items():
            if key != "metadata":
                yield from _tables(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _tables(item, (*path, index))
