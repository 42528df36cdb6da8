"""Keys of a mesh file that mean nothing: each is kept and ignored, with a warning. NOTES 1.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.dialects.leafmesh.fields import Section
from harness.errors import Problem
from harness.source.document import Document, DocumentPath
from harness.source.models import keys_of
from harness.source.suggest import did_you_mean


def unknown_keys(value: Any, document: Document, path: DocumentPath = ()) -> Iterator[Problem]:
    """A warning for each, in a section at that path, and in everything inside it."""
    if isinstance(value, Section):
        if not value.has_own_keys:
            yield from _of(value, document, path)
        for name in value.model_fields_set & set(keys_of(type(value))):
            yield from unknown_keys(getattr(value, name), document, (*path, name))
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(item, Section | dict | list):
                yield from unknown_keys(item, document, (*path, key))


def _of(section: Section, document: Document, path: DocumentPath) -> Iterator[Problem]:
    known = keys_of(type(section))
    for key in section.model_extra or ():
        text = f"unknown key '{key}' in {section.model_config.get('title')}: it is ignored"
        where = document.key_span((*path, key))
        yield Problem("unknown-key", text, where, did_you_mean(key, known, listing=False), "warning")
