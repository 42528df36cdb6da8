"""The results of running scenarios, in this process or in workers."""

from __future__ import annotations

from typing import NamedTuple

from harness.report.results import Record
from harness.scenario.outcome import Outcome


class ScenarioResult(NamedTuple):
    """An outcome of scenario `number` with its record for the report. Without an outcome, the end of the scenario."""

    number: int
    outcome: Outcome | None
    record: Record = Record("")
