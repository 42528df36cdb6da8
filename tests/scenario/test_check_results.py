"""Results of the checks of a run: gates, weights, names, order, and errors of checks."""

from typing import Any

import pytest

from harness.errors import Span
from harness.scenario.checks.run import run_checks
from harness.scenario.model import Expectations
from harness.scenario.outcome import Gate, Observation
from tests.scenario.observed import WEATHER, checked


def test_status_and_unused_are_checked_though_not_written() -> None:
    results = run_checks(Expectations(), Observation())

    assert [(one.name, one.passed, one.weight) for one in results] == [
        ("status", True, 0),
        ("unused", True, 0),
    ]
    assert all(isinstance(one, Gate) for one in results)


def test_the_expected_status_has_a_default() -> None:
    (result, _) = run_checks(Expectations(), Observation(status="interrupted"), default_status="interrupted")

    assert (result.passed, result.expected) == (True, "interrupted")


def test_leftover_stubs_may_be_allowed() -> None:
    results = run_checks(Expectations(), Observation(unused=["a stub"]), allow_unused=True)

    assert [one.name for one in results] == ["status"]


@pytest.mark.parametrize("weight", [0, 2])
def test_a_gate_with_a_weight_is_an_ordinary_check(weight: Any) -> None:
    expect = Expectations(weights={"status": weight})

    (status, unused) = run_checks(expect, Observation(status="failed"))

    assert (status.weight, isinstance(status, Gate), status.passed) == (weight, False, False)
    assert isinstance(unused, Gate)


def test_items_of_checks_are_checks_of_their_own() -> None:
    span = Span("a.yaml", 3, 5)
    items = [{"that": "true", "name": "yes", "weight": 3}, {"that": "false"}]
    expect = Expectations(
        {"checks": items}, {"checks": 2}, {"checks": span, "checks[1]": Span("a.yaml", 4, 5)}
    )

    results = run_checks(expect, Observation())[2:]

    assert [(one.name, one.weight, one.passed) for one in results] == [
        ("yes", 3, True),
        ("checks[1]", 2, False),
    ]
    assert [one.span and one.span.line for one in results] == [3, 4]


def test_each_judge_has_its_own_grade() -> None:
    items = [{"rubric": "kind", "model": "m"}, {"rubric": "short", "model": "m"}]

    results = run_checks(
        Expectations({"judge": items}), Observation(grades={"0": (1, "yes"), "1": (0.2, "long")})
    )

    assert [one.score for one in results[2:]] == [1, 0.2]
    assert results[3].message == "grade 0.2 is below 0.5: long"
    assert results[3].actual == {"grade": 0.2, "reason": "long"}


def test_a_total_latency_is_no_check() -> None:
    results = run_checks(
        Expectations({"latency": {"total": 1}}), Observation(latency={"total": 9, "nodes": {}})
    )

    assert [one.name for one in results] == ["status", "unused"]


def test_results_come_in_the_order_of_the_table_however_they_are_written() -> None:
    keys = ["state", "path", "output"]

    results = run_checks(Expectations(dict.fromkeys(keys)), Observation())

    assert [one.name for one in results] == ["status", "unused", "path", "state", "output"]


@pytest.mark.parametrize(
    ("key", "expected", "message"),
    [
        ("state", {"a": {"$regex": "("}}, "$regex wants a regular expression"),
        ("state_schema", {"type": "text"}, "not a JSON Schema"),
        ("visits", 3, "check broke: "),
        ("routes", ["a"], "check broke: "),
        ("pathh", ["a"], "there is no check pathh"),
    ],
)
def test_a_check_that_breaks_is_a_failed_check(key: Any, expected: Any, message: Any) -> None:
    result = checked(key, expected, Observation(state={"a": "x"}))

    assert (result.passed, result.score) == (False, 0)
    assert result.message.startswith(message)


@pytest.mark.parametrize(
    ("key", "expected", "message"),
    [
        ("checks", [{"that": "state.count"}], "state.count is 2, neither true nor false"),
        ("checks", [{"that": "state.other > 2"}], "state.other > 2: no such key: 'other' in state.other"),
        ("checks", [{"that": "state.count == 'x'.foo"}], "state.count == 'x'.foo: no field 'foo'"),
        ("state", {"count": {"$cel": "value.x > 1"}}, "count: $cel: value.x > 1: no field 'x'"),
        ("state", {"count": {"$not": {"$cel": "value.x > 1"}}}, "count: $cel: value.x > 1: no field 'x'"),
        ("never_calls", [{"tool": "*", "args": {"days": {"$cel": "value.x"}}}], "days: $cel: value.x"),
        ("calls", [{"tool": "*", "args": {"days": {"$cel": "value.x"}}}], "days: $cel: value.x"),
    ],
)
def test_a_check_that_says_nothing_of_the_run_is_broken(key: Any, expected: Any, message: Any) -> None:
    result = checked(key, expected, Observation(state={"count": 2}, calls=WEATHER))

    assert (result.broken, result.passed, result.score) == (True, False, 0)
    assert result.message.startswith(f"cannot be evaluated: {message}")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("checks", [{"that": "has(state.other) ? state.other > 2 : true"}]),
        ("state", {"other": {"$missing": True}}),
        ("calls", [{"tool": "*", "args": {"city": {"$cel": "value == 'Paris'"}}}]),
    ],
)
def test_what_may_be_absent_is_asked_for(key: Any, expected: Any) -> None:
    assert checked(key, expected, Observation(state={"count": 2}, calls=WEATHER)).passed


def test_an_unknown_order_of_calls_is_a_failed_check() -> None:
    assert checked("calls", [], Observation(), calls_order="strict").message.startswith("check broke: ")
