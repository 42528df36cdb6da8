"""What running scenarios gives, piece by piece, in this process or in workers."""

from __future__ import annotations

from typing import NamedTuple

from harness.scenario.outcome import Outcome


class Ended(NamedTuple):
    """An outcome of scenario `number` with its line of results; without outcome, the end of the scenario."""

    number: int
    outcome: Outcome | None
    line: str = ""
