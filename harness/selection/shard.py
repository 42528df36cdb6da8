"""Shards: equal parts of the scenarios, for machines that share a run.

Scenarios are sorted by their ids and dealt out in turn. So every machine computes the same shards independently, each
scenario is in exactly one of them, and their sizes differ by at most one. The slow scenarios of a suite are spread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Shard:
    """Shard `number` of `count`, both from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a shard, such as `2/5`.

        Raises:
            ValueError: the text is not valid; the message says why.
        """
        found = re.fullmatch(r"\s*(\d{1,6})\s*([/:,-]|of)\s*(\d{1,6})\s*", text, re.ASCII)
        if found is None:
            raise ValueError(f"'{text}' is not NUMBER/COUNT, such as 2/5")
        number, count = int(found[1]), int(found[3])
        if count < 1:
            raise ValueError(f"'{text}': there is at least one shard")
        if not 1 <= number <= count:
            raise ValueError(f"'{text}': the shards of {count} are 1/{count} to {count}/{count}")
        if found[2] != "/":
            raise ValueError(f"'{text}' is not NUMBER/COUNT; did you mean {number}/{count}?")
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def members(self, ids: Sequence[str]) -> list[int]:
        """Return the indices of the scenarios in this shard, in order, given the ids of all scenarios."""
        by_id = sorted(range(len(ids)), key=lambda index: (ids[index], index))
        return sorted(by_id[self.number - 1 :: self.count])
