"""Properties of the comparison of any two runs, and of the diffs of texts and values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.compare.comparison import Side, compare
from harness.report.compare.first_difference import ABSENT, first_difference, value_changes
from harness.report.compare.text_diff import diff_lines
from harness.report.results import line
from harness.report.scenario_runs import Run, ScenarioCollector
from harness.report.summary import summarise
from harness.scenario.outcome import Observation, Outcome

MIRROR = {
    "worse": "better",
    "better": "worse",
    "new": "gone",
    "gone": "new",
    "changed": "changed",
    "same": "same",
}
Repeats = dict[int, tuple[str, float, str]]


def side(scenarios: dict[str, Repeats]) -> Side:
    """Return a run with these scenarios: by name, (verdict, score, digest) of each repeat."""
    collected, did, lines = ScenarioCollector(), {}, []
    for name, repeats in scenarios.items():
        for repeat, (verdict, score, digest) in repeats.items():
            outcome = Outcome("a.yaml", name, "m.yaml", "sherma", "m", Observation(), verdict, score)  # type: ignore[arg-type]
            outcome.repeat, outcome.digest = repeat, digest
            made = line(outcome)
            lines.append(made)
            collected.add(made)
            did[(made["id"], ""), repeat] = digest
    return Side(Path(), Run("run", collected.scenarios), summarise(lines)["total"], did)


a_repeat = st.tuples(
    st.sampled_from(["passed", "failed", "error", "skipped"]),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from("xy"),
)
a_run = st.dictionaries(
    st.sampled_from("abc"), st.dictionaries(st.integers(0, 2), a_repeat, min_size=1), max_size=3
).map(side)


@given(a_run)
def test_run_compared_with_itself_has_no_changes(run: Side) -> None:
    assert {change.kind for change in compare(run, run).changes} <= {"same"}


@given(a_run, a_run)
def test_swapping_the_runs_swaps_better_and_worse_and_new_and_gone(one: Side, other: Side) -> None:
    there = {change.scenario.id: change.kind for change in compare(one, other).changes}
    back = {change.scenario.id: change.kind for change in compare(other, one).changes}
    assert {key: MIRROR[kind] for key, kind in there.items()} == back


@given(a_run, a_run)
def test_each_scenario_of_both_runs_is_listed_once(one: Side, other: Side) -> None:
    told = [change.scenario.id for change in compare(one, other).changes]
    assert sorted(told) == sorted({key[0] for run in (one, other) for key in run.run.scenarios})


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("passed", "failed", "worse"),
        ("failed", "error", "worse"),
        ("failed", "passed", "better"),
        ("passed", "skipped", "gone"),
        ("skipped", "failed", "new"),
    ],
)
def test_verdicts_determine_worse_and_better(before: str, after: str, kind: str) -> None:
    one, other = (side({"x": {0: (verdict, 0.0, "d")}}) for verdict in (before, after))
    assert [change.kind for change in compare(one, other).changes] == [kind]


def test_the_worst_comes_first() -> None:
    scores = {"a": 0.9, "b": 0.1, "c": 0.5}
    before = side({name: {0: ("passed", 1.0, "d")} for name in scores})
    after = side({name: {0: ("passed", score, "d")} for name, score in scores.items()})
    assert [change.scenario.id[-1] for change in compare(before, after).changes] == ["b", "c", "a"]


# ---------------------------------------------------------------- texts


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("the same", "the same", []),
        ("Answer in one sentence.", "Answer in one short sentence.", ["~ Answer in one {+short +}sentence."]),
        ("Answer politely, please.", "Answer, please.", ["~ Answer[- politely-], please."]),
        ("yes", "no", ["- yes", "+ no"]),
        ("a\nb\nc\nd", "a\nb\nx\nd", ["  b", "- c", "+ x", "  d"]),
        ("a\nb", "a\nb\nc", ["  b", "+ c"]),
        ("", "new", ["- ", "+ new"]),
    ],
)
def test_text_diff_shows_changes_in_context(before: str, after: str, lines: list[str]) -> None:
    assert diff_lines(before, after) == lines


def test_text_diff_of_long_texts_shows_the_words_around_the_change() -> None:
    words = [f"word{number}" for number in range(2000)]
    changed = [*words[:1000], "CHANGED", *words[1001:]]
    (shown,) = diff_lines(" ".join(words), " ".join(changed))
    assert "[-word1000-]{+CHANGED+}" in shown
    assert len(shown) < 150
    assert len("".join(diff_lines("x" * 10**6, "y" * 10**6))) < 500
    assert len("".join(diff_lines("a b " * 10**5, "c d " * 10**5))) < 500


@given(st.text("ab \n.", max_size=30), st.text("ab \n.", max_size=30))
def test_text_diff_is_empty_exactly_for_equal_texts(before: str, after: str) -> None:
    assert (diff_lines(before, after) == []) == (before == after)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
    max_leaves=8,
)


@given(json_values, json_values)
def test_value_changes_are_empty_exactly_for_equal_values(before: Any, after: Any) -> None:
    found = [*value_changes(before, after)]
    assert {place.path for place in value_changes(after, before)} == {place.path for place in found}
    assert all(place.before is not place.after or place.before is ABSENT for place in found)
    if found == []:
        assert before == after


# ---------------------------------------------------------------- traces


def event(event: str, at: float = 0.0, **data: Any) -> dict[str, Any]:
    return {"event": event, "at": at, "graph": "", **data}


def test_differences_in_content_precede_differences_in_time() -> None:
    before = [
        event("node_end", 1.0, node="a", update={}, latency=1.0),
        event("route", 1.0, source="a", target="b", condition=None),
    ]
    after = [
        event("node_end", 2.0, node="a", update={}, latency=2.0),
        event("route", 2.0, source="a", target="c", condition=None),
    ]
    found = first_difference(before, after)
    assert found is not None
    assert (found.kind, found.before, found.after) == ("route", 1.0, 2.0)
    assert found.slower == "a took 2.00 s, and 1.00 s before"
    only_time = first_difference(before[:1], after[:1])
    assert only_time is not None
    assert only_time.kind == "time"
    assert first_difference(before, before) is None


def test_run_that_ended_earlier_is_a_difference() -> None:
    events = [
        event("input", value="hi"),
        event("end", 3.0, status="completed", output=None, error=None, node=None),
    ]
    there, back = first_difference(events, events[:1]), first_difference(events[:1], events)
    assert there is not None
    assert back is not None
    assert (there.what, there.before, there.after) == ("the later run has ended", 3.0, None)
    assert (back.what, back.before, back.after) == ("the earlier run has ended", None, 3.0)


def test_added_message_is_a_difference_of_the_prompt() -> None:
    def asked(*texts: str) -> list[dict[str, Any]]:
        messages = [{"type": "human", "content": text} for text in texts]
        return [event("call", call=1, kind="llm", name="m", node="ask", request={"messages": messages})]

    found = first_difference(asked("a", "b"), asked("a", "new", "b"))
    assert found is not None
    assert [(part.place, part.lines) for part in found.parts] == [("user", ["+ new"])]
