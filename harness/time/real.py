"""The real time, for the harness itself.

While a scenario runs, the functions of `time` and `datetime` follow its virtual clock (`harness.time.readings`), and
a tool may freeze them, too. The readings here go around all of it: they are kept in an object, where no tool that
replaces names in modules finds them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple


class _RealTime(NamedTuple):
    monotonic: Callable[[], float] = time.monotonic
    perf_counter: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep

    def time_ns(self) -> int:
        """Return the real nanoseconds since 1970."""
        machine = sys.modules.get("time_machine")
        hatch = machine.escape_hatch if machine is not None else None
        return hatch.time.time_ns() if hatch is not None and hatch.is_travelling() else time.time_ns()

    def now(self) -> datetime:
        """Return the real instant, in UTC."""
        return datetime.fromtimestamp(self.time_ns() / 1e9, UTC)


real: Final = _RealTime()
