"""Digests of the scenario files and manifests of a run, which tell whether they are still those that ran."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from harness.report.repeats import Line

_DIGITS: Final = 12


class InputFiles:
    """Collects the files of a run from its lines, each as it is when its first line is written.

    Args:
        folder: the folder that their paths are relative to.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digests: dict[str, str] = {}

    def add(self, line: Line) -> None:
        """Add the files of a line."""
        for file in (line["suite"], line["manifest"]):
            if file not in self._digests:
                self._digests[file] = _digest(self._folder / file)

    def as_json(self) -> dict[str, str]:
        """Return the digests by file. A manifest that is no file, such as an object of a module, has none."""
        return {file: digest for file, digest in sorted(self._digests.items()) if digest}


def changed_files(digests: Mapping[str, str], folder: Path | None = None) -> list[str]:
    """Return the files that have another content now. A file that is not here may be on the machine of the run.

    `folder` is that of the run, which their paths are relative to; by default, the current one.
    """
    at = folder or Path()
    return [file for file, digest in digests.items() if _digest(at / file) not in ("", digest)]


def _digest(file: Path) -> str:
    """Return the first digits of the SHA-256 of a file; "" if it cannot be read."""
    try:
        return sha256(file.read_bytes()).hexdigest()[:_DIGITS]
    except (OSError, ValueError):
        return ""
