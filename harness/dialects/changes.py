"""The changes with which a variant of a manifest is loaded: replaced texts, and a JSON Patch of the manifest.

Front ends read their files with `LoadRequest.read` and `LoadRequest.read_text`, which apply the changes in memory.
The files are not written, and problems are located in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.errors import ManifestError, Problem, Span
from harness.source.display import clip
from harness.source.document import Document, real_path, shown_path
from harness.source.suggest import did_you_mean

_OPERATIONS: Final = ("add", "remove", "replace", "move", "copy", "test")
_LONGEST: Final = 200


@dataclass(frozen=True)
class TextReplacement:
    """A new text for the one that begins at a line and column of a file. `file` is absolute, its links resolved."""

    file: Path
    line: int
    column: int
    text: str


@dataclass(frozen=True)
class Changes:
    """The changes to a manifest and to the files that it refers to.

    texts     the replaced texts; in a file that is not YAML or JSON, one at line 1, column 1 replaces the whole file
    patch     operations of a JSON Patch (RFC 6902)
    patch_at  the location of the patch, for messages
    patched   the manifest that the patch applies to
    """

    texts: tuple[TextReplacement, ...] = ()
    patch: tuple[Mapping[str, Any], ...] = ()
    patch_at: Span | None = None
    patched: Path | None = None

    def apply(self, document: Document, path: Path) -> Document:
        """Return `document`, read from the file at `path`, with the changes to that file.

        Raises:
            ManifestError: an operation of the patch cannot be applied (`bad-patch`).
        """
        file = real_path(path)
        texts = {(found.line, found.column): found.text for found in self.texts if found.file == file}
        if texts:
            document = document.with_texts(texts)
        return self._patched(document) if self.patch and file == self.patched else document

    def text(self, path: Path) -> str | None:
        """Return the new text of a whole file; None if the file is unchanged."""
        file = real_path(path)
        return next(
            (found.text for found in self.texts if (found.file, found.line, found.column) == (file, 1, 1)),
            None,
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
                prefix = "" if len(self.patch) == 1 else f"operation {number} of "
                why, hint = _refusal(value, operation) or (clip(str(error), _LONGEST), "")
                text = f"{prefix}the patch cannot be applied to {shown_path(document.file)}: {why}"
                raise ManifestError(Problem("bad-patch", text, self.patch_at, hint)) from None
        return document.replaced(value)


def _refusal(value: Any, operation: Mapping[str, Any]) -> tuple[str, str] | None:
    """Explain why an operation cannot be applied to `value`, with a hint.

    Returns None unless a pointer leads nowhere or a `test` fails.
    """
    op = operation["op"]
    for key in ("from", "path"):
        if key in operation:
            steps = [_unescaped(step) for step in str(operation[key]).split("/")[1:]]
            new = steps[-1:] if key == "path" and op in ("add", "copy", "move") else []
            found = _missing(value, steps[: len(steps) - len(new)])
            if found is not None:
                return found
    if op == "test":
        return f"the value at '{operation['path']}' is different", ""
    return None


def _missing(value: Any, steps: Sequence[str]) -> tuple[str, str] | None:
    """Describe the first step of a JSON Pointer that does not exist in `value`, with a hint; None if all exist."""
    for number, step in enumerate(steps):
        pointer = "/" + "/".join(steps[: number + 1])
        if isinstance(value, Mapping):
            if step not in value:
                return f"there is no '{pointer}'", did_you_mean(step, [*map(str, value)])
            value = value[step]
        elif isinstance(value, list):
            if not (step.isdecimal() and int(step) < len(value)):
                return f"there is no '{pointer}'", f"the list has {len(value)} items, the first is 0"
            value = value[int(step)]
        else:
            return f"there is no '{pointer}'", "the value above it is neither a mapping nor a list"
    return None


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def faulty_operations(patch: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a message for each malformed operation of a patch, with its number. No document is needed."""
    import jsonpatch
    import jsonpointer

    wrong = []
    for number, operation in enumerate(patch, start=1):
        op, pointers = operation.get("op"), [operation[key] for key in ("path", "from") if key in operation]
        if op not in _OPERATIONS:
            wrong.append(
                f"operation {number}: {op!r} is not an operation; expected one of {', '.join(_OPERATIONS)}"
            )
            continue
        if relative := [
            pointer for pointer in pointers if isinstance(pointer, str) and pointer and pointer[0] != "/"
        ]:
            wrong.append(f"operation {number}: '{relative[0]}' is not a path: write '/{relative[0]}'")
            continue
        try:
            jsonpatch.JsonPatch([dict(operation)])
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError) as error:
            wrong.append(f"operation {number}: {error}")
    return wrong
