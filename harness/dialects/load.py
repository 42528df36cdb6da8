"""From a manifest to a Graph, whatever its dialect. `DIALECTS` is the one list of front ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem, Span
from harness.graph.model import Graph
from harness.source.document import Document, read, shown_path
from harness.source.suggest import did_you_mean


@dataclass(frozen=True)
class Dialect:
    """A front end: `<package>.document.detect(Document) -> bool`, `<package>.compile.load(LoadRequest) -> Graph`.

    `agents` names where a document keeps its agents, for `harness validate` and `show`.
    """

    name: str
    package: str
    title: str

    def detect(self, document: Document) -> bool:
        """Whether a document is of this dialect."""
        found: Callable[[Document], bool] = self._part("document").detect
        return found(document)

    def load(self, request: LoadRequest) -> Graph:
        """Compile a manifest."""
        compile_: Callable[[LoadRequest], Graph] = self._part("compile").load
        return compile_(request)

    def agents(self, document: Document) -> list[str]:
        """The agents a document defines, in order."""
        names: Callable[[Document], list[str]] = self._part("document").agents
        return names(document)

    def _part(self, name: str) -> Any:
        return import_module(f"{self.package}.{name}")


GROUP: Final = "harness.dialects"

DIALECTS: Final[dict[str, Dialect]] = {
    "sherma": Dialect("sherma", "harness.dialects.sherma", "sherma agents (YAML + CEL, manifest version 1)"),
    "agentspec": Dialect("agentspec", "harness.dialects.agentspec", "Agent Spec configurations (25.4.1)"),
    "yagra": Dialect("yagra", "harness.dialects.yagra", "Yagra workflows (YAML, LangGraph)"),
}


@lru_cache(maxsize=1)
def dialects() -> Mapping[str, Dialect]:
    """The front ends by name: ours, and those of other packages (entry points `harness.dialects`, name = package)."""
    others = {point.name: Dialect(point.name, point.value, point.name) for point in entry_points(group=GROUP)}
    return {**others, **DIALECTS}


def dialect_named(name: str) -> Dialect:
    """The dialect of that name.

    Raises:
        ManifestError: there is none.
    """
    if name not in dialects():
        hint = did_you_mean(name, dialects())
        raise ManifestError(Problem("unknown-dialect", f"no dialect '{name}' can be run", None, hint))
    return dialects()[name]


def dialect_of(path: Path, named_at: Span | None = None) -> Dialect:
    """The dialect a manifest is written in, by its content.

    Raises:
        ManifestError: it cannot be read, or no dialect knows it.
    """
    document = read(path, named_at=named_at)
    for dialect in dialects().values():
        if dialect.detect(document):
            return dialect
    text = f"{shown_path(path)} is a manifest of no known dialect ({', '.join(dialects())})"
    raise ManifestError(
        Problem("unknown-dialect", text, document.span(), "say `dialect:` if it is one of these")
    )


def load_graph(request: LoadRequest, dialect: str | None = None) -> Graph:
    """The compiled graph of a manifest; the same one again while its files are unchanged.

    Raises:
        ManifestError: the manifest is refused.
    """
    stamps = tuple(_stamp(path) for path in request.paths)
    key = _Key(request, dialect, stamps, os.getcwd())
    return _load(key)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except (OSError, ValueError):  # what no file is called
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


@dataclass(frozen=True)
class _Key:
    """What makes two loads the same. Files a manifest names are taken to be unchanged during a process."""

    request: LoadRequest
    dialect: str | None
    stamps: tuple[tuple[int, int], ...]
    here: str  # what relative paths are relative to

    def __hash__(self) -> int:
        env = tuple(sorted(self.request.env.items()))
        return hash(
            (self.request.paths, self.request.agent, env, self.request.hooks, self.dialect, self.stamps)
        )


@lru_cache(maxsize=128)
def _load(key: _Key) -> Graph:
    dialect = (
        dialect_named(key.dialect) if key.dialect else dialect_of(key.request.path, key.request.named_at)
    )
    graph = dialect.load(key.request)
    return replace(graph, sources=(*key.request.paths, *key.request.named))
