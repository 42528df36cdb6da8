"""The parts of a graph that no run reached, and whether one could."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.explore.attempt import Feature
from harness.graph.model import Graph
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


Shape = Mapping[str, Any]
"""The parts of a graph, with their lines (`harness.scenario.evaluation.graph_shape`)."""


def coverage(shape: Shape, taken: Collection[Feature]) -> dict[str, list[int]]:
    """Return [taken, all] of each kind of parts."""
    return {
        part: [sum((part, each) in taken for each in found), len(found)]
        for part in PARTS
        for found in [[each for each, _ in _places(shape, part)]]
    }


def unreached(shape: Shape, graph: Graph, manifest: Path, taken: Collection[Feature]) -> Iterator[Unreached]:
    """Yield the parts of a graph that were not taken. An edge whose branches are listed is not listed itself."""
    shown, flaws = shown_path(manifest), _flaws(graph)
    with_branch = {str(name).partition(" [")[0] for name, _ in _places(shape, "branches")}
    for part, kind in PARTS.items():
        for each, line in _places(shape, part):
            name = each if isinstance(each, str) else " -> ".join(each)
            if (part, each) in taken or (part == "edges" and name in with_branch):
                continue
            where = f"{shown}:{line}" if isinstance(line, int) else line
            flaw = flaws.get(where or "")
            yield Unreached(kind, name, where, f"{IMPOSSIBLE}: {flaw}" if flaw else NOT_DRAWN)


def _places(shape: Shape, part: str) -> Iterator[tuple[Any, int | str | None]]:
    """Yield each part of a kind, as a run takes it, with its line."""
    for each, line in zip(shape.get(part, ()), shape.get("lines", {}).get(part, ()), strict=True):
        yield each if isinstance(each, str) else tuple(each), line


_FLAWS: Final = ("dead-", "unreach")
"""The beginnings of the codes by which a dialect tells that something never runs."""


def _flaws(graph: Graph) -> Mapping[str, str]:
    """Return why what stands in a line can never run, by the rules of the dialect."""
    found: dict[str, str] = {}
    for problem in (*graph.warnings, *graph.notes):
        if problem.span is not None and problem.code.startswith(_FLAWS):
            found.setdefault(f"{shown_path(problem.span.file)}:{problem.span.line}", problem.message)
    return found
