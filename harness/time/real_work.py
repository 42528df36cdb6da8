"""Real work whose duration is spent in virtual time."""

from __future__ import annotations

import asyncio
import time

from harness.time.paced import PacedTimeLoop
from harness.units import MEASURED


class RealWork:
    """Real work that is under way from here on, until `end` or `abandon`, whichever comes first.

    On a loop that is not paced, only the duration is measured. `passed` is how many real seconds the work was under
    way before the loop learned of it; timers that are set now need not wait for these again.
    """

    def __init__(self, passed: float = 0.0) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop if isinstance(loop, PacedTimeLoop) else None
        self._virtual = self._loop.begin(passed) if self._loop else 0.0
        self._began = time.monotonic() - passed
        self._under_way = True

    async def end(self) -> float:
        """Advance virtual time to the end of the work. Returns how long it took, in seconds."""
        seconds = round(time.monotonic() - self._began, MEASURED)
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
        """The work failed, or nobody waits for it any more."""
        if self._loop is not None and self._under_way:
            self._loop.end()
        self._under_way = False
