"""Loading manifests of any dialect: graphs, prompts, scenarios, tunables and the files that are read.

A request is located (the dialect says which files its path stands for) and handed to the front end. Graphs are
cached until one of their files or folders changes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.dialects.dialect import Dialect, Prompt, Tunable
from harness.dialects.registry import dialect_named, dialect_of
from harness.dialects.request import LoadRequest, Stamp, stamp
from harness.errors import ManifestError
from harness.graph.model import Graph
from harness.graph.names import names_of
from harness.graph.native import NativeGraph
from harness.source.document import Document
from harness.source.frames import located_defects

_MAX_CACHED_GRAPHS: Final = 128


def load_graph(request: LoadRequest, dialect: str | None = None) -> Graph:
    """Return the compiled graph of a manifest; the same object until one of its files or folders changes.

    That of an app belongs to the invocation and to the loop of its run, and is made in each.

    Python modules that a manifest names are imported once per process, even if they change later.

    Raises:
        ManifestError: the manifest is refused.
    """
    key = _Key(request, dialect, os.getcwd())
    entry = _CACHE.get(key)
    if entry is None or entry.is_stale():
        with located_defects(request.path, request.named_at):
            entry = _load(key)
        if isinstance(entry.graph, NativeGraph):
            return entry.graph
        _CACHE[key] = entry
        if len(_CACHE) > _MAX_CACHED_GRAPHS:
            del _CACHE[next(iter(_CACHE))]
    return entry.graph


@dataclass(frozen=True)
class _Key:
    """The key of a cached graph: everything but the files that a graph depends on."""

    request: LoadRequest
    dialect: str | None
    working_folder: str  # the base of relative paths

    def __hash__(self) -> int:
        request = self.request
        env = tuple(sorted(request.env.items()))
        return hash((request.paths, request.agent, env, request.hooks, self.dialect))


@dataclass(frozen=True)
class _CacheEntry:
    """A graph, and the stamps of its files and folders when it was compiled."""

    graph: Graph
    stamps: Mapping[Path, Stamp | None]

    def is_stale(self) -> bool:
        """True if a file or folder has changed. Sub-agents add their files when they are first called."""
        return any(stamp(path) != before for path, before in list(self.stamps.items()))


_CACHE: Final[dict[_Key, _CacheEntry]] = {}


def load_prompts(request: LoadRequest, dialect: str | None = None) -> Sequence[Prompt]:
    """Return every prompt of a manifest and of the manifests nested in it, in the order of the files.

    Raises:
        ManifestError: a prompt, or a part of the manifest that leads to one, is malformed.
    """
    prompts: Sequence[Prompt] = _ask(request, dialect, "prompts")
    return prompts


def load_scenarios(request: LoadRequest, dialect: str | None = None) -> Sequence[Document] | None:
    """Return the scenarios in a manifest; None if its dialect has no scenarios in manifests.

    Raises:
        ManifestError: the manifest is malformed.
    """
    scenarios: Sequence[Document] | None = _ask(request, dialect, "scenarios")
    return scenarios


def load_tunables(request: LoadRequest, dialect: str | None = None) -> Sequence[Tunable]:
    """Return the temperatures and tool lists of a manifest that can be varied; none if its dialect has none.

    Raises:
        ManifestError: the manifest is malformed.
    """
    return _ask(request, dialect, "tunables") or ()


def load_evolution(request: LoadRequest, dialect: str | None = None) -> Document | None:
    """Return the `evolution` section of a manifest; None if the manifest or its dialect has none.

    Raises:
        ManifestError: the manifest is malformed.
    """
    section: Document | None = _ask(request, dialect, "evolution")
    return section


def _ask(request: LoadRequest, dialect: str | None, member: str) -> Any:
    """Return what a member of the dialect answers to a request; None if the dialect does not have it."""
    with located_defects(request.path, request.named_at):
        found = _dialect(request, dialect)
        answer = getattr(found, member, None)
        return answer(_located(request, found)) if answer is not None else None


class FilesRead(NamedTuple):
    """The files that loading a manifest reads or looks for, and the folders that it lists.

    refused  the reason why there may be more: the manifest, or one nested in it, cannot be loaded; "" otherwise
    """

    files: tuple[Path, ...]
    folders: tuple[Path, ...]
    refused: str = ""


def files_read(request: LoadRequest, dialect: str | None = None) -> FilesRead:
    """Return the files of a manifest, of the manifests nested in it, and of its prompts, scripts and skills."""
    request = replace(request, stamps={})
    refused = ""
    try:
        with located_defects(request.path, request.named_at):
            found = _dialect(request, dialect)
            request = _located(request, found)
            names = names_of(found.load(request))  # this loads the nested graphs too
        refused = next((why for why in names.open.values() if "cannot be read" in why), "") if names else ""
    except ManifestError as error:
        refused = error.problems[0].one_line
    for path in request.paths:
        request.record(path)
    stamps = request.stamps.items()
    folders = tuple(path for path, seen in stamps if seen is not None and seen.is_folder)
    return FilesRead(request.files(), folders, refused)


def _load(key: _Key) -> _CacheEntry:
    dialect = _dialect(key.request, key.dialect)
    request = _located(key.request, dialect)
    for path in request.paths:
        request.record(path)
    try:
        graph = request.changes.graph(dialect.load(request), request.path)
    except ManifestError as error:
        raise _with_likely_dialect(error, request, key.dialect) from None
    return _CacheEntry(replace(graph, sources=request.files()), request.stamps)


def _with_likely_dialect(error: ManifestError, request: LoadRequest, named: str | None) -> ManifestError:
    """Return the error, with a hint if the manifest looks like another dialect than the one `named`."""
    try:
        likely = dialect_of(request.path).name if named else named
    except ManifestError:  # no dialect recognizes it
        return error
    if likely == named:
        return error
    first, *others = error.problems
    hint = f"it looks like a manifest of {likely}, and `dialect` says {named}"
    return ManifestError([replace(first, hint=f"{first.hint}; {hint}" if first.hint else hint), *others])


def _dialect(request: LoadRequest, name: str | None) -> Dialect:
    return dialect_named(name) if name else dialect_of(request.path, request.named_at)


def _located(request: LoadRequest, dialect: Dialect) -> LoadRequest:
    """Return the request with `paths` located by the dialect.

    If the path is a folder, modules beside the manifest in it can be imported.
    """
    located = tuple(dialect.locate(request.path)) or (request.path,)
    folders = request.folders if located[0] == request.path else (located[0].parent, *request.folders)
    return replace(request, paths=(*located, *request.paths[1:]), folders=folders, stamps={})
