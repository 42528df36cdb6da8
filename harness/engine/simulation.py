"""What a run and all runs nested in it share: one world, one clock, one seed, one trace."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from harness.errors import HarnessError, Span
from harness.graph.effects import Effect, LLMCall, World
from harness.graph.trace import Trace
from harness.units import PRECISION

EffectType = TypeVar("EffectType", bound=Effect)


class Simulation:
    """One world, clock, seed and trace.

    `now` is in virtual seconds since the simulation began. `visits` counts those of all graphs. `fatal` is the error
    that ends the run whatever catches it, and `fatal_in` the node of the top graph in which it arose.
    `resources` holds what dialects keep for the whole run. `models` stand for others that the graph names, and
    `params` are added to those of every model, until `settle`.
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
        self.random = random.Random(seed)
        self.visits = 0
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
        if at != self._at:  # dozens of events may have one time, and to round takes longer than to compare
            self._at, self._now = at, round(at - self._began, PRECISION)
        return self._now

    def varied(self, effect: EffectType) -> EffectType:
        """The effect with the model and the parameters that the variant has, if it is a call of a model."""
        if not isinstance(effect, LLMCall) or not (self._models or self._params):
            return effect
        name = self._models.get(effect.name, effect.name)
        return replace(effect, name=name, params={**effect.params, **self._params})

    def settle(self) -> None:
        """The graph is done: what is asked now, to judge it, is the same in all variants."""
        self._models, self._params = {}, {}

    def abort(self, error: HarnessError, node: str) -> None:
        """Note an error that must end the run, and the node of the top graph. Only the first counts."""
        if self.fatal is None:
            self.fatal, self.fatal_in = error, node

    def raise_if_aborted(self) -> None:
        """Raise the error of `abort`, if there was one: nothing goes on after it, whoever caught it."""
        if self.fatal is not None:
            raise self.fatal

    def new_id(self, prefix: str) -> str:
        """An id that depends on nothing but the seed and how many were made before."""
        return f"{prefix}-{self.random.getrandbits(64):016x}"

    def warn(self, text: str, span: Span | None = None) -> None:
        """Raise a warning: it stands in the trace, and with its place, if it has one, in `warnings`."""
        self.trace.warn(text, self.now, span)
