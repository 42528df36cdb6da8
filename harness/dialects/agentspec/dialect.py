"""The members of `harness.dialects.dialect.Dialect` for Agent Spec. Other modules are imported when they are used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.dialects.dialect import YamlVersion, lazy_function, single_file
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
    for path, found in mappings_in(document.value, ()):
        if isinstance(table := found.get(TABLE), dict):
            for key in table:
                yield key, document.at((*path, TABLE, key))


def mappings_in(value: Any, path: DocumentPath) -> Iterator[tuple[DocumentPath, dict[Any, Any]]]:
    """Yield each mapping with its path, the outer ones first. Metadata is not interpreted, and not searched."""
    if isinstance(value, dict):
        yield path, value
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        if key != "metadata":
            yield from mappings_in(value[key], (*path, key))


name = "agentspec"
title = "Agent Spec configurations (25.4.1 to 26.3.1)"
yaml: YamlVersion = "1.1"
locate = single_file
prompts = lazy_function("harness.dialects.agentspec.prompt_list:prompts")
tunables = lazy_function("harness.dialects.agentspec.prompt_list:tunables")
load = lazy_function("harness.dialects.agentspec.compile:load")


def detect(document: Document) -> bool:
    """True if a document is a configuration with a root component, and not only disaggregated components."""
    value = document.value
    if not isinstance(value, dict):
        return False
    return isinstance(value.get(TYPE), str) or REFERENCE in value or (VERSION in value and TABLE not in value)


def fragment(document: Document) -> Problem | None:
    """Return the problem of a document of disaggregated components, which is not a configuration by itself."""
    return missing_root_problem(document)


def agents(document: Document) -> list[str]:
    """Return the name of the root component."""
    value = document.value
    if isinstance(value, dict) and REFERENCE in value:
        tables = {key: part.value for key, part in table_entries(document)}
        value = tables.get(value[REFERENCE]) if isinstance(value[REFERENCE], str) else None
    name = value.get("name") if isinstance(value, dict) else None
    return [name] if isinstance(name, str) else []
