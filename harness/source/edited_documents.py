"""Values and texts that are changed in the files of an agent: documents, modules, and files that are one text."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from harness.errors import SourceError, Span
from harness.source.document import Document, DocumentPath, parse, real_path
from harness.source.edited_files import EditedFiles
from harness.source.editing import Parse, remove_value, rename_key, replace_text, replace_value
from harness.source.python_texts import with_text
from harness.source.yaml import Version

DOCUMENTS: Final = (".yaml", ".yml", ".json", ".toml")
"""The endings of names of documents."""


class EditedDocuments:
    """The files of an agent, edited by the places of values and texts. Each edit returns False if it is impossible.

    Args:
        yaml: the version of YAML that its documents are written in.
    """

    def __init__(self, yaml: Version) -> None:
        self._yaml = yaml
        self.files = EditedFiles()

    def write_text(self, at: Span, old: str, new: str) -> bool:
        """Replace the text at a place, which is `old` so far."""
        file, place = real_path(Path(at.file)), (at.line, at.column)
        if place == (1, 1) and self.files.text(file) == old and file.suffix not in DOCUMENTS:
            return self._write(file, new)
        if file.suffix == ".py":
            return self._write(file, with_text(self.files.text(file), *place, new))
        return self._edit(file, lambda document, read: replace_text(document, *place, new, read))

    def write_value(self, file: Path, path: DocumentPath, value: object) -> bool:
        """Replace the value at a path of a document, or add the key that ends it."""
        return self._edit(file, lambda document, read: replace_value(document, path, value, read))

    def remove(self, file: Path, path: DocumentPath) -> bool:
        """Remove a key, or an item of a list, from a document."""
        return self._edit(file, lambda document, read: remove_value(document, path, read))

    def rename(self, file: Path, path: DocumentPath, name: str) -> bool:
        """Change the name of a key of a document."""
        return self._edit(file, lambda document, read: rename_key(document, path, name, read))

    def _edit(self, file: Path, edited: Callable[[Document, Parse], str | None]) -> bool:
        read = partial(self._parsed, file)
        try:
            document = read(self.files.text(file))
        except SourceError:
            return False
        return self._write(file, edited(document, read))

    def _write(self, file: Path, after: str | None) -> bool:
        if after is not None:
            self.files.edit(file, after)
        return after is not None

    def _parsed(self, file: Path, text: str) -> Document:
        suffix = file.suffix.lower()
        return parse(text, file=file.name, yaml=self._yaml, json=suffix == ".json", toml=suffix == ".toml")
