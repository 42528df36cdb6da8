"""What a run and all runs nested in it share: one world, one clock, one seed, one trace."""

from __future__ import annotations

import asyncio
import random

from harness.errors import WorldError
from harness.graph.effects import World
from harness.graph.trace import Trace
from harness.units import PRECISION


class Simulation:
    """One world, clock, seed and trace. `now` is in virtual seconds since the simulation began."""

    def __init__(self, world: World, seed: int = 0) -> None:
        self.world = world
        self.trace = Trace()
        self.random = random.Random(seed)
        self.unanswerable: WorldError | None = None
        self.unanswered_in = ""
        self._time = asyncio.get_running_loop().time
        self._began = self._time()

    @property
    def now(self) -> float:
        """Virtual seconds since the simulation began."""
        return round(self._time() - self._began, PRECISION)

    def abort(self, error: WorldError, node: str) -> None:
        """Note that the world could not answer `node` of the top graph. Only the first error counts."""
        if self.unanswerable is None:
            self.unanswerable, self.unanswered_in = error, node

    def raise_if_aborted(self) -> None:
        """Raise the error of `abort`, if there was one: nothing goes on after it, whoever caught it."""
        if self.unanswerable is not None:
            raise self.unanswerable

    def new_id(self, prefix: str) -> str:
        """An id that depends on nothing but the seed and how many were made before."""
        return f"{prefix}-{self.random.getrandbits(64):016x}"

    def warn(self, text: str) -> None:
        """Raise a warning: it stands in the trace and in `warnings`."""
        self.trace.record("warning", self.now, text=text)
