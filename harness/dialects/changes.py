"""What is different when a manifest is loaded as a variant: texts by their place, and a JSON Patch of the manifest.

Front ends read their files with `LoadRequest.read` and `LoadRequest.read_text`, which apply the changes: the files
themselves stay as they are, and problems are at the places of the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import ManifestError, Problem, Span
from harness.source.document import Document, real_path


@dataclass(frozen=True)
class TextAt:
    """A text of a file, by its place, and what stands there instead. `file` is absolute, without links."""

    file: Path
    line: int
    column: int
    text: str


@dataclass(frozen=True)
class Changes:
    """The changes to a manifest and to the files that it is made of.

    texts  replace texts; one at the first line and column of a file that is no document replaces all of it
    patch  operations of a JSON Patch (RFC 6902) on the manifest at `patched`; `patch_at` is where they are written
    """

    texts: tuple[TextAt, ...] = ()
    patch: tuple[Mapping[str, Any], ...] = ()
    patch_at: Span | None = None
    patched: Path | None = None

    def applied(self, document: Document, path: Path) -> Document:
        """The document of the file at `path`, with the changes.

        Raises:
            ManifestError: an operation of the patch cannot be applied (`bad-patch`).
        """
        file = real_path(path)
        texts = {(each.line, each.column): each.text for each in self.texts if each.file == file}
        if texts:
            document = document.with_texts(texts)
        return self._patched(document) if self.patch and file == self.patched else document

    def text(self, path: Path) -> str | None:
        """The text instead of that of a whole file; None where it stays."""
        file = real_path(path)
        return next(
            (each.text for each in self.texts if (each.file, each.line, each.column) == (file, 1, 1)), None
        )

    def _patched(self, document: Document) -> Document:
        import jsonpatch
        import jsonpointer

        value = document.value
        for number, operation in enumerate(self.patch, start=1):
            try:
                value = jsonpatch.apply_patch(value, [dict(operation)])
            except (
                jsonpatch.JsonPatchException,
                jsonpointer.JsonPointerException,
                TypeError,
                KeyError,
            ) as error:
                which = "" if len(self.patch) == 1 else f"operation {number} of "
                text = f"{which}the patch cannot be applied to {document.file}: {error}"
                raise ManifestError(Problem("bad-patch", text, self.patch_at)) from None
        return document.replaced(value)


def faulty_operations(patch: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is wrong with operations as they are written, whatever they are applied to, each with its number."""
    import jsonpatch
    import jsonpointer

    wrong = []
    for number, operation in enumerate(patch, start=1):
        try:
            jsonpatch.JsonPatch([dict(operation)])
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError) as error:
            wrong.append(f"operation {number}: {error}")
    return wrong
