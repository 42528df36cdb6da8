"""Shards of the selected scenarios: their members and their notation `NUMBER/COUNT`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.selection.keywords import Shard

IDS = st.lists(st.text(max_size=4), unique=True, max_size=30)
COUNTS = st.integers(1, 12)


def parts(ids: list[str], count: int) -> list[list[str]]:
    return [[ids[index] for index in Shard(number, count).members(ids)] for number in range(1, count + 1)]


@given(IDS, COUNTS)
def test_each_scenario_is_in_one_shard_and_sizes_differ_by_at_most_one(ids: list[str], count: int) -> None:
    found = parts(ids, count)
    assert sorted(id_ for part in found for id_ in part) == sorted(ids)
    sizes = [len(part) for part in found]
    assert max(sizes) - min(sizes) <= 1


@given(IDS, COUNTS, st.randoms(use_true_random=False))
def test_shards_do_not_depend_on_the_order_in_which_scenarios_are_found(
    ids: list[str], count: int, random: object
) -> None:
    shuffled = sorted(ids, key=lambda id_: random.random())  # type: ignore[attr-defined]
    assert [set(part) for part in parts(ids, count)] == [set(part) for part in parts(shuffled, count)]


def test_a_shard_keeps_the_order_of_scenarios() -> None:
    assert parts(["b", "c", "a", "d"], 2) == [["c", "a"], ["b", "d"]]


def test_a_shard_is_written_as_number_and_count() -> None:
    assert Shard.parse("2/5") == Shard(2, 5)
    assert str(Shard.parse(" 02 / 5 ")) == "2/5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("6/5", "the shards of 5 are 1/5 to 5/5"),
        ("0/5", "the shards of 5 are 1/5 to 5/5"),
        ("0/0", "there is at least one shard"),
        ("2:5", "did you mean 2/5?"),
        ("2 of 5", "did you mean 2/5?"),
        ("2", "'2' is not NUMBER/COUNT, such as 2/5"),
        ("-1/5", "is not NUMBER/COUNT"),
        ("", "is not NUMBER/COUNT"),
        ("1.5/5", "is not NUMBER/COUNT"),
    ],
)
def test_an_invalid_shard_is_refused_with_a_suggestion(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        Shard.parse(text)
