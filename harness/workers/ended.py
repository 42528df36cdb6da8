"""What running scenarios gives, piece by piece, in this process or in workers."""

from __future__ import annotations

from typing import NamedTuple

from harness.report.results import Record
from harness.scenario.outcome import Outcome


class Ended(NamedTuple):
    """An outcome of scenario `number` and what is written of it; without outcome, the end of the scenario."""

    number: int
    outcome: Outcome | None
    record: Record = Record("")
