"""Detection of endless loops: graphs that loop while the virtual clock stands still.

Most loops end by themselves, or by the step limit of their dialect. Some limits are so high, and some states grow so
fast, that memory runs out first. So the work of a graph at one instant of virtual time is limited: its visits, those
of the graphs inside it, and the size of what they write. Only counts decide, and no real time, so that every rerun
ends in the same place.

A graph without a loop is never stopped: a fan-out may have any width. A loop is not stopped for the number of its
rounds alone, unless that is far above every dialect's own limit.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from harness.errors import HarnessError, ProviderDown, RunError, Span
from harness.graph.effects import Effect, LLMCall
from harness.graph.model import Edge, Graph
from harness.graph.trace import Trace
from harness.graph.world import World
from harness.units import PRECISION

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


ROUNDS: Final = 10
"""A graph counts as looping when one of its nodes starts more often than this at one instant."""

MOST_WORK: Final = 12_000
"""Visits at one instant after which a looping graph is stopped. It is more than LangGraph's own default limit."""

ITEMS_WRITTEN: Final = 2_000
"""Items (of lists and mappings, or pieces of text) that, written by nodes and the world, count as one visit."""

ITEMS_AT_ONCE: Final = 200
"""The same for the largest single value, as a state that doubles in size fills the memory after a few rounds."""


class Unending(RunError):
    """A graph that was stopped before it came to an end. `way` has its last steps."""

    def __init__(self, text: str, way: LastSteps) -> None:
        super().__init__(f"{text}; it last {way}")
        self.way = way
        self.span = way.closing.span if way.closing is not None else None


class EndlessLoop(Unending):
    """A graph that looped while the virtual clock stood still. `way` has the nodes of the cycle."""

    code = "endless-loop"


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
        self._steps: deque[list[str]] = deque(maxlen=_SEARCHED)

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
        most = self._simulation.most_visits
        is_long = most is not None and self._simulation.visits > most
        if not is_long and (
            self._rounds[node] <= ROUNDS or self._total_work() - self._work_before <= MOST_WORK
        ):
            return None
        way = last_steps(list(self._steps)[:-1], self._graph, self._rounds)
        after = f"{self._rounds[node] - 1} rounds the virtual clock still stands at {self._at:g} s"
        after = f"{most} visits it still runs" if is_long else after
        return EndlessLoop(f"graph '{self._graph.name}' does not come to an end: after {after}", way)

    def _total_work(self) -> int:
        """Return all work of the simulation so far, in units of visits."""
        snapshots = self._simulation.trace.snapshots
        written = snapshots.size // ITEMS_WRITTEN + snapshots.largest // ITEMS_AT_ONCE
        return self._simulation.visits + written


EffectType = TypeVar("EffectType", bound=Effect)

THREAD: Final = "thread"
"""The prefix of the ids of threads."""


class Simulation:
    """One world, clock, seed and trace.

    Attributes:
        visits: the number of node visits in all graphs.
        visits_of: the number of visits of each node, by its path.
        fatal: the error that ends the run, even if the graph catches it.
        fatal_in: the node of the outermost graph in which that error arose.
        down: why the last model call of an app did not reach a real provider; None if it did. A run that fails then
            says nothing about the app, which may have caught the error, or tried again.
        remarks: warnings that are not in the trace.
        most_visits: the visits in all graphs after which the run counts as endless; None: as the graph has it.
        resources: what dialects keep for the whole run.

    Args:
        world: answers the effects.
        seed: of the random numbers that ids are made from.
        models: a variant's models, by the name in the graph that each replaces.
        params: a variant's parameters, added to those of every model call.
    """

    def __init__(
        self,
        world: World,
        seed: int = 0,
        *,
        models: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self.world = world
        self._models, self._params = models or {}, params or {}
        self.trace = Trace()
        self._random = random.Random(seed)
        self.drawn = False
        self.visits = 0
        self.visits_of: Counter[str] = Counter()
        self.remarks: list[str] = []
        self.most_visits: int | None = None
        self.resources: dict[Any, Any] = {}
        self.fatal: HarnessError | None = None
        self.fatal_in = ""
        self.down: ProviderDown | None = None
        self._time = asyncio.get_running_loop().time
        self._began = self._at = self._time()
        self._now = 0.0

    @property
    def now(self) -> float:
        """Virtual seconds since the simulation began."""
        at = self._time()
        if at != self._at:  # many events share one time, and rounding is slower than comparing
            self._at, self._now = at, round(at - self._began, PRECISION)
        return self._now

    @property
    def varies_models(self) -> bool:
        """True if the variant has another model or other parameters."""
        return bool(self._models or self._params)

    def with_variant(self, effect: EffectType) -> EffectType:
        """Return the effect; a model call with the model and the parameters of the variant."""
        if not self.varies_models or not isinstance(effect, LLMCall):
            return effect
        name = self._models.get(effect.name, effect.name)
        return replace(effect, name=name, params={**effect.params, **self._params})

    def end_variant(self) -> None:
        """Stop applying the variant: the graph has ended, and judges are the same for all variants."""
        self._models, self._params = {}, {}

    def abort(self, error: HarnessError, node: str = "") -> None:
        """Record an error that must end the run, and the node of the outermost graph. Only the first is kept.

        The node may be given later, when the error leaves it.
        """
        self.fatal = self.fatal or error
        if error is self.fatal and not self.fatal_in:
            self.fatal_in = node

    def raise_if_aborted(self) -> None:
        """Raise the error passed to `abort`, if any: the run must end, even if the graph caught the error."""
        if self.fatal is not None:
            raise self.fatal

    def new_id(self, prefix: str) -> str:
        """Return an id that depends only on the seed and on the number of ids made before."""
        self.drawn = True
        return self._id(prefix)

    def new_thread_id(self) -> str:
        """Return an id for LangGraph's checkpoints, which few graphs read: it does not count as drawn."""
        return self._id(THREAD)

    def _id(self, prefix: str) -> str:
        return f"{prefix}-{self._random.getrandbits(64):016x}"

    def remark(self, text: str) -> None:
        """Add a warning to the result alone, since it depends on real time and the trace must not."""
        self.remarks.append(text)

    def warn(self, text: str, span: Span | None = None) -> None:
        """Add a warning to the trace, and to the result's `warnings` with its location, if it has one."""
        self.trace.warn(text, self.now, span)
