"""Coordinates of values and labels in a plot, for a template that draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LINE: Final = 14
"""Height of a label, in pixels."""
_LETTER: Final = 6.6
"""Approximate width of a letter of a label, in pixels."""


@dataclass(frozen=True)
class Scale:
    """Maps values from `low` to `high` onto `start` to `end`. If all values are equal, they are in the middle."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def of(cls, values: Sequence[float], start: float, end: float) -> Scale:
        """Return the scale from the lowest to the highest of these values."""
        return cls(min(values), max(values), start, end)

    def __call__(self, value: float) -> float:
        """Return the coordinate of a value."""
        if self.high == self.low:
            return (self.start + self.end) / 2
        return round(self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low), 1)

    @property
    def ends(self) -> list[float]:
        """The lowest and the highest value, once if they are equal."""
        return [*dict.fromkeys((self.low, self.high))]


@dataclass(frozen=True)
class Label:
    """The position of a label. `left` means that its text ends at the position, instead of starting there."""

    x: float
    y: float
    left: bool


def labels(points: Sequence[tuple[float, float, str]], width: float, height: float) -> list[Label]:
    """Return a position for the text of each point: beside it, without overlaps, towards the middle of the plot."""
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
