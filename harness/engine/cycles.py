"""Where a run that does not come to an end went round, for the text of its error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_NAMED: Final = 10  # so many steps, and nodes of a step, are named
_SEARCHED: Final = 200  # so many of the last steps are searched for a cycle


def last_steps(steps: Sequence[str]) -> str:
    """`went round a → b`: the cycle at the end of these steps, or the last of them if there is none."""
    last = steps[-_SEARCHED:]
    cycle = _cycle(last)
    return f"went round {some(cycle)}" if cycle else f"went {some(last[-_NAMED:])}"


def some(names: Sequence[str], between: str = " → ") -> str:
    """The first of these names, and how many there are besides."""
    more = len(names) - _NAMED
    return between.join(names[:_NAMED]) + (f" … ({more} more)" if more > 0 else "")


def _cycle(steps: Sequence[str]) -> Sequence[str]:
    """What repeats at the end, from where it was entered; nothing, if the last steps repeat none before them."""
    for length in range(1, len(steps) // 2 + 1):
        begin = len(steps) - length
        if steps[begin:] == steps[begin - length : begin]:
            while begin > 0 and steps[begin - 1] == steps[begin - 1 + length]:
                begin -= 1
            return steps[begin : begin + length]
    return []
