"""Detection of cycles in a sequence of steps, for the display of paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

_LONGEST: Final = 20
"""The most steps of a cycle that is found."""
_FEWEST: Final = 3
"""The number of times that steps must repeat to count as a cycle."""


class Segment(NamedTuple):
    """Steps `start` to `end` (exclusive) of a sequence. They repeat every `period` steps; 0 for no repetition."""

    start: int
    end: int
    period: int

    @property
    def rounds(self) -> int:
        """The number of times that the segment returns to its first step."""
        return (self.end - self.start - 1) // self.period if self.period else 0


def split_cycles(steps: Sequence[Any]) -> Iterator[Segment]:
    """Split a sequence into its cycles and the segments between them."""
    plain = at = 0
    while at < len(steps):
        found = _cycle_at(steps, at)
        if found is None:
            at += 1
            continue
        if plain < at:
            yield Segment(plain, at, 0)
        yield found
        plain = at = found.end
    if plain < len(steps):
        yield Segment(plain, len(steps), 0)


def _cycle_at(steps: Sequence[Any], start: int) -> Segment | None:
    """Return the shortest cycle that begins at `start`, or None."""
    for length in range(1, min(_LONGEST, (len(steps) - start) // _FEWEST) + 1):
        if steps[start : start + length] != steps[start + length : start + 2 * length]:
            continue
        end = start + length
        while end < len(steps) and steps[end] == steps[end - length]:
            end += 1
        if end - start >= _FEWEST * length:
            return Segment(start, end, length)
    return None
