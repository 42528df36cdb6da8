"""The dialect of LangGraph apps: the members of `harness.dialects.dialect.Dialect`, and what a manifest names.

graph.py:graph      an object in a file
app.graph:graph     an object in a module, which is found from the folder of the manifest
langgraph.json      objects by the names of graphs, the folders of their modules, and variables
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from harness.dialects.dialect import lazy_function
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from harness.source.display import did_you_mean, nearest
from harness.source.document import Document
from harness.source.project import marked_root
from harness.source.yaml import Version

FILE: Final = "langgraph.json"
_OTHER_LANGUAGES: Final = (".ts", ".js", ".mts", ".mjs", ".tsx", ".jsx")
_READ: Final = ("graphs", "dependencies", "env")


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
    """Return the name by which the modules of an app import this file; "" if they cannot.

    There may be several. A file in a package is a module of that package, whose relative imports work. With `src`
    and the folder around it, the longer name is taken if it is what the file, or a package that it is in, imports
    from (`from src.agent.tools import …`), as a file has one module.
    """
    inside = [Path(folder) for folder in folders if file.is_relative_to(folder)]
    inside.sort(key=lambda folder: ((folder / "__init__.py").is_file(), -len(folder.parts)))
    names = []
    for folder in inside:
        parts = list(file.relative_to(folder).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        if parts and all(map(str.isidentifier, parts)):
            names.append(".".join(parts))
    return next(
        (name for name in names if names[1:] and _is_imported_from(name, file)), next(iter(names), "")
    )


def _is_imported_from(name: str, file: Path) -> bool:
    """True if a file, or a package that it is in, imports from the outermost package of this name."""
    package, *inner = name.split(".")
    around = [folder / "__init__.py" for folder, _ in zip(file.parents, inner, strict=False)]
    wanted = re.compile(rf"^\s*(?:from|import)\s+{re.escape(package)}\b", re.MULTILINE)
    return any(
        each.is_file() and wanted.search(each.read_text("utf-8", "replace")) for each in (file, *around)
    )


@dataclass(frozen=True)
class App:
    """The content of a manifest: the object, where its modules are, and their variables.

    Attributes:
        environment: the variables of the manifest.
        own: those of the scenario, which count more than the manifest's, and than what the app makes of them.
    """

    target: Target
    name: str
    folders: tuple[str, ...]
    environment: Mapping[str, str]
    own: Mapping[str, str]
    warnings: tuple[Problem, ...] = ()


def app_of(request: LoadRequest) -> App:
    """Return what a manifest says of an app.

    Raises:
        ManifestError: it names none that can run here.
    """
    path = request.path
    if is_object(path):
        target = target_at(path.name, path.parent)
        return App(target, "", import_folders(target, ()), {}, dict(request.env))
    document = request.read(path, yaml="1.2", named_at=request.named_at)
    graphs = document.value.get("graphs") if isinstance(document.value, dict) else None
    if not isinstance(graphs, dict) or not graphs:
        text = f"{path.name} has no graphs: expected a mapping from names to ./file.py:object"
        raise ManifestError(Problem("not-a-graph", text, document.span()))
    name = request.agent or next(iter(graphs))
    if name not in graphs:
        text = f"{path.name} has no graph '{name}'"
        raise ManifestError(
            Problem("unknown-agent", text, request.agent_at, did_you_mean(name, list(graphs)))
        )
    if request.agent is None and len(graphs) > 1:
        text = f"{path.name} has {len(graphs)} graphs, and nothing says which one runs"
        hint = f"agent: one of {', '.join(graphs)}"
        raise ManifestError(Problem("unknown-agent", text, request.named_at or document.span(), hint))
    written = graphs[name]["path"] if isinstance(graphs[name], dict) else graphs[name]
    at = document.span(("graphs", name))
    where = written.rpartition(":")[0]
    if where.endswith(_OTHER_LANGUAGES):
        text = f"the graph '{name}' is {written}: graphs in JavaScript and TypeScript do not run here"
        hint = "`harness serve` answers the models of its process: docs/serve.md"
        raise ManifestError(Problem("not-runnable", text, at, hint))
    target = target_at(written, path.parent)
    if target.file is not None and not target.file.is_file():
        raise ManifestError(Problem("missing-file", f"file '{where}' does not exist", at))
    dependencies = document.value.get("dependencies") or ()
    folders = tuple(
        path.parent / each for each in dependencies if isinstance(each, str) and each.startswith(".")
    )
    env = document.value.get("env")
    # A text names a .env file, which has real keys: it is not read.
    given = {key: str(value) for key, value in env.items()} if isinstance(env, dict) else {}
    warnings = tuple(_misspelt_keys(document))
    return App(target, name, import_folders(target, folders), given, dict(request.env), warnings)


def _misspelt_keys(document: Document) -> Iterator[Problem]:
    """Yield a warning for each key that resembles one that is read. The platform of LangGraph has many more."""
    for key in document.value:
        if key not in _READ and (meant := nearest(key, _READ)) and meant not in document.value:
            text = f"unknown key '{key}' in {FILE}: it is ignored"
            yield Problem(
                "unknown-key", text, document.key_span((key,)), f"did you mean '{meant}'?", severity="warning"
            )


# ------------------------------------------------------------------ the members of the dialect


name = "langgraph"
title = "LangGraph apps (langgraph.json, or an object of a module)"
yaml: Version = "1.2"
load = lazy_function("harness.dialects.langgraph.compile:load")
claims = is_object
preload = lazy_function("harness.dialects.langgraph.compile:preload")
prompts = lazy_function("harness.dialects.langgraph.prompts:prompts")


def locate(path: Path) -> Sequence[Path]:
    """Return the `langgraph.json` of a folder. Anything else stands for itself."""
    if not os.path.isdir(path):
        return (path,)
    return (path / FILE,) if (path / FILE).is_file() else ()


def detect(document: Document) -> bool:
    """True if a document has `graphs`, a mapping from names to `./file.py:object` or `module:object`."""
    value = document.value
    graphs = value.get("graphs") if isinstance(value, dict) else None
    if not isinstance(graphs, dict):
        return False
    targets = [each.get("path") if isinstance(each, dict) else each for each in graphs.values()]
    return bool(targets) and all(isinstance(each, str) and ":" in each for each in targets)


def agents(document: Document) -> list[str]:
    """Return the names of the graphs."""
    graphs = document.value.get("graphs") if isinstance(document.value, dict) else None
    return list(graphs) if isinstance(graphs, dict) else []
