"""Held-out scenarios: the search does not use them, and the winner is confirmed on them alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

MIN_HELD_OUT: Final = 6
"""With fewer scenarios nothing is significant: six that all differ in one direction have p = 2 ÷ 2⁶ = 0.031."""

Item = TypeVar("Item")


class Split(NamedTuple):
    """The indices of the scenarios for the search (training), and of those held out."""

    training: tuple[int, ...]
    holdout: tuple[int, ...]


def split(count: int, share: float, seed: int) -> Split:
    """Split `count` scenarios at random, with `share` of them held out. At least one remains for training."""
    held = min(round(count * share), count - 1) if count else 0
    if share > 0 and count > 1:
        held = max(held, 1)
    drawn = set(random.Random(f"{seed}/holdout").sample(range(count), held))
    indices = range(count)
    return Split(tuple(at for at in indices if at not in drawn), tuple(at for at in indices if at in drawn))


def items_at(items: Sequence[Item], indices: Sequence[int]) -> list[Item]:
    """Return the items at these indices."""
    return [items[at] for at in indices]


def why_too_few(count: int, held: int, share: float) -> str:
    """Return the reason why too few scenarios are held out to confirm any winner; "" if there are enough."""
    if share == 0:
        return "no scenario is held out (--holdout 0): no winner will be called better"
    if held >= MIN_HELD_OUT:
        return ""
    needed = next(n for n in range(count, 10_000) if max(1, min(round(n * share), n - 1)) >= MIN_HELD_OUT)
    return (
        f"{held} of {count} scenarios are held out, and fewer than {MIN_HELD_OUT} never show that a winner is "
        f"better: it takes {needed} scenarios with --holdout {share:g}, or a larger --holdout"
    )
