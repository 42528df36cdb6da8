"""Where a sequence of steps goes round: the part of it that repeats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

_LONGEST: Final = 20
"""Steps of the longest cycle that is looked for."""
_FEWEST: Final = 3
"""So many times a cycle is gone through, or it is none."""


class Segment(NamedTuple):
    """Steps `start` to `end` of a sequence; `length` steps of it repeat (0: none do)."""

    start: int
    end: int
    period: int

    @property
    def rounds(self) -> int:
        """How often the stretch comes back to its first step."""
        return (self.end - self.start - 1) // self.period if self.period else 0


def split_cycles(steps: Sequence[Any]) -> Iterator[Segment]:
    """The sequence in parts: those that go round, and what is between them."""
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
    """The shortest cycle that begins here."""
    for length in range(1, min(_LONGEST, (len(steps) - start) // _FEWEST) + 1):
        if steps[start : start + length] != steps[start + length : start + 2 * length]:
            continue
        end = start + length
        while end < len(steps) and steps[end] == steps[end - length]:
            end += 1
        if end - start >= _FEWEST * length:
            return Segment(start, end, length)
    return None
