"""Expectations are added to a scenario in its file, and weaken none that is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.authoring.addition import merged, with_expectations
from harness.errors import FormatError

FILE = Path("a.scenario.yaml")
SUITE = """\
harness: 1
scenarios:
  - name: one   # kept
    expect:
      path: [a]
      checks: [{that: x}]

  # a comment on the next one
  - {name: two, input: b}
"""


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"$len": 2}}, {"a": {"$some": "x"}}, {"a": {"$all": [{"$len": 2}, {"$some": "x"}]}}),
        ({"$exact": {"a": 1}}, {"a": 1}, {"$exact": {"a": 1}}),
        ({"a": 1}, {"$exact": {"a": 1}}, {"$exact": {"a": 1}}),
        ({"$contains": "x"}, "xyz", "xyz"),
        ({"$len": 2}, {"$len": 2}, {"$len": 2}),
    ],
)
def test_two_expectations_of_one_value_are_both_kept(old: Any, new: Any, both: Any) -> None:
    assert merged(old, new) == both


def test_a_new_key_stands_behind_the_others_and_a_list_of_conditions_grows() -> None:
    added = with_expectations(SUITE, FILE, "one", {"never": ["b"], "checks": [{"that": "y"}]})
    assert added == SUITE.replace(
        "      checks: [{that: x}]\n", "      checks: [{that: x}, {that: y}]\n      never: [b]\n"
    )


def test_a_scenario_without_expectations_gets_some() -> None:
    added = with_expectations(SUITE, FILE, "two", {"path": ["a"]})
    assert added == SUITE.replace("input: b}", "input: b, expect: {path: [a]}}")


def test_a_scenario_that_the_file_does_not_have_is_refused() -> None:
    with pytest.raises(FormatError, match="no scenario 'three'"):
        with_expectations(SUITE, FILE, "three", {"path": ["a"]})
