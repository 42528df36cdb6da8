"""Scenarios that are held out: the search never sees them, and the winner is confirmed on them alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

FEWEST: Final = 6
"""Fewer scenarios never show anything: six that all differ in one direction have p = 2 ÷ 2⁶ = 0.031."""

Item = TypeVar("Item")


class Split(NamedTuple):
    """The places of the scenarios that the search sees, and of those that it does not."""

    training: tuple[int, ...]
    holdout: tuple[int, ...]


def split(count: int, share: float, seed: int) -> Split:
    """So many scenarios, a share of them held out by seed. At least one is left to train on."""
    held = min(round(count * share), count - 1) if count else 0
    if share > 0 and count > 1:
        held = max(held, 1)
    drawn = set(random.Random(f"{seed}/holdout").sample(range(count), held))
    places = range(count)
    return Split(tuple(at for at in places if at not in drawn), tuple(at for at in places if at in drawn))


def chosen(items: Sequence[Item], places: Sequence[int]) -> list[Item]:
    """The items at these places."""
    return [items[at] for at in places]


def shortage(count: int, held: int, share: float) -> str:
    """Why the scenarios held out cannot confirm a winner, however good it is; "" if they can."""
    if share == 0:
        return "no scenario is held out (--holdout 0): no winner will be called better"
    if held >= FEWEST:
        return ""
    needed = next(n for n in range(count, 10_000) if max(1, min(round(n * share), n - 1)) >= FEWEST)
    return (
        f"{held} of {count} scenarios are held out, and fewer than {FEWEST} never show that a winner is better: "
        f"it takes {needed} scenarios with --holdout {share:g}, or a larger --holdout"
    )
