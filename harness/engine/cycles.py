"""Detection of the cycle in a run that does not end, for the message and the location of its error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.graph.model import Edge, Graph

_NAMED: Final = 10  # the most steps, and the most nodes of a step, that a message names
_SEARCHED: Final = 200  # the number of last steps that are searched for a cycle

Step = Sequence[str]
"""The names of nodes that ran side by side."""


@dataclass(frozen=True)
class LastSteps:
    """The last steps of a run. With `cycle` they repeat, and `closing` is the edge back to the first of them."""

    steps: Sequence[str]
    cycle: bool
    closing: Edge | None = None

    def __str__(self) -> str:
        if not self.cycle:
            return f"went {abbreviated(self.steps)}"
        return f"went round {abbreviated(self.steps)}{self._back()}"

    def _back(self) -> str:
        edge = self.closing
        if edge is None or edge.span is None:
            return ""
        # Only the file's name: error messages are part of the digest, which must not depend on the machine.
        return f"; {edge.source} leads back to {edge.target} in {Path(edge.span.file).name}:{edge.span.line}"


def last_steps(steps: Sequence[Step], graph: Graph, entered: Iterable[str] | None = None) -> LastSteps:
    """Return the cycle at the end of these steps, or the last few steps if there is none.

    The cycle is rotated to begin with the node that the run entered first. Pass `entered`, the nodes in the order of
    their first visit, if `steps` does not go back to the start of the run.
    """
    last = [tuple(dict.fromkeys(names)) for names in steps[-_SEARCHED:]]
    order = dict.fromkeys(entered if entered is not None else (name for names in steps for name in names))
    cycle = _from_entry(_cycle(last), list(order))
    shown = [abbreviated(names, " + ") for names in cycle or last[-_NAMED:]]
    return LastSteps(shown, bool(cycle), _closing(cycle, graph) if cycle else None)


def abbreviated(names: Sequence[str], between: str = " → ") -> str:
    """Join the first ten names, and add the number of names left out."""
    more = len(names) - _NAMED
    return between.join(names[:_NAMED]) + (f" … ({more} more)" if more > 0 else "")


def _cycle(steps: Sequence[Step]) -> Sequence[Step]:
    """Return the shortest sequence that is repeated at the end, or an empty one."""
    for length in range(1, len(steps) // 2 + 1):
        begin = len(steps) - length
        if steps[begin:] == steps[begin - length : begin]:
            return steps[begin:]
    return []


def _from_entry(cycle: Sequence[Step], entered: Sequence[str]) -> Sequence[Step]:
    """Rotate the cycle so that it begins with the node that was entered first."""
    ranks = [min(entered.index(name) for name in names) for names in cycle]
    at = ranks.index(min(ranks)) if ranks else 0
    return [*cycle[at:], *cycle[:at]]


def _closing(cycle: Sequence[Step], graph: Graph) -> Edge | None:
    """Return the edge from the last step of a cycle to its first, or None."""
    back = (edge for name in cycle[-1] for edge in graph.edges_from(name) if edge.target in cycle[0])
    return next(back, None)
