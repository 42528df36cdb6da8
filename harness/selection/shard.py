"""A shard: one of so many parts of the scenarios, for machines that share a run.

Scenarios are sorted by their ids, and dealt out one by one. So every machine comes to the same parts by itself, each
scenario is in exactly one of them, and their sizes differ by one at most. A suite with slow scenarios is spread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`, both from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """The shard that `2/5` means.

        Raises:
            ValueError: it means none; the text says what is wrong.
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
        """Which of the scenarios with these ids are in it: their indices, in order."""
        by_id = sorted(range(len(ids)), key=lambda index: (ids[index], index))
        return sorted(by_id[self.number - 1 :: self.count])
