"""Plots as places: where on the page values are drawn, for a template that draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LINE: Final = 14
"""Height of a label."""
_LETTER: Final = 6.6
"""Width of a letter of a label, about."""


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` on a line from `start` to `end`. Where all are the same, they are in the middle."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def of(cls, values: Sequence[float], start: float, end: float) -> Scale:
        """The scale that these values fill."""
        return cls(min(values), max(values), start, end)

    def __call__(self, value: float) -> float:
        """The place of a value."""
        if self.high == self.low:
            return (self.start + self.end) / 2
        return round(self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low), 1)

    @property
    def ends(self) -> list[float]:
        """The least and the greatest value, once where they are the same."""
        return [*dict.fromkeys((self.low, self.high))]


@dataclass(frozen=True)
class Label:
    """Where a text begins, or ends if it is `left` of its point."""

    x: float
    y: float
    left: bool


def labels(points: Sequence[tuple[float, float, str]], width: float, height: float) -> list[Label]:
    """A place beside each point for its text, so that no text covers another; towards the middle of the plot."""
    placed: list[tuple[float, float, float]] = []
    found: dict[int, Label] = {}
    for at in sorted(range(len(points)), key=lambda at: abs(points[at][1] - height / 2), reverse=True):
        x, y, text = points[at]
        long, left = _LETTER * len(text), x > width * 0.6
        begin = x - 10 - long if left else x + 10
        line, step = y + 4, 1 if y < height / 2 else -1
        while any(
            abs(line - other) < LINE and begin < end and first < begin + long for first, end, other in placed
        ):
            line += step
        placed.append((begin, begin + long, line))
        found[at] = Label(x - 10 if left else x + 10, line, left)
    return [found[at] for at in range(len(points))]
