"""The figures of a group of runs: where summary.json has each, its unit, and what it is called when it moves.

`FIGURES` is the one table of them: the summary on the terminal and in Markdown, report.html, the history, scores of
variants, `harness compare`, data frames and the gate's rules for latency read it. A new percentile is a line in
`PERCENTILES`, and one here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from harness.report.formatting import cost, dollars, percent, score, seconds

PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}
"""The percentiles of latency in summary.json, by name."""


class Unit(NamedTuple):
    """The way figures of a kind are written, and what they moved by. report.html knows units by name."""

    name: str
    text: Callable[[float | None], str]
    difference: Callable[[float], str]


def _count(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


_SHARE: Final = Unit("percent", percent, lambda share: f"{share * 100:.1f} points")
_SCORE: Final = Unit("score", score, score)
_SECONDS: Final = Unit("seconds", seconds, seconds)
_COUNT: Final = Unit("count", _count, _count)
_DOLLARS: Final = Unit("dollars", dollars, dollars)


class Figure(NamedTuple):
    """A figure of a group of runs.

    label     its name
    path      where a group of summary.json has it
    unit      how it is written
    more      the word for a larger value, such as "slower"; `less` is that for a smaller one
    is_brief  True if it stands in tables with room for few figures
    """

    label: str
    path: tuple[str, ...]
    unit: Unit
    more: str
    less: str
    is_brief: bool = False

    def of(self, group: Mapping[str, Any]) -> float | None:
        """Read the figure from a group of summary.json; None if it has none, as in results of an older version."""
        found: Any = group
        for name in self.path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return None if found is None else float(found)

    def text(self, value: float | None) -> str:
        """Return a value as it stands in a table of figures; there, dollars need no sign."""
        if self.unit is _DOLLARS:
            return "–" if value is None else cost(value)
        return self.unit.text(value)

    def is_better(self, before: float, after: float) -> bool:
        """True if a change is an improvement."""
        return (after > before) == (self.more == "better")

    def moved(self, before: float | None, after: float | None) -> str:
        """Return a change with its meaning, such as "▲ 1.20 s slower"; "" if either value is missing."""
        if before is None or after is None:
            return ""
        by = self.unit.difference(abs(after - before))
        if by == self.unit.difference(0):
            return "as before"
        return f"▲ {by} {self.more}" if after > before else f"▼ {by} {self.less}"


FIGURES: Final = (
    Figure("pass rate", ("pass_rate",), _SHARE, "better", "worse"),
    Figure("fitness", ("fitness",), _SCORE, "better", "worse", is_brief=True),
    Figure("p50", ("latency", "p50"), _SECONDS, "slower", "faster"),
    Figure("p95", ("latency", "p95"), _SECONDS, "slower", "faster", is_brief=True),
    Figure("tokens", ("tokens", "total"), _COUNT, "more", "fewer"),
    Figure("cost", ("cost",), _DOLLARS, "dearer", "cheaper"),
)
BRIEF: Final = tuple(figure for figure in FIGURES if figure.is_brief)
LATENCIES: Final = tuple(figure for figure in FIGURES if figure.path[0] == "latency")
