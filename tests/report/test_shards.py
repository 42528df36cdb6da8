"""All shards of one run are a complete run together."""

import pytest

from harness.report.runs import are_all_shards

THIRDS = [f"2 of 6 scenarios selected (shard {number}/3)" for number in (1, 2, 3)]


def test_all_shards_make_a_complete_run_in_any_order() -> None:
    assert are_all_shards(THIRDS)
    assert are_all_shards(THIRDS[::-1])
    assert are_all_shards(["1 of 1 scenario selected (shard 1/1)"])


@pytest.mark.parametrize(
    "reasons",
    [
        [],
        THIRDS[:2],
        [*THIRDS[:2], THIRDS[1]],
        [*THIRDS, THIRDS[0]],
        [*THIRDS[:2], ""],
        [*THIRDS[:2], "2 of 7 scenarios selected (shard 3/3)"],
        [*THIRDS[:2], "1 of 6 scenarios selected (shard 3/3)"],
        [*THIRDS[:2], "2 of 6 scenarios selected (shard 3/4)"],
        [*THIRDS[:2], "2 of 6 scenarios selected (-k 'x', shard 3/3)"],
        [*THIRDS[:2], "2 of 6 scenarios selected (shard 3/3); interrupted after 1 of 2 runs"],
    ],
)
def test_missing_or_unequal_shards_are_incomplete(reasons: list[str]) -> None:
    assert not are_all_shards(reasons)
