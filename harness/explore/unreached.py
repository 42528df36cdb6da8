"""The parts of a graph that no run reached, and whether one could."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.explore.attempt import Feature
from harness.graph.model import Graph
from harness.scenario.evaluation import graph_shape
from harness.source.document import shown_path

NOT_DRAWN: Final = "no drawn answer led there"
IMPOSSIBLE: Final = "no answer can lead there"
PARTS: Final = {"nodes": "node", "edges": "edge", "branches": "branch"}


@dataclass(frozen=True)
class Unreached:
    """A part that no run took: a `node`, an `edge` or a `branch`, its name, `file:line`, and the reason."""

    kind: str
    name: str
    where: str | None
    why: str


def coverage(graph: Graph, manifest: Path, taken: Collection[Feature]) -> dict[str, list[int]]:
    """Return [taken, all] of each kind of parts."""
    shape = _shape(graph, manifest)
    return {
        part: [sum((part, each) in taken for each in places), len(places)] for part, places in shape.items()
    }


def unreached(graph: Graph, manifest: Path, taken: Collection[Feature]) -> Iterator[Unreached]:
    """Yield the parts of a graph that were not taken. An edge whose branches are listed is not listed itself."""
    shape = _shape(graph, manifest)
    flaws = _flaws(graph)
    with_branch = {str(name).partition(" [")[0] for name in shape["branches"]}
    for part, places in shape.items():
        for each, where in places.items():
            name = each if isinstance(each, str) else " -> ".join(each)
            if (part, each) in taken or (part == "edges" and name in with_branch):
                continue
            flaw = flaws.get(where or "")
            yield Unreached(PARTS[part], name, where, f"{IMPOSSIBLE}: {flaw}" if flaw else NOT_DRAWN)


def _shape(graph: Graph, manifest: Path) -> dict[str, dict[str | tuple[str, str], str | None]]:
    shown = shown_path(manifest)
    shape = graph_shape(graph, shown)
    return {
        part: {
            (each if isinstance(each, str) else (each[0], each[1])): _where(line, shown)
            for each, line in zip(shape[part], shape["lines"][part], strict=True)
        }
        for part in PARTS
    }


def _where(line: int | str | None, manifest: str) -> str | None:
    return f"{manifest}:{line}" if isinstance(line, int) else line


_FLAWS: Final = ("dead-", "unreach")
"""How the codes of the problems begin by which a dialect tells that something never runs."""


def _flaws(graph: Graph) -> Mapping[str, str]:
    """Return why what stands in a line can never run, by the rules of the dialect."""
    found: dict[str, str] = {}
    for problem in (*graph.warnings, *graph.notes):
        if problem.span is not None and problem.code.startswith(_FLAWS):
            found.setdefault(f"{shown_path(problem.span.file)}:{problem.span.line}", problem.message)
    return found
