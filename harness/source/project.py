"""Lookup of the root of the project that a file belongs to, independent of the current folder."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

PYPROJECT: Final = "pyproject.toml"
_SCENARIOS: Final = "scenarios"


def project_root(folder: Path) -> Path:
    """Return the root of the project around a folder, or a guess if nothing marks one.

    It is the first of these that exists, searching upwards but not above the repository (`.git`): the nearest
    folder whose pyproject.toml has a table [tool.harness], the nearest with a pyproject.toml, the repository.
    Otherwise it is the folder above the nearest one called `scenarios`, or the folder itself.
    """
    folder = Path(os.path.realpath(folder))
    return marked_root(folder) or _guess(folder)


def marked_root(folder: Path) -> Path | None:
    """Return the root of the project around a folder as `project_root` does, but None if nothing marks one."""
    nearest: Path | None = None
    for at in _up_to_repository(Path(os.path.realpath(folder))):
        if (at / PYPROJECT).is_file():
            if has_settings(at / PYPROJECT):
                return at
            nearest = nearest or at
        elif (at / ".git").exists():
            nearest = nearest or at
    return nearest


def has_settings(pyproject: Path) -> bool:
    """True if a pyproject.toml has a table [tool.harness], or cannot be read: `harness.settings` reports that."""
    try:
        found = pyproject.stat()
    except OSError:
        return True
    return _has_settings(pyproject, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=256)
def _has_settings(pyproject: Path, _changed: int, _size: int) -> bool:
    try:
        tool: Any = tomllib.loads(pyproject.read_text(encoding="utf-8")).get("tool")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError):
        return True
    return isinstance(tool, dict) and "harness" in tool


def _up_to_repository(folder: Path) -> Iterator[Path]:
    for at in (folder, *folder.parents):
        yield at
        if (at / ".git").exists():
            return


def _guess(folder: Path) -> Path:
    above = (at.parent for at in (folder, *folder.parents) if at.name == _SCENARIOS)
    return next(above, folder)
