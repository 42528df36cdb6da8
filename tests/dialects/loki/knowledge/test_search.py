"""Fusion of the rankings of a search."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from harness.dialects.loki.knowledge.store import fuse

RANKINGS = st.lists(st.lists(st.integers(0, 9), unique=True), min_size=1, max_size=3)


@given(RANKINGS)
def test_fusion_ranks_each_index_once_and_no_lower_than_all_rankings_do(rankings: list[list[int]]) -> None:
    hits = fuse(rankings)
    order = [hit.position for hit in hits]
    assert sorted(order) == sorted({at for ranking in rankings for at in ranking})
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert fuse([rankings[0], rankings[0]]) == fuse(2 * [rankings[0]])
    assert [hit.position for hit in fuse([rankings[0]])] == rankings[0]
    for first, second in pairwise(order):
        places = [
            (r.index(first) if first in r else 99, r.index(second) if second in r else 99) for r in rankings
        ]
        assert any(a < b for a, b in places) or first < second
