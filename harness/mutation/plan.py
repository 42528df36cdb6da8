"""The mutants that run: those of chosen manifests, in changed parts, or a sample of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Final

from harness.mutation.mutant import Mutant
from harness.selection.changes import ChangedLines
from harness.source.document import real_path, shown_path

_SEED: Final = "mutants"


def matches_manifest(manifest: Path, glob: str) -> bool:
    """True if a manifest matches a glob, by its path or its file name."""
    shown = shown_path(manifest)
    return any(fnmatchcase(name, glob) for name in (shown, PurePath(shown).name, manifest.as_posix()))


def in_changed_parts(mutants: Iterable[Mutant], changed: ChangedLines) -> list[Mutant]:
    """Return the mutants of parts that a diff touches."""
    return [each for each in mutants if changed.touches(real_path(Path(each.where.file)), *each.lines)]


def drawn(mutants: Sequence[Mutant], size: int | None) -> list[Mutant]:
    """Return a sample of mutants of this size in random order, always the same one; without a size all of them."""
    shuffled = sorted(mutants, key=lambda each: random.Random(f"{_SEED} {each.id}").random())
    return shuffled if size is None else shuffled[:size]
