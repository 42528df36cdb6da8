"""The Python files of a mesh: those that `auto_discover` finds, and the project's modules that they import.

    configs/config.yaml     auto_discover: {directory: ./agency, pattern: "*_agent.py"}
    agency/desk_agent.py    found: the module `agency.desk_agent`
    agency/tools.py         found, whatever the pattern is
    agency/prices.py        found if one of the others imports it

A mesh without `auto_discover` uses the folder `agency` and the pattern `*_agent.py`, as in this example. The
project folder is the nearest folder that holds both the mesh file and the directory; modules are named from
it, and are searched there first, then in the directory. Files are parsed here, never imported. spec: "How
This Project Works"; NOTES 1.9.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from harness.dialects.kit.rules import warning
from harness.dialects.leafmesh.document import AutoDiscover, Mesh
from harness.dialects.request import FolderListing, LoadRequest
from harness.errors import ManifestError, Problem, Span
from harness.source.document import Document, hint_for_missing, shown_path
from harness.source.imports import failed_import
from harness.source.modules import bindings

DIRECTORY: Final = ("auto_discover", "directory")
_PATTERN: Final = ("auto_discover", "pattern")
_CONFIGS: Final = "configs"
_AGENCY: Final = "agency"
_PATTERN_IMPLIED: Final = "*_agent.py"
_TOOLS: Final = "tools.py"
PACKAGE: Final = "leafmesh"


@dataclass(frozen=True)
class PythonFile:
    """A file of the project. `module` is its dotted name."""

    path: Path
    module: str
    tree: ast.Module

    @cached_property
    def bindings(self) -> dict[str, ast.stmt]:
        """The statement that binds each name of the module."""
        return bindings(self.tree)

    def span(self, node: ast.stmt | ast.expr | ast.alias) -> Span:
        """The location of a part of the file."""
        return Span(shown_path(self.path), node.lineno, node.col_offset + 1)

    @cached_property
    def imports(self) -> Sequence[ast.Import | ast.ImportFrom]:
        """All import statements of the file, also those inside functions."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom)]

    @property
    def has_lazy_imports(self) -> bool:
        """True if it has imports inside functions, which run only when the function is called."""
        at_once = set(_statements(self.tree.body))
        return any(statement not in at_once for statement in self.imports)

    @cached_property
    def leafmesh_names(self) -> Mapping[str, str]:
        """Local names of `leafmesh` and its members, each with its original name: `{"t": "tool"}`."""
        found: dict[str, str] = {}
        for statement in self.imports:
            if isinstance(statement, ast.Import):
                found |= {
                    alias.asname or PACKAGE: PACKAGE for alias in statement.names if alias.name == PACKAGE
                }
            elif statement.module == PACKAGE and not statement.level:
                found |= {alias.asname or alias.name: alias.name for alias in statement.names}
        return found

    @property
    def package(self) -> str:
        """The package that relative imports of this file start from."""
        return self.module if self.path.name == "__init__.py" else self.module.rpartition(".")[0]


@dataclass(frozen=True)
class AgencyFiles:
    """The Python files of one agency.

    directory  the directory of `auto_discover`
    found      files that are searched for functions of agents and for tools
    imported   modules that these import, which are searched for tools only
    folders    folders that modules are imported from
    """

    directory: Path

    found: Sequence[PythonFile]
    imported: Sequence[PythonFile]
    folders: tuple[Path, ...]
    warnings: Sequence[Problem] = ()

    @property
    def has_lazy_imports(self) -> bool:
        """True if one of the files has imports inside functions."""
        return any(file.has_lazy_imports for file in self)

    def __iter__(self) -> Iterator[PythonFile]:
        return iter((*self.found, *self.imported))


def _implied_auto_discover(mesh: Mesh, request: LoadRequest) -> AutoDiscover | None:
    """Return the `auto_discover` of a mesh that has none but follows the documented layout; else None.

    The folder `agency` is expected beside the mesh file or, if that is in a folder `configs`, beside this
    folder.
    """
    base = request.base_path
    if base is None or "auto_discover" in mesh.model_fields_set:
        return None
    for folder in (base, base.parent) if base.name == _CONFIGS else (base,):
        agency = folder / _AGENCY
        request.record(agency)
        if agency.is_dir() and request.may_read(agency.resolve()):
            return AutoDiscover(directory=_AGENCY, pattern=_PATTERN_IMPLIED, recursive=False)
    return None


def agency_files(mesh: Mesh, document: Document, request: LoadRequest) -> AgencyFiles | None:
    """Find and parse the Python files of a mesh; None without `auto_discover` and the documented layout.

    Raises:
        ManifestError: the directory is missing or may not be read, or a file in it cannot be parsed.
    """
    discover = mesh.auto_discover or _implied_auto_discover(mesh, request)
    if discover is None:
        return None
    listing = _list_directory(discover, document, request)
    project = _project_folder(listing.path, request)
    others = (folder.resolve() for folder in request.folders)
    folders = tuple(dict.fromkeys((project, listing.path, *others)))
    paths = dict.fromkeys(listing.files)
    if (tools := listing.path / _TOOLS).is_file():
        request.record(tools)
        paths[tools] = None
    reader = _Reader(document.span(DIRECTORY))
    modules = (path for path in paths if path.suffix == ".py" and path != project / "__init__.py")
    found = [file for path in modules if (file := reader.read_found(path, project))]
    imported = _imported_files(found, (project, listing.path), reader)
    if reader.problems:
        raise ManifestError(reader.problems)
    warnings = []
    if not listing.files and "auto_discover" in document.value:
        text = f"no file in '{discover.directory}' matches the pattern '{discover.pattern}'"
        why = "a pattern is compared with the names of files, without their folders"
        hint = why if "/" in discover.pattern else ""
        warnings.append(warning("no-agent-files", text, document.span(_PATTERN), hint))
    return AgencyFiles(listing.path, found, imported, folders, warnings)


def _list_directory(discover: AutoDiscover, document: Document, request: LoadRequest) -> FolderListing:
    """List the directory: looked up beside the mesh file, then beside the folder of the mesh file."""
    written, base, span = discover.directory, request.base_path, document.span(DIRECTORY)
    if base is not None and not (base / written).is_dir():
        request.record(base / written)
        above = os.path.join(os.pardir, written)
        if (base / above).is_dir():
            written = above
        elif not (base / written).exists() and (
            hint := hint_for_missing(Path(os.path.normpath(base / above)))
        ):
            raise ManifestError(Problem("missing-file", f"folder '{written}' does not exist", span, hint))
    return request.resolve_folder(written, span, discover.pattern, recursive=discover.recursive)


def _project_folder(directory: Path, request: LoadRequest) -> Path:
    base = request.base_path
    if base is None:
        return directory.parent
    common = Path(os.path.commonpath([directory, base]))
    return common if request.may_read(common) else directory.parent


class _Reader:
    """Parses files, and collects the problems of those that cannot be parsed in `problems`."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self.problems: list[Problem] = []

    def read_found(self, path: Path, project: Path) -> PythonFile | None:
        """Parse a file and name its module relative to the project folder; None if there is a problem."""
        parts = path.relative_to(project).with_suffix("").parts
        if any("." in part for part in parts):
            text = f"'{path.relative_to(project)}' cannot be imported: a module name cannot contain a dot"
            self.problems.append(Problem("import", text, self._span, "rename it"))
            return None
        return self.read(path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts))

    def read(self, path: Path, module: str) -> PythonFile | None:
        """Parse a file; None if there is a problem."""
        try:
            return PythonFile(path, module, ast.parse(path.read_bytes(), str(path)))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            problem = failed_import(module, module, error)
            self.problems.append(Problem("import", problem.message, self._span, problem.hint))
            return None


def _imported_files(
    found: Sequence[PythonFile], folders: Sequence[Path], reader: _Reader
) -> Sequence[PythonFile]:
    """Parse the modules of these folders that the files import, directly or through one another."""
    known = {file.path for file in found}
    files = [*found]
    for importing in files:  # it grows
        for name in _imported_names(importing):
            path = next((path for folder in folders if (path := _module_file(name, folder))), None)
            if path is not None and path not in known:
                known.add(path)
                files += filter(None, [reader.read(path, name)])
    return files[len(found) :]


def _imported_names(file: PythonFile) -> Iterator[str]:
    """Yield the dotted names that the file imports at import time and that may be modules."""
    for statement in _statements(file.tree.body):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            package = file.package.split(".")
            above = package[: len(package) - statement.level + 1] if statement.level else []
            module = ".".join([*above, *filter(None, [statement.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in statement.names)


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            blocks = [statement.body, getattr(statement, "orelse", []), getattr(statement, "finalbody", [])]
            blocks += [handler.body for handler in getattr(statement, "handlers", [])]
            for block in blocks:
                yield from _statements(block)


def _module_file(module: str, folder: Path) -> Path | None:
    path = folder.joinpath(*module.split("."))
    if not module or path == folder:
        return None
    options = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((option for option in options if option.is_file()), None)
