"""Laws of the checks of paths and calls."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.scenario.outcome import Observation
from tests.scenario.observed import call, checked, ran

names = st.sampled_from("abcd")
paths = st.lists(names | st.lists(names, min_size=2, max_size=3), max_size=6)
calls = st.lists(
    st.builds(
        call, st.sampled_from(["llm", "tool"]), names, args=st.fixed_dictionaries({"n": st.integers(0, 1)})
    ),
    max_size=5,
)
wanted_calls = st.lists(
    st.builds(lambda kind, name, n: {kind: name, "args": {"n": n}},
              st.sampled_from(["llm", "tool"]), names | st.just("*"), st.integers(0, 1)),
    max_size=4,
)  # fmt: skip


def multisets(path: Any) -> Any:
    return [sorted(step) for step in path]


@given(paths, paths)
def test_law_the_path_scores_one_exactly_when_equal(expected: Any, actual: Any) -> None:
    result = checked("path", expected, ran(*actual))

    assert 0 <= result.score <= 1
    assert (result.score == 1) == (multisets(expected) == multisets(actual))
    assert result == checked("path", expected, ran(*actual))


@given(paths)
def test_law_the_order_within_a_superstep_is_irrelevant(path: Any) -> None:
    turned = [step[::-1] for step in path]

    assert checked("path", turned, ran(*path)).passed


@given(wanted_calls, calls)
def test_law_calls_in_any_order_are_found_at_least_as_often_as_in_order(wanted: Any, made: Any) -> None:
    scores = {
        order: checked("calls", wanted, Observation(calls=made), calls_order=order).score
        for order in ("in_order", "any", "exact")
    }

    assert all(0 <= score <= 1 for score in scores.values())
    assert scores["any"] >= scores["in_order"]
    assert scores["exact"] < 1 or scores["in_order"] == 1


@given(calls, st.randoms(use_true_random=False))
def test_law_calls_match_themselves_in_any_order(made: Any, random: Any) -> None:
    wanted = [{one["kind"]: one["name"], "args": one["args"]} for one in made]
    assert checked("calls", wanted, Observation(calls=made), calls_order="exact").passed

    random.shuffle(wanted)
    assert checked("calls", wanted, Observation(calls=made), calls_order="any").passed
