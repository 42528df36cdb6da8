"""The winner as a patch of the manifest's files, for `git apply` and `patch -p1`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness.dialects.dialect import Prompt
from harness.evolution.genome import Genome, Space
from harness.source.document import real_path
from harness.source.edited_files import EditedDocuments
from harness.source.yaml import Version

PATCH: Final = "winner.patch"


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
    files = EditedDocuments(yaml)
    places = [prompt for prompt in prompts if prompt.id in genome.prompts]
    for prompt in sorted(set(places), key=lambda each: (each.where.line, each.where.column), reverse=True):
        if not files.write_text(prompt.where, prompt.text, genome.prompts[prompt.id]):
            made.left_out.append(f"the prompt '{prompt.id}' ({prompt.where})")
    for kind, path, value in genome.values(space):
        if not files.write_value(real_path(manifest), tuple(path), value):
            made.left_out.append(f"{kind} at {'/'.join(map(str, path))}")
    made.text = files.files.patch(root)
    return made
