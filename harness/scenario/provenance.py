"""Provenance of a recording: fingerprints of files, and versions of packages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from harness import DISTRIBUTION, __version__
from harness.source.document import relative_path

CLIENTS: Final = (
    "anthropic",
    "langchain-anthropic",
    "langchain-openai",
    "mcp",
    "openai",
    "vcrpy",
)


def fingerprints(files: Sequence[Path], base: Path) -> dict[str, str]:
    """Return the SHA-256 of each file by its path relative to `base`; "" for a file that cannot be read."""
    found = {}
    for file in dict.fromkeys(path.resolve() for path in files):
        try:
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError:
            digest = ""
        found[relative_path(file, base.resolve())] = digest
    return found


@cache  # the look-up takes several milliseconds
def versions() -> Mapping[str, str]:
    """Return the installed versions of this package and of the clients of providers."""
    found = {DISTRIBUTION: __version__}
    for package in CLIENTS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
