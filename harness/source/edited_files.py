"""Files that are changed, as a patch for `git apply` and `patch -p1`, or in place.

`EditedDocuments` changes values and texts in the files of an agent: documents, modules, and files that are one text.
"""

from __future__ import annotations

import difflib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from harness.errors import FormatError, Problem, SourceError, Span
from harness.source.document import Document, DocumentPath, parse, real_path, relative_path, shown_path
from harness.source.editing import Parse, remove_value, rename_key, replace_text, replace_value
from harness.source.python_texts import with_text
from harness.source.yaml import Version

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_BOM: Final = "\ufeff"


@dataclass(frozen=True)
class _FileFormat:
    """The byte order mark and the line ends of a file."""

    bom: bool
    crlf: bool

    @classmethod
    def of(cls, text: str) -> _FileFormat:
        """Return the format of a file with this text. Mixed line ends are kept as they are."""
        return cls(text.startswith(_BOM), 0 < text.count("\n") == text.count("\r\n"))

    def normalized(self, text: str) -> str:
        """Return the text of a file without byte order mark and with LF line ends."""
        text = text.removeprefix(_BOM) if self.bom else text
        return text.replace("\r\n", "\n") if self.crlf else text

    def restored(self, text: str) -> str:
        """Return the text with the byte order mark and the line ends of the file."""
        text = text.replace("\n", "\r\n") if self.crlf else text
        return _BOM + text if self.bom else text


class EditedFiles:
    """The texts of files, before and after edits: without byte order mark, and with LF as line end.

    Both come back where a file is written or shown in a patch. Paths are real ones (`real_path`).
    """

    def __init__(self) -> None:
        self._texts: dict[Path, tuple[_FileFormat, str, str]] = {}

    def text(self, file: Path) -> str:
        """Return the text of a file after the edits so far.

        Raises:
            OSError, UnicodeDecodeError: it cannot be read.
        """
        return self._read(file)[2]

    def edit(self, file: Path, text: str) -> None:
        """Replace the text of a file. `save` writes it."""
        file_format, before, _ = self._read(file)
        self._texts[file] = (file_format, before, text)

    def patch(self, root: Path) -> str:
        """Return all edits that are not saved as a unified diff, with paths relative to a folder."""
        return "".join(
            part
            for file, (file_format, before, after) in sorted(self._texts.items())
            for part in _diff(file, file_format.restored(before), file_format.restored(after), root)
        )

    def save(self) -> None:
        """Write the files that were edited, each of them atomically, with the permissions that it has.

        Raises:
            FormatError: a file may not be written, or is not as it was when it was read (code `cannot-write`).
        """
        edited = {file: of for file, of in self._texts.items() if of[1] != of[2]}
        for file, (file_format, before, _) in edited.items():
            _check(file, file_format.restored(before))
        for file, (file_format, _, after) in edited.items():
            _write(file, file_format.restored(after))
            self._texts[file] = (file_format, after, after)

    def _read(self, file: Path) -> tuple[_FileFormat, str, str]:
        if file not in self._texts:
            with file.open(encoding="utf-8", newline="") as stream:
                written = stream.read()
            file_format = _FileFormat.of(written)
            text = file_format.normalized(written)
            self._texts[file] = (file_format, text, text)
        return self._texts[file]


def _check(file: Path, before: str) -> None:
    """Refuse a file that may not be written, or that does not have the text which was edited."""
    try:
        if not (file.stat().st_mode & 0o222 and os.access(file, os.W_OK)):
            raise _unwritable(file, "it is read-only")
        if file.read_bytes() != before.encode():
            raise _unwritable(file, "it changed since it was read")
    except OSError as error:
        raise _unwritable(file, error.strerror or str(error)) from None


def _write(file: Path, text: str) -> None:
    try:
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with open(handle, "wb") as stream:
                stream.write(text.encode())
            os.chmod(name, file.stat().st_mode & 0o7777)
            os.replace(name, file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _unwritable(file, error.strerror or str(error)) from None


def _unwritable(file: Path, why: str) -> FormatError:
    return FormatError(Problem("cannot-write", f"{shown_path(file)} cannot be written: {why}"))


def _diff(file: Path, before: str, after: str, root: Path) -> Iterator[str]:
    """Yield the unified diff of a file, as git writes it."""
    name = relative_path(file, real_path(root))
    name += "\t" if " " in name else ""  # otherwise patch ends the name at the space
    old, new = _LINE.findall(before), _LINE.findall(after)
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


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
