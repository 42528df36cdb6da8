"""Detection of endless loops: graphs that loop while the virtual clock stands still.

Most loops end by themselves, or by the step limit of their dialect. Some limits are so high, and some states grow so
fast, that memory runs out first. So the work of a graph at one instant of virtual time is limited: its visits, those
of the graphs inside it, and the size of what they write. Only counts decide, and no real time, so that every rerun
ends in the same place.

A graph without a loop is never stopped: a fan-out may have any width. A loop is not stopped for the number of its
rounds alone, unless that is far above every dialect's own limit.
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
"""A graph counts as looping when one of its nodes starts more often than this at one instant."""

MOST_WORK: Final = 12_000
"""Visits at one instant after which a looping graph is stopped. It is more than LangGraph's own default limit."""

ITEMS_WRITTEN: Final = 2_000
"""Items (of lists and mappings, or pieces of text) that, written by nodes and the world, count as one visit."""

ITEMS_AT_ONCE: Final = 200
"""The same for the largest single value, as a state that doubles in size fills the memory after a few rounds."""

STEPS_KEPT: Final = 200
"""The number of last steps that are searched for the cycle."""


class EndlessLoop(RunError):
    """A graph that looped while the virtual clock stood still. `way` has the nodes of the cycle."""

    code = "endless-loop"

    def __init__(self, graph: str, way: LastSteps, rounds: int, at_s: float) -> None:
        self.way = way
        self.span = way.closing.span if way.closing is not None else None
        super().__init__(
            f"graph '{graph}' does not come to an end: after {rounds} rounds the virtual clock still stands at "
            f"{at_s:g} s; it last {way}"
        )


class LoopDetector:
    """Counts the work of one running graph since the virtual clock last moved, or since its last input."""

    def __init__(self, simulation: Simulation, graph: Graph) -> None:
        self._simulation = simulation
        self._graph = graph
        self.reset()

    def reset(self) -> None:
        """Start counting from zero."""
        self._at = self._simulation.now
        self._work_before = self._total_work()
        self._rounds: dict[str, int] = {}
        self._number: tuple[int, int] | None = None
        self._steps: deque[list[str]] = deque(maxlen=STEPS_KEPT)

    def enter(self, node: str, number: tuple[int, int]) -> EndlessLoop | None:
        """Count a visit. Return the error that must end the run if the graph is in an endless loop, else None.

        Nodes that run side by side have the same `number`: the invocation, and the step in it.
        """
        self._simulation.visits += 1
        if self._simulation.now != self._at:
            self.reset()
        if number != self._number:
            self._number = number
            self._steps.append([])
        step = self._steps[-1]
        if node not in step:
            self._rounds[node] = self._rounds.get(node, 0) + 1
        step.append(node)
        if self._rounds[node] <= ROUNDS or self._total_work() - self._work_before <= MOST_WORK:
            return None
        way = last_steps(list(self._steps)[:-1], self._graph, self._rounds)
        return EndlessLoop(self._graph.name, way, self._rounds[node] - 1, self._at)

    def _total_work(self) -> int:
        """Return all work of the simulation so far, in units of visits."""
        snapshots = self._simulation.trace.snapshots
        written = snapshots.size // ITEMS_WRITTEN + snapshots.largest // ITEMS_AT_ONCE
        return self._simulation.visits + written
