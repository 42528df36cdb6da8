"""Properties of a scenario in JUnit XML, for `junit.xml` and pytest's `--junitxml`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from harness.report.verdicts import worst

if TYPE_CHECKING:
    from harness.scenario.outcome import Outcome

Line = Mapping[str, Any]
"""A mapping with some fields of a line of results.jsonl: `verdict`, `score`, `latency`, `usage`."""


def _verdict(runs: Sequence[Line]) -> str:
    return worst(run["verdict"] for run in runs)


PROPERTIES: Final[Mapping[str, Callable[[Sequence[Line]], float | str]]] = {
    "verdict": _verdict,
    "score": lambda runs: fmean(run["score"] or 0.0 for run in runs),
    "latency": lambda runs: max(run["latency"]["total"] or 0.0 for run in runs),
    "input_tokens": lambda runs: sum(run["usage"]["input_tokens"] or 0 for run in runs),
    "output_tokens": lambda runs: sum(run["usage"]["output_tokens"] or 0 for run in runs),
    "cost": lambda runs: fsum(run["usage"]["cost"] or 0.0 for run in runs),
}
"""Over all runs of a scenario: the worst verdict, mean score, longest virtual latency, sums of tokens and cost."""


def properties(runs: Sequence[Line]) -> list[tuple[str, str]]:
    """Return (name, text) of each property of a scenario; empty if it has no runs."""
    values = [(name, of(runs)) for name, of in PROPERTIES.items() if runs]
    return [(name, value if isinstance(value, str) else _number(value)) for name, value in values]


def measured(outcome: Outcome) -> Line:
    """Return the fields that properties are computed from, for an outcome that has not become a line yet."""
    observed = outcome.observed
    return {
        "verdict": outcome.verdict,
        "score": outcome.score,
        "latency": observed.latency,
        "usage": observed.usage,
    }


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"
