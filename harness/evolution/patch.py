"""The winner as a patch of the manifest's files, for `git apply` and `patch -p1`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from harness.dialects.dialect import Prompt
from harness.errors import SourceError
from harness.evolution.genome import Genome, Space
from harness.source.document import Document, parse, real_path, relative_path
from harness.source.editing import replace_text, replace_value
from harness.source.yaml import Version

PATCH: Final = "winner.patch"
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_BOM: Final = "\ufeff"
_DOCUMENTS: Final = (".yaml", ".yml", ".json", ".toml")


@dataclass
class Patch:
    """A unified diff of files, relative to `root`. `left_out` lists the changes that it could not include."""

    text: str = ""
    left_out: list[str] = field(default_factory=list)


def patch_of(
    genome: Genome, space: Space, prompts: Sequence[Prompt], manifest: Path, yaml: Version, root: Path
) -> Patch:
    """Return the patch that changes the manifest to the genome.

    Args:
        genome: the differences from the manifest.
        space: the genes of the manifest.
        prompts: the prompts of the manifest, with their locations.
        manifest: its main document.
        yaml: the version of YAML that it is written in.
        root: the folder that paths in the patch are relative to.
    """
    made = Patch()
    files = _EditedFiles(yaml)
    places = [prompt for prompt in prompts if prompt.id in genome.prompts]
    for prompt in sorted(set(places), key=lambda each: (each.where.line, each.where.column), reverse=True):
        file = real_path(Path(prompt.where.file))
        if not files.write_text(file, prompt, genome.prompts[prompt.id]):
            made.left_out.append(f"the prompt '{prompt.id}' ({prompt.where})")
    for kind, path, value in genome.values(space):
        if not files.write_value(real_path(manifest), path, value):
            made.left_out.append(f"{kind} at {'/'.join(map(str, path))}")
    made.text = "".join(
        part
        for file, (file_format, before, after) in sorted(files.texts.items())
        for part in _diff(file, file_format.restored(before), file_format.restored(after), root)
    )
    return made


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


class _EditedFiles:
    """Normalized texts of files, before and after the edits."""

    def __init__(self, yaml: Version) -> None:
        self._yaml = yaml
        self.texts: dict[Path, tuple[_FileFormat, str, str]] = {}

    def write_text(self, file: Path, prompt: Prompt, new: str) -> bool:
        """Replace the text of a prompt; return False if that is not possible."""
        place = prompt.where.line, prompt.where.column
        if place == (1, 1) and self._read(file)[2] == prompt.text and file.suffix not in _DOCUMENTS:
            return self._write(file, new)
        document = self._document(file)
        return document is not None and self._write(
            file, replace_text(document, *place, new, partial(self._parsed, file))
        )

    def write_value(self, file: Path, path: Sequence[str | int], value: object) -> bool:
        """Replace the value at a path of a document; return False if that is not possible."""
        document = self._document(file)
        return document is not None and self._write(
            file, replace_value(document, tuple(path), value, partial(self._parsed, file))
        )

    def _write(self, file: Path, after: str | None) -> bool:
        file_format, before, _ = self._read(file)
        if after is not None:
            self.texts[file] = (file_format, before, after)
        return after is not None

    def _read(self, file: Path) -> tuple[_FileFormat, str, str]:
        if file not in self.texts:
            with file.open(encoding="utf-8", newline="") as stream:
                written = stream.read()
            file_format = _FileFormat.of(written)
            text = file_format.normalized(written)
            self.texts[file] = (file_format, text, text)
        return self.texts[file]

    def _document(self, file: Path) -> Document | None:
        try:
            return self._parsed(file, self._read(file)[2])
        except SourceError:
            return None

    def _parsed(self, file: Path, text: str) -> Document:
        suffix = file.suffix.lower()
        return parse(text, file=file.name, yaml=self._yaml, json=suffix == ".json", toml=suffix == ".toml")


def _diff(file: Path, before: str, after: str, root: Path) -> Iterator[str]:
    """Yield the unified diff of a file, as git writes it."""
    name = relative_path(file, real_path(root))
    name += "\t" if " " in name else ""  # otherwise patch ends the name at the space
    old, new = _LINE.findall(before), _LINE.findall(after)
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
