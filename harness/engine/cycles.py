"""Where a run that does not come to an end went round, for the text and the place of its error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.graph.model import Edge, Graph

_NAMED: Final = 10  # so many steps, and nodes of a step, are named
_SEARCHED: Final = 200  # so many of the last steps are searched for a cycle

Step = Sequence[str]
"""The nodes that ran side by side."""


@dataclass(frozen=True)
class LastSteps:
    """The last steps of a run. `cycle`: they repeat. `closing` is the edge that leads back to their beginning."""

    steps: Sequence[str]
    cycle: bool
    closing: Edge | None = None

    def __str__(self) -> str:
        if not self.cycle:
            return f"went {some(self.steps)}"
        return f"went round {some(self.steps)}{self._back()}"

    def _back(self) -> str:
        edge = self.closing
        if edge is None or edge.span is None:
            return ""
        # The name alone: texts of errors are part of the digest, which is the same on every machine.
        return f"; {edge.source} leads back to {edge.target} in {Path(edge.span.file).name}:{edge.span.line}"


def last_steps(steps: Sequence[Step], graph: Graph, entered: Iterable[str] | None = None) -> LastSteps:
    """The cycle at the end of these steps, or the last of them if there is none.

    A cycle begins with the first of its nodes that the run came to. `entered` has the nodes in the order in which it
    did, where `steps` are not all there were.
    """
    last = [tuple(dict.fromkeys(names)) for names in steps[-_SEARCHED:]]
    order = dict.fromkeys(entered if entered is not None else (name for names in steps for name in names))
    cycle = _from_entry(_cycle(last), list(order))
    shown = [some(names, " + ") for names in cycle or last[-_NAMED:]]
    return LastSteps(shown, bool(cycle), _closing(cycle, graph) if cycle else None)


def some(names: Sequence[str], between: str = " → ") -> str:
    """The first of these names, and how many there are besides."""
    more = len(names) - _NAMED
    return between.join(names[:_NAMED]) + (f" … ({more} more)" if more > 0 else "")


def _cycle(steps: Sequence[Step]) -> Sequence[Step]:
    """What repeats at the end; nothing, if the last steps repeat none before them."""
    for length in range(1, len(steps) // 2 + 1):
        begin = len(steps) - length
        if steps[begin:] == steps[begin - length : begin]:
            return steps[begin:]
    return []


def _from_entry(cycle: Sequence[Step], entered: Sequence[str]) -> Sequence[Step]:
    """The cycle, turned so that it begins where it was entered."""
    ranks = [min(entered.index(name) for name in names) for names in cycle]
    at = ranks.index(min(ranks)) if ranks else 0
    return [*cycle[at:], *cycle[:at]]


def _closing(cycle: Sequence[Step], graph: Graph) -> Edge | None:
    """The edge from the last step of a cycle to its first, if the graph has one."""
    back = (edge for name in cycle[-1] for edge in graph.edges_from(name) if edge.target in cycle[0])
    return next(back, None)
