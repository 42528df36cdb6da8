"""Alignment of sequences: the longest common subsequence, and the maximum matching in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Expected = TypeVar("Expected")
Actual = TypeVar("Actual")
Pairs = list[tuple[int, int]]


def common_subsequence(
    expected: Sequence[Expected], actual: Sequence[Actual], same: Callable[[Expected, Actual], bool]
) -> Pairs:
    """Return the longest alignment that keeps both orders, as increasing `(index in expected, index in actual)`."""
    alike = [[same(wanted, found) for found in actual] for wanted in expected]
    # longest[i][j]: length of the longest alignment of expected[i:] with actual[j:]
    longest = [[0] * (len(actual) + 1) for _ in range(len(expected) + 1)]
    for i in reversed(range(len(expected))):
        for j in reversed(range(len(actual))):
            longest[i][j] = (
                longest[i + 1][j + 1] + 1 if alike[i][j] else max(longest[i + 1][j], longest[i][j + 1])
            )
    pairs, i, j = [], 0, 0
    while i < len(expected) and j < len(actual):
        if alike[i][j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def maximum_matching(
    expected: Sequence[Expected], actual: Sequence[Actual], same: Callable[[Expected, Actual], bool]
) -> Pairs:
    """Return a maximum matching in any order, each item used once, sorted by expected index.

    The algorithm is that of augmenting paths (Kuhn 1955).
    """
    alike = [[same(wanted, found) for found in actual] for wanted in expected]
    taken: dict[int, int] = {}  # actual index -> expected index

    def place(i: int, tried: set[int]) -> bool:
        for j, fits in enumerate(alike[i]):
            if fits and j not in tried:
                tried.add(j)
                if j not in taken or place(taken[j], tried):
                    taken[j] = i
                    return True
        return False

    for i in range(len(expected)):
        place(i, set())
    return sorted((i, j) for j, i in taken.items())
