"""The target of a manifest of a LangGraph app: an object of a file or of a module.

graph.py:graph      an object in a file
app.graph:graph     an object in a module, which is found from the folder of the manifest
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from harness.source.project import marked_root


@dataclass(frozen=True)
class Target:
    """An object that a manifest names.

    Attributes:
        file: the file that defines it; None for a module.
        module: the dotted name of its module; "" for a file.
        name: the name of the object, which may have dots.
        base: the folder that `module` is found from.
    """

    file: Path | None
    module: str
    name: str
    base: Path

    @property
    def shown(self) -> str:
        """The object as a manifest names it."""
        return f"{self.file.name if self.file else self.module}:{self.name}"


def is_object(path: Path) -> bool:
    """True if a path is that of an object, `graph.py:graph` or `app.graph:graph`, and not of a file."""
    where, colon, name = path.name.rpartition(":")
    return bool(colon and where) and all(map(str.isidentifier, name.split("."))) and not os.path.lexists(path)


@lru_cache(256)
def target_at(written: str, base: Path) -> Target:
    """Return the object that a text names, relative to a folder."""
    where, _, name = written.rpartition(":")
    if where.endswith(".py"):
        return Target(Path(os.path.normpath(base / where)), "", name, base)
    folder, module = os.path.split(where)
    return Target(None, module, name, Path(os.path.normpath(base / folder)))


def import_folders(target: Target, dependencies: tuple[Path, ...]) -> tuple[str, ...]:
    """Return the folders that the modules of an app are imported from, in the order in which they are searched.

    They are those that installing its `dependencies` makes importable; without any, those of the project of the
    object. A file that belongs to no package is imported from its own folder, as Python does with a script.

    They are looked for once in a process, in which the modules are imported once, too; see `forget_folders`.
    """
    return _folders(target, dependencies, os.getcwd())


def forget_folders() -> None:
    """Look for the folders anew in this process: it has them from the one that forked it, which imports nothing."""
    _folders.cache_clear()


@lru_cache(256)
def _folders(target: Target, dependencies: tuple[Path, ...], _current: str) -> tuple[str, ...]:
    """Look for these folders. `_current`, on which relative paths depend, is part of the cache key."""
    own = target.file.parent if target.file is not None else target.base
    roots = dependencies or tuple(filter(None, (marked_root(own),)))
    found = [folder for root in roots for folder in (root / "src", root) if folder.is_dir()]
    outermost = own
    while (outermost / "__init__.py").is_file():
        outermost = outermost.parent
    return tuple(dict.fromkeys(str(folder.resolve()) for folder in (*found, target.base, outermost)))


@lru_cache(256)
def module_name(file: Path, folders: tuple[str, ...]) -> str:
    """Return the name by which the modules of an app import this file; "" if they cannot."""
    inside = [file.relative_to(folder) for folder in folders if file.is_relative_to(folder)]
    for relative in sorted(inside, key=lambda path: len(path.parts)):
        parts = [*relative.parts[:-1], relative.stem]
        if parts[-1] == "__init__":
            parts.pop()
        if parts and all(map(str.isidentifier, parts)):
            return ".".join(parts)
    return ""
