"""Warnings about sexagesimal numbers: YAML 1.1 reads `12:30` as a number, but most authors mean text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from harness.errors import Problem
from harness.source.document import Document, DocumentPath

_LIKELY: Final = re.compile(r"\d:[0-5]?\d")


def sexagesimals(document: Document) -> Iterator[Problem]:
    """Yield a warning for each sexagesimal number in a document, except in `metadata`, which has no effect."""
    if _LIKELY.search(document.text):
        yield from _below(document, (), document.value)


def _below(document: Document, path: DocumentPath, value: Any) -> Iterator[Problem]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key != "metadata":
                yield from _below(document, (*path, key), item)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _below(document, (*path, at), item)
    elif type(value) in (int, float):
        start, end = document.extent_of(path)
        written = document.text[start:end]
        if ":" in written and "*" not in written:
            text = f"{written} is read as the number {value:g}, to the base of 60 (YAML 1.1)"
            yield Problem("sexagesimal", text, document.span(path), "quote it to make it text", "warning")
