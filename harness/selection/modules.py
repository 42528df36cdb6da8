"""The Python modules of a project that code imports, found in the text of the modules: nothing is imported.

    words of a manifest ──▶ modules of those names in the import folders ──▶ what they import, and so on

A manifest names code in many ways, so any word in it that is the name of a module counts. Places where a module was
searched and is not are kept as well: a file that appears there, or has gone, changes what is imported. What is
imported by a name that only a run knows cannot be followed; `untold` then says where.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

_DYNAMIC: Final = frozenset(
    (
        "importlib",
        "importlib.import_module",
        "importlib.util",
        "importlib.machinery",
        "pkgutil",
        "runpy",
        "imp",
        "subprocess",
        "sys.path",
    )
)
"""What imports, or runs, what a name made up at run time means."""
_DYNAMIC_CALLS: Final = frozenset({"__import__", "exec", "eval", "execfile"})


@dataclass
class Modules:
    """The modules that code imports: each file with the one that led to it, and None for the first ones.

    untold  the files that import what only a run knows, or cannot be parsed
    """

    files: dict[Path, Path | None] = field(default_factory=dict)
    untold: list[Path] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """True if there is no code at all."""
        return not any(path.is_file() for path in self.files)


@dataclass(frozen=True)
class ModuleSearch:
    """Where modules are searched: the import folders, and the rest of `sys.path` as far as it is in the project.

    `gone` are names of modules that were there, or have come: the folders need not have them.
    """

    folders: tuple[Path, ...]
    project: Path
    gone: frozenset[str] = frozenset()

    def modules(self, words: Collection[str], scripts: Iterable[Path] = ()) -> Modules:
        """The modules that these dotted words name, these Python files, and all that they import."""
        found = Modules()
        for word in filter(self._may_be_module, words):
            found.files |= dict.fromkeys(self._places(word.split("."), self.folders))
        for script in scripts:
            found.files[script] = None
        waiting = list(found.files)
        for file in waiting:  # which grows
            imports = imports_of(file)
            if imports is None:
                continue
            if imports.untold:
                found.untold.append(file)
            folders = (*self.folders, file.parent)
            for parts in imports.names:
                places = list(self._relative(file, parts) if not parts[0] else self._places(parts, folders))
                if parts[0] in self.gone and not any(place.is_file() for place in places):
                    found.untold.append(file)  # it is found by a way that is not known here
                for place in places:
                    if place not in found.files:
                        found.files[place] = file
                        waiting.append(place)
        return found

    def _may_be_module(self, word: str) -> bool:
        name, dot, _ = word.partition(".")
        if name in self.gone or any(name in _names_in(folder) for folder in self.folders):
            return True
        return bool(dot) and _installed_in(name, self.project) is not None

    def _places(self, parts: Sequence[str], folders: Sequence[Path]) -> Iterator[Path]:
        """The files of `pkg.mod.attr`, existing or not: of each folder, up to that in which the first is."""
        for folder in dict.fromkeys(folders):
            places = list(_below(folder, parts))
            yield from places
            if any(place.is_file() for place in places[:2]):
                return
        if (installed := _installed_in(parts[0], self.project)) is not None:
            yield from _below(installed, parts)

    def _relative(self, file: Path, parts: Sequence[str]) -> Iterator[Path]:
        """The files of a relative import: one empty part for each dot."""
        dots = next((at for at, part in enumerate(parts) if part), len(parts))
        folder = file.parent
        for _ in range(dots - 1):
            folder = folder.parent
        yield folder / "__init__.py"
        yield from _below(folder, parts[dots:])


def _below(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    """The files that `parts` may be in: of each part the module, and the package."""
    for at, part in enumerate(parts):
        yield folder / f"{part}.py"
        yield folder / part / "__init__.py"
        folder = folder / part
        if at < len(parts) - 1 and not folder.is_dir():
            return


@lru_cache(maxsize=4096)
def _installed_in(name: str, project: Path) -> Path | None:
    """The folder in which a top-level module of the project itself is installed, in an editable way."""
    if name in sys.stdlib_module_names or name in sys.builtin_module_names:
        return None
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    places = [spec.origin] if spec and spec.has_location and spec.origin else []
    folders = {Path(place).parent for place in places} | {
        Path(place) for place in (spec.submodule_search_locations or () if spec else ())
    }
    for folder in folders:
        at = folder.resolve()
        if at.is_relative_to(project) and "site-packages" not in at.parts:
            return at.parent if at.name == name else at
    return None


@dataclass(frozen=True)
class Imports:
    """The import statements of a module: the dotted parts of each name, a leading empty part for each dot.

    untold: it may import what these do not name
    """

    names: tuple[tuple[str, ...], ...]
    untold: bool = False


def imports_of(file: Path) -> Imports | None:
    """The imports of a Python file; None if there is no such file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return _imports(file, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=4096)
def _imports(file: Path, _modified_ns: int, _size: int) -> Imports:
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return Imports((), untold=True)
    names: dict[tuple[str, ...], None] = {}
    untold = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {tuple(alias.name.split(".")): None for alias in node.names}
            untold = untold or any(alias.name in _DYNAMIC for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = (*[""] * node.level, *(node.module.split(".") if node.module else ()))
            names |= {(*base, alias.name): None for alias in node.names}
            if node.module and not node.level:
                imported = {f"{node.module}.{alias.name}" for alias in node.names}
                untold = untold or bool(_DYNAMIC & (imported | {node.module} - {"importlib"}))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            untold = untold or node.func.id in _DYNAMIC_CALLS
        elif isinstance(node, ast.Attribute) and node.attr == "path" and isinstance(node.value, ast.Name):
            untold = untold or f"{node.value.id}.path" in _DYNAMIC
    return Imports(tuple(names), untold)


def _names_in(folder: Path) -> frozenset[str]:
    """The names of modules and packages in a folder."""
    try:
        return _listed(folder, folder.stat().st_mtime_ns)
    except OSError:
        return frozenset()


@lru_cache(maxsize=1024)
def _listed(folder: Path, _modified_ns: int) -> frozenset[str]:
    return frozenset(each.stem for each in folder.iterdir() if each.suffix == ".py" or each.is_dir())
