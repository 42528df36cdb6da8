"""Activations of nodes in an event run, and the limits on them: running at once, and started in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.engine.cycles import last_steps
from harness.engine.joins import OpenJoin
from harness.engine.pauses import Replay
from harness.errors import RunError
from harness.graph.events import Arrival, ConcurrencyLimit
from harness.graph.model import Graph, Node, State


@dataclass(eq=False)
class Activation:
    """A request to run a node, made by another activation (`cause`), by a join, or by the input.

    `began` and `start` are the numbers of its first and its current start, counted over all nodes from 1;
    `attempt` counts its starts. After a failure, `context` overrides values of the node's input. `replay` is the
    saved state of its paused visit.
    """

    node: Node
    arrivals: Sequence[Arrival]
    cause: Activation | None
    join: OpenJoin | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    state: State = field(default_factory=dict)
    attempt: int = 0
    began: int = 0
    start: int = 0
    replay: Replay | None = None

    def count_start(self, number: int) -> None:
        """Record a start of the activation. `number` counts the starts of all nodes."""
        self.start, self.attempt = number, self.attempt + 1
        self.began = self.began or number

    def lineage(self) -> list[str]:
        """Return the nodes on the chain of causes up to this one, in order, each repeated for every start."""
        names: list[str] = []
        activation: Activation | None = self
        while activation is not None:
            names += [activation.node.name] * activation.attempt
            activation = activation.cause
        return names[::-1]


class TooManyStarts(RunError):
    """A run that exceeded its limit of node starts. The message names the cycle."""

    code = "too-many-starts"

    def __init__(self, graph: Graph, limit: int, last: Activation) -> None:
        self.way = last_steps([[name] for name in last.lineage()], graph)
        self.span = self.way.closing.span if self.way.closing is not None else None
        super().__init__(
            f"graph '{graph.name}' did not come to an end within {limit} starts of nodes; it last {self.way}"
        )


class Limits:
    """The concurrency limits of a run, and the number of visits that currently count against each."""

    def __init__(self, limits: Iterable[ConcurrencyLimit], nodes: Iterable[str]) -> None:
        self._running = Counter[ConcurrencyLimit]()
        self._of: dict[str, list[ConcurrencyLimit]] = {node: [] for node in nodes}
        for limit in dict.fromkeys(limits):
            for node in self._of if limit.nodes is None else limit.nodes:
                self._of[node].append(limit)

    def acquire(self, node: str) -> bool:
        """Count one more visit of the node and return True, or return False if a limit is reached."""
        limits = self._of[node]
        if any(self._running[limit] >= limit.at_once for limit in limits):
            return False
        self._running.update(limits)
        return True

    def release(self, node: str) -> None:
        """Count a visit of the node as ended."""
        self._running.subtract(self._of[node])
