"""Checks on large values: one that fails takes about the time and memory of one that passes."""

import time
import tracemalloc
from typing import Any

import pytest

from harness.report.encoding import encode
from harness.scenario.checks.run import run_checks
from harness.scenario.model import Expectations
from harness.scenario.outcome import Observation

COUNT = 2_000
ROWS = [{"id": number, "name": f"row {number}"} for number in range(COUNT)]
OTHERS = [{"id": -1 - number, "name": f"other {number}"} for number in range(COUNT)]
TEXT = "the quick brown fox " * 100_000


def checked(expected: Any) -> Any:
    observed = Observation(state={"rows": ROWS}, output=TEXT)
    return run_checks(Expectations(expected), observed, allow_unused=True)[-1]


def cost(expected: Any) -> tuple[float, int]:
    """Processor seconds, at best, and the most bytes held."""
    seconds = []
    for _ in range(5):
        began = time.process_time()
        checked(expected)
        seconds.append(time.process_time() - began)
    tracemalloc.start()
    checked(expected)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return min(seconds), most


@pytest.mark.parametrize(
    ("holds", "fails"),
    [
        ({"state": {"rows": ROWS}}, {"state": {"rows": OTHERS}}),
        ({"state": {"rows": ROWS}}, {"state": {"rows": ROWS[:-1]}}),
        ({"state": {"rows": ROWS}}, {"state": {"rows": {"$not": ROWS}}}),
        ({"state": {"rows": {"$exact": ROWS}}}, {"state": {"rows": {"$exact": OTHERS}}}),
        ({"state": {"rows": {"$some": ROWS[-1]}}}, {"state": {"rows": {"$some": OTHERS[0]}}}),
        (
            {"state_schema": {"properties": {"rows": {"items": {"type": "object"}}}}},
            {"state_schema": {"properties": {"rows": {"items": {"type": "string"}}}}},
        ),
    ],
    ids=["items", "length", "not", "exact", "some", "schema"],
)
def test_a_failing_check_on_a_long_list_costs_about_what_a_passing_one_does(holds: Any, fails: Any) -> None:
    assert (checked(holds).passed, checked(fails).passed) == (True, False)
    (passing_s, passing_bytes), (failing_s, failing_bytes) = cost(holds), cost(fails)
    assert failing_s < 4 * passing_s + 0.02
    assert failing_bytes < 2 * passing_bytes + 1_000_000


@pytest.mark.parametrize(
    "expected", [f"{TEXT[:-1]}!", f"!{TEXT[1:]}", {"$contains": "cat"}, {"$not": TEXT}, ["short"]]
)
def test_the_difference_of_a_long_text_is_told_in_few_words(expected: Any) -> None:
    result = checked({"output": expected})
    assert not result.passed
    assert len(result.message) < 500
    assert len(encode(result.actual)) < 1000


def test_the_place_where_long_texts_begin_to_differ_is_shown() -> None:
    middle = len(TEXT) // 2
    assert "fox dog the" in checked({"output": f"{TEXT[:middle]}dog {TEXT[middle:]}"}).message
