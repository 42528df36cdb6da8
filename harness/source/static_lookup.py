"""Lookup of Python objects by dotted path in the source of their modules, without importing anything.

The module must exist and parse, and one of its statements must bind the name. If the source cannot decide that (a
star import, a `__getattr__`, no source at all), the object is assumed to exist.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator, Sequence
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
from typing import Final

from harness.source.imports import check_dotted, failed_import, no_member, no_module

_LOADERS: Final = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (SourceFileLoader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def look_up(dotted: str, folders: Sequence[Path] = ()) -> ast.stmt | None:
    """Return the statement that binds the object at `pkg.mod.attr`; None if only an import could find it.

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
