"""Search for what code imports, and for objects by dotted path, in the source of Python modules.

Nothing is imported.

    words of a manifest ──▶ modules of those names in the import folders ──▶ the modules that these import, and so on

A manifest names code in many ways, so any word in it that is the name of a module counts. Paths where a module was
searched but not found are kept as well: a file that appears or disappears there changes what is imported. Imports by
computed names cannot be followed; `dynamic` lists the files that may have some.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from typing import Final, TypeVar

from harness.source.imports import check_dotted, failed_import, no_member, no_module

T = TypeVar("T")

_DYNAMIC: Final = frozenset(
    {"importlib", "importlib.import_module", "importlib.util", "importlib.machinery"}
    | {"pkgutil", "runpy", "imp", "subprocess", "sys.path"}
)
"""The modules and functions that import, or run, something by a name computed at run time."""
_DYNAMIC_CALLS: Final = frozenset({"__import__", "exec", "eval", "execfile"})


@dataclass
class Modules:
    """The modules that code imports.

    Attributes:
        files: the files of the modules, each with the file that imports it; None for those that a manifest names.
        dynamic: the files that may import modules by computed names, or cannot be parsed.
    """

    files: dict[Path, Path | None] = field(default_factory=dict)
    dynamic: list[Path] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """True if no module exists."""
        return not any(path.is_file() for path in self.files)


@dataclass(frozen=True)
class ModuleSearch:
    """A search for modules in the import folders, and in the folders of `sys.path` that are inside the project.

    `changed_names` has the names of modules that were changed, added or removed, so that `folders` may lack them.
    """

    folders: tuple[Path, ...]
    project: Path
    changed_names: frozenset[str] = frozenset()

    def modules(self, words: Collection[str], scripts: Iterable[Path] = ()) -> Modules:
        """Return the modules that these dotted words name, these Python files, and all modules that they import."""
        found = Modules()
        for word in filter(self._may_be_module, words):
            found.files |= dict.fromkeys(self._candidates(word.split("."), self.folders))
        for script in scripts:
            found.files[script] = None
        waiting = list(found.files)
        for file in waiting:  # the loop appends to it
            imports = imports_of(file)
            if imports.dynamic:
                found.dynamic.append(file)
            folders = (*self.folders, file.parent)
            for parts in imports.names:
                paths = [*(self._candidates(parts, folders) if parts[0] else self._relative(file, parts))]
                if parts[0] in self.changed_names and not any(path.is_file() for path in paths):
                    found.dynamic.append(file)  # the import finds it in some other way
                for path in paths:
                    if path not in found.files:
                        found.files[path] = file
                        waiting.append(path)
        return found

    def _may_be_module(self, word: str) -> bool:
        name, dot, _ = word.partition(".")
        if name in self.changed_names or any(name in _names_in(folder) for folder in self.folders):
            return True
        return bool(dot) and _installed_in(name, self.project) is not None

    def _candidates(self, parts: Sequence[str], folders: Sequence[Path]) -> Iterator[Path]:
        """Yield the paths that `pkg.mod.attr` may have, existing or not, up to the first folder that has `pkg`."""
        for folder in dict.fromkeys(folders):
            paths = list(_below(folder, parts))
            yield from paths
            if any(path.is_file() for path in paths[:2]):
                return
        if (installed := _installed_in(parts[0], self.project)) is not None:
            yield from _below(installed, parts)

    def _relative(self, file: Path, parts: Sequence[str]) -> Iterator[Path]:
        """Yield the paths that a relative import may have. `parts` begins with an empty part for each dot."""
        dots = next((at for at, part in enumerate(parts) if part), len(parts))
        folder = file.parent
        for _ in range(dots - 1):
            folder = folder.parent
        yield folder / "__init__.py"
        yield from _below(folder, parts[dots:])


def _below(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    """Yield the paths that a dotted name may have in a folder: for each part, the module and the package."""
    for at, part in enumerate(parts):
        yield folder / f"{part}.py"
        yield folder / part / "__init__.py"
        folder = folder / part
        if at < len(parts) - 1 and not folder.is_dir():
            return


@lru_cache(maxsize=4096)
def _installed_in(name: str, project: Path) -> Path | None:
    """Return the folder of a top-level module of the project that has an editable install, or None."""
    if name in sys.stdlib_module_names or name in sys.builtin_module_names:
        return None
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    origins = [spec.origin] if spec and spec.has_location and spec.origin else []
    folders = (spec.submodule_search_locations if spec else None) or ()
    for folder in {*(Path(origin).parent for origin in origins), *map(Path, folders)}:
        at = folder.resolve()
        if at.is_relative_to(project) and "site-packages" not in at.parts:
            return at.parent if at.name == name else at
    return None


@dataclass(frozen=True)
class Imports:
    """The imports of a module.

    Attributes:
        names: the dotted names, split into parts; those of relative imports begin with an empty part for each dot.
        dynamic: True if the module may import others by computed names, or cannot be parsed.
    """

    names: tuple[tuple[str, ...], ...]
    dynamic: bool = False


def while_unchanged(missing: T) -> Callable[[Callable[[Path], T]], Callable[[Path], T]]:
    """Cache a function of a file while the file is unchanged. The result is `missing` if the file cannot be read."""

    def decorate(function: Callable[[Path], T]) -> Callable[[Path], T]:
        @lru_cache(maxsize=4096)
        def of_version(file: Path, _modified_ns: int, _size: int) -> T:
            return function(file)

        @wraps(function)
        def cached(file: Path) -> T:
            try:
                found = file.stat()
                return of_version(file, found.st_mtime_ns, found.st_size)
            except OSError:
                return missing

        return cached

    return decorate


@while_unchanged(Imports(()))
def imports_of(file: Path) -> Imports:
    """Return the imports of a Python file; none if there is no such file."""
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return Imports((), dynamic=True)
    names: dict[tuple[str, ...], None] = {}
    dynamic = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {tuple(alias.name.split(".")): None for alias in node.names}
            dynamic = dynamic or any(alias.name in _DYNAMIC for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = (*[""] * node.level, *(node.module.split(".") if node.module else ()))
            names |= {(*base, alias.name): None for alias in node.names}
            if node.module and not node.level:
                imported = {f"{node.module}.{alias.name}" for alias in node.names}
                dynamic = dynamic or bool(_DYNAMIC & (imported | {node.module} - {"importlib"}))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            dynamic = dynamic or node.func.id in _DYNAMIC_CALLS
        elif isinstance(node, ast.Attribute) and node.attr == "path" and isinstance(node.value, ast.Name):
            dynamic = dynamic or f"{node.value.id}.path" in _DYNAMIC
    return Imports(tuple(names), dynamic)


@while_unchanged(frozenset[str]())
def _names_in(folder: Path) -> frozenset[str]:
    """Return the names of modules and packages in a folder."""
    return frozenset(entry.stem for entry in folder.iterdir() if entry.suffix == ".py" or entry.is_dir())


# ---------------------------------------------------------------- objects by dotted path

_LOADERS: Final = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (SourceFileLoader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def look_up(dotted: str, folders: Sequence[Path] = ()) -> ast.stmt | None:
    """Return the statement that binds the object at `pkg.mod.attr`; None if only an import could find it.

    The module must exist and parse, and one of its statements must bind the name. If the source cannot decide that (a
    star import, a `__getattr__`, no source at all), the object is assumed to exist.

    Raises:
        ImportProblem: the module or attribute does not exist (with the nearest name), or the module cannot be parsed.
            The messages are those of `import_object`.
    """
    parts = check_dotted(dotted)
    roots = [Path(folder).resolve() for folder in folders]
    spec = _top_level(parts[0], roots)
    if spec is None:
        if parts[0] in sys.modules:  # a module made in this process, such as the stand-in for sherma
            return None
        raise no_module(parts[0], dotted, roots)
    for at in range(1, len(parts)):
        within = list(spec.submodule_search_locations or ())
        inner = _in_folders(".".join(parts[: at + 1]), within)
        if inner is None:
            return _in_module(spec, parts[:at], parts[at:], dotted)
        spec = inner
    return None


def _top_level(name: str, folders: Sequence[Path]) -> ModuleSpec | None:
    found = _in_folders(name, list(map(str, folders)))
    if found is not None:
        return found
    try:
        return importlib.util.find_spec(name)
    except ValueError:  # a module without a spec
        return None


def _in_folders(name: str, folders: Sequence[str]) -> ModuleSpec | None:
    """Return the module in these folders. `PathFinder` would require its package to be imported."""
    plain: list[str] = []
    for folder in folders:
        found = FileFinder(folder, *_LOADERS).find_spec(name)
        if found is not None and found.loader is not None:
            return found
        plain += (found.submodule_search_locations or ()) if found is not None else ()
    if not plain:
        return None
    package = ModuleSpec(name, None, is_package=True)  # folders without an __init__.py
    package.submodule_search_locations = plain
    return package


def _in_module(spec: ModuleSpec, owner: Sequence[str], names: Sequence[str], dotted: str) -> ast.stmt | None:
    if spec.origin is None or not spec.origin.endswith(".py"):
        if spec.loader is None:
            raise no_member(".".join(owner), names[0], dotted, ())  # a namespace package binds no names
        return None
    try:
        tree = ast.parse(Path(spec.origin).read_bytes(), spec.origin)
    except (OSError, SyntaxError, ValueError) as error:
        raise failed_import(".".join(owner), dotted, error) from None
    bound = bindings(tree)
    if names[0] in bound:
        return bound[names[0]] if len(names) == 1 else None
    if "*" in bound or "__getattr__" in bound:
        return None
    raise no_member(".".join(owner), names[0], dotted, list(bound))


def bindings(module: ast.Module) -> dict[str, ast.stmt]:
    """Return the last statement that binds each name of a module. A star import binds `*`."""
    return dict(_bound(module.body))


def _bound(statements: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the names that statements bind, including those inside `if`, `try`, `with` and loops."""
    for statement in statements:
        if isinstance(statement, Function | ast.ClassDef):
            yield statement.name, statement
            continue
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                yield (alias.asname or alias.name.partition(".")[0]), statement
        for node in ast.iter_child_nodes(statement):
            if isinstance(node, ast.expr | ast.withitem):
                yield from ((name, statement) for name in _stored(node))
        for block in ("body", "orelse", "finalbody"):
            yield from _bound(getattr(statement, block, ()))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _bound(part.body)


def _stored(expression: ast.AST) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def name_of_tool(found: ast.stmt | None) -> str | None:
    """Return the name that LangChain gives a tool defined by this statement; None if only an import could tell."""
    if not isinstance(found, Function):
        return None
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in found.decorator_list}
    return found.name if decorators <= {"tool"} else None


def is_plain_function(found: ast.stmt | None) -> bool:
    """True if the statement defines a function without decorators."""
    return isinstance(found, Function) and not found.decorator_list


def is_plain_class(found: ast.stmt | None) -> bool:
    """True if the statement defines a class without decorators."""
    return isinstance(found, ast.ClassDef) and not found.decorator_list
