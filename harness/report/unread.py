"""The outcomes of a scenario file that cannot be used: one for each scenario that it names."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from harness.errors import SourceError
from harness.report.scenario_runs import FILE
from harness.scenario.load import names_in
from harness.scenario.outcome import Observation, Outcome
from harness.source.document import shown_path


def unread_outcomes(file: Path, error: SourceError, names: Collection[str] = ()) -> Iterator[Outcome]:
    """Yield the outcomes by which results list a file that cannot be used.

    Args:
        file: the file.
        error: why it cannot be used.
        names: the scenarios that were to run; none stands for all. If they cannot be told, there is one outcome.
    """
    first = error.problems[0]
    where = str(first.span) if first.span else None
    named = {"type": type(error).__name__, "code": error.code, "message": str(error)}
    shown: dict[str, Any] = {**named, "node": None, "where": where}
    for name in dict.fromkeys(sorted(names) or [each or FILE for each in names_in(file)] or [FILE]):
        yield Outcome(
            suite=shown_path(file),
            scenario=name,
            manifest="",
            dialect="",
            agent="",
            observed=Observation(status="invalid", error=shown),
            verdict="error",
            score=0.0,
            span=first.span,
        )
