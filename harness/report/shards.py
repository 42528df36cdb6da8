"""Recognise runs that are all the shards of one complete run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_SHARD: Final = re.compile(r"(\d+) of (\d+) scenarios? selected \(shard (\d+)/(\d+)\)")


def is_shard(reason: str) -> bool:
    """True if a run is a shard. It may be empty, if there were fewer scenarios than shards."""
    return _SHARD.fullmatch(reason) is not None


def are_all_shards(reasons: Sequence[str]) -> bool:
    """True if runs that are incomplete for these reasons are together all shards of one run.

    A shard that was ended early, or that selected scenarios in other ways too, has another reason.
    """
    found = [_SHARD.fullmatch(reason) for reason in reasons]
    if not found or None in found:
        return False
    kept, of, numbers, counts = zip(*(map(int, match.groups()) for match in found if match), strict=True)
    same = len({*of}) == len({*counts}) == 1
    return same and sorted(numbers) == [*range(1, counts[0] + 1)] and sum(kept) == of[0]
