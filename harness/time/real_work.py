"""Measurement of real work, whose duration is added to virtual time."""

from __future__ import annotations

import asyncio

from harness.time.paced import PacedTimeLoop
from harness.time.real import real
from harness.units import MEASURED_PRECISION


class RealWork:
    """A piece of real work, under way from its construction until `end` or `abandon`, whichever comes first.

    On a loop that is not paced, only the duration is measured. `passed` is the number of real seconds since the work
    began, if the loop learns of it later; timers that are set now do not wait for this time again.
    """

    def __init__(self, passed: float = 0.0) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop if isinstance(loop, PacedTimeLoop) else None
        self._virtual = self._loop.begin(passed) if self._loop else 0.0
        self._began = real.monotonic() - passed
        self._under_way = True

    async def end(self) -> float:
        """Advance virtual time to the end of the work, and return its duration in seconds."""
        seconds = round(real.monotonic() - self._began, MEASURED_PRECISION)
        if self._loop is None:
            return seconds
        end, seconds = self._loop.end_of_work(self._virtual, seconds)
        over = self._loop.create_future()
        timer = self._loop.call_at(end, over.set_result, None)
        try:
            await over
        finally:
            timer.cancel()
            self.abandon()
        return seconds

    def abandon(self) -> None:
        """Drop the work, because it failed or its result is no longer needed."""
        if self._loop is not None and self._under_way:
            self._loop.end()
        self._under_way = False
