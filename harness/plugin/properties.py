"""The properties of a scenario in JUnit XML (pytest's `--junitxml`), one function a property."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from harness.scenario.outcome import Outcome

PROPERTIES: Final[Mapping[str, Callable[[Sequence[Outcome]], float]]] = {
    "score": lambda runs: fmean(run.score for run in runs),
    "latency": lambda runs: max(run.observed.latency["total"] for run in runs),
    "input_tokens": lambda runs: sum(run.observed.usage["input_tokens"] for run in runs),
    "output_tokens": lambda runs: sum(run.observed.usage["output_tokens"] for run in runs),
}
"""From all runs of a scenario: the mean score, the longest latency in virtual seconds, the sums of tokens."""


def properties(runs: Sequence[Outcome]) -> list[tuple[str, str]]:
    """The properties of a scenario, as pytest takes them (`user_properties`); none of one that has no runs."""
    return [(name, f"{of(runs):g}") for name, of in PROPERTIES.items() if runs]
