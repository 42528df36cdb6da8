"""The exact texts of differences."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.scenario.checks.finding import one_line, readable_diff

LONG = "Dear customer, thank you for writing. We looked at your order and at all that came with it; "

GOLDEN = [
    ({"a": 1}, {"a": 1, "b": 2}, ""),
    ("billing", "refund", "expected 'billing', was 'refund'"),
    ({"intent": "billing"}, {"intent": "refund"}, "intent: expected 'billing', was 'refund'"),
    ({"n": 1}, {"n": "1"}, "n: expected 1, was '1'"),
    ({"n": True}, {"n": 1}, "n: expected true, was 1"),
    (
        {"a": {"contains": "x"}},
        {"a": "x"},
        "a: expected {contains: 'x'}, was 'x' (did you mean '$contains'?)",
    ),
    ({"a": {"contains": "x"}}, {"a": {}}, "a.contains: expected 'x', was nothing"),
    (
        {"n": "caf\u00e9"},
        {"n": "cafe\u0301"},
        "n: expected 'caf\u00e9', was 'cafe\u0301' (the same letters, in another Unicode form)",
    ),
    ({"n": 1}, {"n": None}, "n: expected 1, was null"),
    ({"n": 1}, {}, "n: expected 1, was nothing"),
    (
        {"order": {"total": {"$gt": 10}, "id": 7}},
        {"order": {"total": 3, "id": 7}},
        "order.total: expected {$gt: 10}, was 3 (is not > 10)",
    ),
    ({"a": {"b": 1}}, {"a": [1]}, "a: expected {b: 1}, was [1]"),
    ({"tags": ["x"]}, {"tags": []}, "tags: expected ['x'], was [] (expected 1 item, was 0 items)"),
    ({"$exact": {"a": 1}}, {"a": 1, "b": 2}, "expected {$exact: {a: 1}}, was {a: 1, b: 2} (b: not expected)"),
    ({"text": "one\ntwo"}, {"text": "one"}, """text: expected "one\\ntwo", was 'one'"""),
    (
        {"messages": [{"content": LONG + "your refund was issued today."}]},
        {"messages": [{"content": LONG + "we refuse to pay."}]},
        "messages[0].content:\n"
        "  expected: …' that came with it; your refund was issued today.'\n"
        "  actual:   …' that came with it; we refuse to pay.'",
    ),
    (
        {"body": {"$contains": "refund"}},
        {"body": LONG * 2},
        "body:\n"
        "  expected: {$contains: 'refund'}\n"
        "  actual:   'Dear customer, thank you for writing. We looked at your order and at all that came with "
        "it; Dear c…\n"
        '  because:  does not contain "refund"',
    ),
    (  # texts are told from other values, and from each other
        {"id": "1", "on": "true", "end": "yes ", "none": "", "is": {"plain": "it's"}},
        {"id": 1, "on": True, "end": "yes", "none": " ", "is": {"plain": "its"}},
        "id: expected '1', was 1\n"
        "on: expected 'true', was true\n"
        "end: expected 'yes ', was 'yes'\n"
        "none: expected '', was ' '\n"
        "is.plain: expected 'it''s', was 'its'",
    ),
    (  # the end of a long text
        LONG * 2 + " ",
        LONG * 2,
        "expected: …' that came with it;  '\nactual:   …' that came with it; '",
    ),
    (  # all differences have the form of the longest
        {"id": 1, "text": LONG, "refnd": 5},
        {"id": 2, "text": "none", "refund": 5},
        "id:\n"
        "  expected: 1\n"
        "  actual:   2\n"
        "text:\n"
        "  expected: 'Dear customer, thank you for writing. We looked at your order and at all that came with "
        "it; '\n"
        "  actual:   'none'\n"
        "refnd:\n"
        "  expected: 5\n"
        "  actual:   nothing\n"
        "  because:  did you mean 'refund'?",
    ),
]


@pytest.mark.parametrize(("expected", "actual", "text"), GOLDEN)
def test_a_difference_reads(expected: Any, actual: Any, text: Any) -> None:
    assert readable_diff(expected, actual) == text


def test_many_differences_are_cut() -> None:
    lines = readable_diff({f"k{i}": 0 for i in range(13)}, {}).splitlines()

    assert len(lines) == 11
    assert lines[-1] == "… and 3 more"


def test_a_key_that_is_not_there_comes_with_the_nearest_one() -> None:
    actual = {"refund": 5, "note": "x"}
    assert readable_diff({"refnd": 5}, actual) == "refnd: expected 5, was nothing (did you mean 'refund'?)"
    assert readable_diff({"zebra": {"a": 1}}, actual) == "zebra: expected {a: 1}, was nothing"


texts = (
    st.text(max_size=6)
    | st.text(" '\"#:-&*{}[]|>\\", max_size=8)
    | st.sampled_from(["yes", "Null", "on", "y"])
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | st.just("a1"), inner, max_size=3),
    max_leaves=6,
)


@given(values)
def test_a_value_is_shown_as_yaml_that_means_the_same(value: Any) -> None:
    assert yaml.safe_load(one_line(value, 10_000)) == value
