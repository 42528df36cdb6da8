"""From a manifest to a Graph, whatever its dialect; the same Graph again while nothing it was made of has changed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from harness.dialects.dialect import Dialect
from harness.dialects.prompt import Prompt
from harness.dialects.registry import dialect_named, dialect_of
from harness.dialects.request import LoadRequest, Stamp, stamp
from harness.dialects.tunable import Tunable
from harness.errors import ManifestError
from harness.graph.model import Graph
from harness.graph.names import names_of
from harness.source.document import Document

_MOST: Final = 128  # graphs that are kept


def load_graph(request: LoadRequest, dialect: str | None = None) -> Graph:
    """The compiled graph of a manifest; the same object while the files and folders it was made of are unchanged.

    Python modules that a manifest names are imported once in a process, changed or not.

    Raises:
        ManifestError: the manifest is refused.
    """
    key = _Key(request, dialect, os.getcwd())
    kept = _KEPT.get(key)
    if kept is None or kept.is_stale():
        kept = _KEPT[key] = _load(key)
        if len(_KEPT) > _MOST:
            del _KEPT[next(iter(_KEPT))]
    return kept.graph


@dataclass(frozen=True)
class _Key:
    """The inputs of a load: equal inputs and unchanged files make the same graph."""

    request: LoadRequest
    dialect: str | None
    working_folder: str  # what relative paths are relative to

    def __hash__(self) -> int:
        request = self.request
        env = tuple(sorted(request.env.items()))
        return hash((request.paths, request.agent, env, request.hooks, self.dialect))


@dataclass(frozen=True)
class _Kept:
    """A graph, and what the files and folders it was made of looked like."""

    graph: Graph
    stamps: Mapping[Path, Stamp | None]

    def is_stale(self) -> bool:
        """True if one of them has changed. Sub-agents add theirs when they are first called."""
        return any(stamp(path) != before for path, before in list(self.stamps.items()))


_KEPT: Final[dict[_Key, _Kept]] = {}


def load_prompts(request: LoadRequest, dialect: str | None = None) -> Sequence[Prompt]:
    """Every prompt of a manifest and of the manifests that are part of it, in the order of the files.

    Raises:
        ManifestError: a prompt, or what leads to it, is not as it should be.
    """
    found = _dialect(request, dialect)
    return found.prompts(_located(request, found))


def load_scenarios(request: LoadRequest, dialect: str | None = None) -> Sequence[Document] | None:
    """The scenarios in a manifest, as `WithScenarios` gives them; None where its dialect has no such thing.

    Raises:
        ManifestError: the manifest, or what leads to it, is not as it should be.
    """
    found = _dialect(request, dialect)
    scenarios = getattr(found, "scenarios", None)
    return scenarios(_located(request, found)) if scenarios is not None else None


def load_tunables(request: LoadRequest, dialect: str | None = None) -> Sequence[Tunable]:
    """The temperatures and lists of tools of a manifest that can be varied; none where its dialect lists none.

    Raises:
        ManifestError: the manifest is not as it should be.
    """
    found = _dialect(request, dialect)
    tunables = getattr(found, "tunables", None)
    return tunables(_located(request, found)) if tunables is not None else ()


def load_evolution(request: LoadRequest, dialect: str | None = None) -> Document | None:
    """The section of a manifest that says how it is to be evolved; None where it, or its dialect, has none.

    Raises:
        ManifestError: the manifest is not as it should be.
    """
    found = _dialect(request, dialect)
    evolution = getattr(found, "evolution", None)
    return evolution(_located(request, found)) if evolution is not None else None


class FilesRead(NamedTuple):
    """The files that loading a manifest reads or looks for, and the folders that it lists.

    refused  why there may be more: the manifest, or one inside it, cannot be loaded; "" otherwise
    """

    files: tuple[Path, ...]
    folders: tuple[Path, ...]
    refused: str = ""


def files_read(request: LoadRequest, dialect: str | None = None) -> FilesRead:
    """What the front end reads for a manifest, for those inside it, and for its prompts, scripts and skills."""
    request = replace(request, stamps={})
    refused = ""
    try:
        found = _dialect(request, dialect)
        request = _located(request, found)
        names = names_of(found.load(request))  # which loads the graphs inside
        refused = next((why for why in names.open.values() if "cannot be read" in why), "") if names else ""
    except ManifestError as error:
        refused = error.problems[0].one_line
    for path in request.paths:
        request.record(path)
    stamps = request.stamps.items()
    folders = tuple(path for path, seen in stamps if seen is not None and seen.is_folder)
    return FilesRead(request.files(), folders, refused)


def _load(key: _Key) -> _Kept:
    dialect = _dialect(key.request, key.dialect)
    request = _located(key.request, dialect)
    for path in request.paths:
        request.record(path)
    try:
        graph = dialect.load(request)
    except ManifestError as error:
        raise _with_likely_dialect(error, request, key.dialect) from None
    return _Kept(replace(graph, sources=request.files()), request.stamps)


def _with_likely_dialect(error: ManifestError, request: LoadRequest, named: str | None) -> ManifestError:
    """The error with the dialect that the manifest looks like, where another one is named."""
    try:
        likely = dialect_of(request.path).name if named else named
    except ManifestError:  # it looks like none
        return error
    if likely == named:
        return error
    first, *others = error.problems
    hint = f"it looks like a manifest of {likely}, and `dialect` says {named}"
    return ManifestError([replace(first, hint=f"{first.hint}; {hint}" if first.hint else hint), *others])


def _dialect(request: LoadRequest, name: str | None) -> Dialect:
    return dialect_named(name) if name else dialect_of(request.path, request.named_at)


def _located(request: LoadRequest, dialect: Dialect) -> LoadRequest:
    """The request for the files that its path stands for. Modules beside a manifest in a folder can be imported."""
    located = tuple(dialect.locate(request.path)) or (request.path,)
    folders = request.folders if located[0] == request.path else (located[0].parent, *request.folders)
    return replace(request, paths=(*located, *request.paths[1:]), folders=folders, stamps={})
