"""The environment that a run shares with all runs nested in it: one world, one clock, one seed, one trace."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from harness.errors import HarnessError, Span
from harness.graph.effects import Effect, LLMCall, World
from harness.graph.trace import Trace
from harness.units import PRECISION

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
        remarks: warnings that are not in the trace.
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
        self.resources: dict[Any, Any] = {}
        self.fatal: HarnessError | None = None
        self.fatal_in = ""
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

    def with_variant(self, effect: EffectType) -> EffectType:
        """Return the effect; a model call with the model and the parameters of the variant."""
        if not isinstance(effect, LLMCall) or not (self._models or self._params):
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
