"""The winner as a patch of the manifest's files, for `git apply` and `patch -p1`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from harness.dialects.dialect import Prompt
from harness.errors import SourceError
from harness.evolution.genome import Genome, Space
from harness.source.document import Document, parse, real_path
from harness.source.edited_files import EditedFiles
from harness.source.editing import replace_text, replace_value
from harness.source.python_texts import with_text
from harness.source.yaml import Version

PATCH: Final = "winner.patch"
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
    made.text = files.files.patch(root)
    return made


class _EditedFiles:
    """The files of a manifest, edited by the place of a text or value."""

    def __init__(self, yaml: Version) -> None:
        self._yaml = yaml
        self.files = EditedFiles()

    def write_text(self, file: Path, prompt: Prompt, new: str) -> bool:
        """Replace the text of a prompt; return False if that is not possible."""
        place = prompt.where.line, prompt.where.column
        if place == (1, 1) and self.files.text(file) == prompt.text and file.suffix not in _DOCUMENTS:
            self.files.edit(file, new)
            return True
        if file.suffix == ".py":
            return self._write(file, with_text(self.files.text(file), *place, new))
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
        if after is not None:
            self.files.edit(file, after)
        return after is not None

    def _document(self, file: Path) -> Document | None:
        try:
            return self._parsed(file, self.files.text(file))
        except SourceError:
            return None

    def _parsed(self, file: Path, text: str) -> Document:
        suffix = file.suffix.lower()
        return parse(text, file=file.name, yaml=self._yaml, json=suffix == ".json", toml=suffix == ".toml")
