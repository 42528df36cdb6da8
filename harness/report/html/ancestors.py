"""The ancestors of a genome, as a list and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.draw.composition import geometry
from harness.graph.model import START
from harness.report.formatting import score
from harness.report.html.evolution_files import Genome

MAX_DRAWN: Final = 24
"""The most ancestors in a picture. If there are more, it shows the line of first parents."""
_MARGIN: Final = 12


def ancestors(genomes: Mapping[str, Genome], of: str) -> list[Genome]:
    """Return a genome and its ancestors, the oldest first."""
    found, waiting = dict[str, Genome](), [of]
    while waiting:
        name = waiting.pop()
        if name in genomes and name not in found:
            found[name] = genomes[name]
            waiting += genomes[name].parents
    order = {name: at for at, name in enumerate(genomes)}
    return sorted(found.values(), key=lambda each: (each.generation, order[each.id]))


def first_parents(genomes: Mapping[str, Genome], of: str) -> list[Genome]:
    """Return a genome, its first parent, that one's first parent, and so on, the oldest first."""
    found: dict[str, Genome] = {}
    name = of
    while name in genomes and name not in found:
        found[name] = genomes[name]
        name = next(iter(genomes[name].parents), "")
    return [*found.values()][::-1]


def picture(drawn: Sequence[Genome]) -> dict[str, Any] | None:
    """Lay out these genomes as {width, height, margin, nodes, edges}, see `harness.draw.composition`.

    The label of the arrow from the first parent describes the change. None if there are fewer than two genomes.
    """
    if len(drawn) < 2:
        return None
    known = {each.id for each in drawn}
    nodes = [(each.id, f"fitness {score(each.fitness)}") for each in drawn]
    edges: list[tuple[str, str, str | None]] = []
    for each in drawn:
        parents = [name for name in each.parents if name in known]
        label = "; ".join(each.changes) or None
        edges += [(name, each.id, label if at == 0 else None) for at, name in enumerate(parents)]
        if not parents:
            edges.append((START, each.id, None))
    return {**geometry(nodes, edges), "margin": _MARGIN}
