"""The end of a run that goes round while the virtual clock stands still.

Most loops end by themselves, or by the limit of steps of their dialect. Some limits are so high, and some states grow
so fast, that memory or patience ends first. So what a graph does at one instant is bounded: its visits, those of the
graphs inside it, and what all of them write. Only counts decide, so that a run ends in the same place on every rerun.

A graph that does not go round is never stopped, however much it does: a fan-out may have any width. Nor is a loop
stopped for the number of its rounds alone, unless it is far above any dialect's own limit.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from harness.engine.cycles import LastSteps, last_steps
from harness.errors import RunError
from harness.graph.model import Graph

if TYPE_CHECKING:
    from harness.engine.simulation import Simulation

ROUNDS: Final = 10
"""A graph goes round when a node of it begins more often than this at one instant."""

MOST_WORK: Final = 12_000
"""Visits at one instant after which a graph that goes round is stopped: more than LangGraph allows by itself."""

ITEMS_WRITTEN: Final = 2_000
"""So many items that nodes and the world write (of lists and mappings, or pieces of texts) count as a visit."""

ITEMS_AT_ONCE: Final = 200
"""The same for the largest value: a state that doubles is as large as memory after few rounds."""

STEPS_KEPT: Final = 200
"""So many steps are kept, to find the cycle in."""


class EndlessLoop(RunError):
    """A graph that went round while the virtual clock stood still. `way` has the nodes of a round."""

    code = "endless-loop"

    def __init__(self, graph: str, way: LastSteps, rounds: int, at_s: float) -> None:
        self.way = way
        self.span = way.closing.span if way.closing is not None else None
        super().__init__(
            f"graph '{graph}' does not come to an end: after {rounds} rounds the virtual clock still stands at "
            f"{at_s:g} s; it last {way}"
        )


class Instant:
    """What one running graph did since the virtual clock last moved, or since its last input."""

    def __init__(self, simulation: Simulation, graph: Graph) -> None:
        self._simulation = simulation
        self._graph = graph
        self.begin()

    def begin(self) -> None:
        """Count anew."""
        self._at = self._simulation.now
        self._work = self._done()
        self._rounds: dict[str, int] = {}
        self._number: tuple[int, int] | None = None
        self._steps: deque[list[str]] = deque(maxlen=STEPS_KEPT)

    def enter(self, node: str, number: tuple[int, int]) -> EndlessLoop | None:
        """Count a visit in the step of this number; the error that must end the run, if it stands still."""
        self._simulation.visits += 1
        if self._simulation.now != self._at:
            self.begin()
        if number != self._number:
            self._number = number
            self._steps.append([])
        step = self._steps[-1]
        if node not in step:
            self._rounds[node] = self._rounds.get(node, 0) + 1
        step.append(node)
        if self._rounds[node] <= ROUNDS or self._done() - self._work <= MOST_WORK:
            return None
        way = last_steps(list(self._steps)[:-1], self._graph, self._rounds)
        return EndlessLoop(self._graph.name, way, self._rounds[node] - 1, self._at)

    def _done(self) -> int:
        """All that the simulation did so far, in visits."""
        snapshots = self._simulation.trace.snapshots
        written = snapshots.size // ITEMS_WRITTEN + snapshots.largest // ITEMS_AT_ONCE
        return self._simulation.visits + written
