"""The main figures of a run, which are compared from run to run: name, format and direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from harness.report.formatting import cost, percent, score, seconds


class Figure(NamedTuple):
    """A figure of a run.

    label           its name
    of              reads it from a group of summary.json
    text            formats it
    more_is_better  True if a larger value is an improvement
    """

    label: str
    of: Callable[[Mapping[str, Any]], float | None]
    text: Callable[[float], str]
    more_is_better: bool


FIGURES: Final = (
    Figure("pass rate", lambda total: total["pass_rate"], percent, True),
    Figure("fitness", lambda total: total["fitness"], score, True),
    Figure("p50", lambda total: total["latency"]["p50"], seconds, False),
    Figure("p95", lambda total: total["latency"]["p95"], seconds, False),
    Figure("tokens", lambda total: total["tokens"]["total"], lambda value: f"{value:,.0f}", False),
    Figure("cost", lambda total: total["cost"], cost, False),
)
