"""Value matchers of docs/scenario-format.md, one table row a case."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import CannotEvaluate, FormatError
from harness.matchers.value import MATCHERS, Mismatch, compare, malformed, matches


def leaf_score(expected: Any, actual: Any) -> tuple[float, list[Mismatch]]:
    score, mismatches, _ = compare(expected, actual)
    return score, mismatches


HELD = [
    # plain values
    ("a", "a"),
    (1, 1.0),
    (None, None),
    ({"a": 1}, {"a": 1, "b": 2}),
    ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}),
    ({}, {"a": 1}),
    ([1, {"a": 1}], [1, {"a": 1, "b": 2}]),
    ([], []),
    ({"$a": 1, "b": 2}, {"$a": 1, "b": 2}),
    # matchers
    ({"$contains": "fund"}, "a refund"),
    ({"$contains": 21}, "21 degrees"),
    ({"$contains": 2}, [1, 2]),
    ({"$contains": {"name": "x"}}, [{"name": "x", "id": 1}]),
    ({"$contains": "k"}, {"k": None}),
    ({"$icontains": "REFUND"}, "a refund"),
    ({"$icontains": "REFUND"}, ["pay", "refund"]),
    ({"$icontains": "straße"}, "STRASSE"),
    ({"$icontains": "two"}, [1, "TWO"]),
    ({"$regex": r"^\d+$"}, "123"),
    ({"$regex": "b"}, "abc"),
    ({"$not": "b"}, "a"),
    ({"$not": {"$contains": "x"}}, "abc"),
    ({"$in": [1, 2]}, 2),
    ({"$in": ["x", {"$regex": "^a"}]}, "abc"),
    ({"$gt": 1}, 1.5),
    ({"$gt": "2024-01-01"}, "2024-02-01"),
    ({"$gte": 2}, 2),
    ({"$lt": 2}, 1),
    ({"$lte": 2}, 2),
    ({"$approx": {"value": 0.3}}, 0.1 + 0.2),
    ({"$approx": {"value": 100}}, 100.00005),
    ({"$approx": {"value": 100, "rel": 0.1}}, 109),
    ({"$approx": {"value": 100, "abs": 1}}, 99.5),
    ({"$approx": {"value": -100, "rel": 0.1}}, -91),
    ({"$len": 3}, "abc"),
    ({"$len": 1}, {"a": 1}),
    ({"$len": {"$gte": 2}}, [1, 2]),
    ({"$type": "null"}, None),
    ({"$type": "boolean"}, True),
    ({"$type": "integer"}, 1),
    ({"$type": "number"}, 1),
    ({"$type": "number"}, 1.5),
    ({"$type": "string"}, ""),
    ({"$type": "array"}, []),
    ({"$type": "object"}, {}),
    ({"$any": True}, None),
    ({"a": {"$missing": True}}, {"b": 1}),
    ({"a": {"$missing": False}}, {"a": None}),
    ({"$schema": {"type": "object", "required": ["a"]}}, {"a": 1}),
    ({"$all": [{"$gt": 1}, {"$lt": 3}]}, 2),
    ({"$some": {"role": "user"}}, [{"role": "system"}, {"role": "user", "content": "x"}]),
    ({"$json": {"intent": "billing"}}, '{"intent": "billing", "sure": 0.9}'),
    ({"$cel": "value > 3"}, 4),
    ({"$exact": {"a": 1}}, {"a": 1}),
    ({"$exact": {"a": {"$gt": 0}}}, {"a": 1}),
    ({"$exact": [1]}, [1]),
]

NOT_HELD = [
    (1, True),
    (True, 1),
    (0, False),
    (1, "1"),
    ("a", "A"),
    ("a", "a "),
    (None, False),
    ({"a": 1}, {"a": 2}),
    ({"a": 1}, {}),
    ({"a": None}, {}),
    ({"a": 1}, [1]),
    ([1, 2], [2, 1]),
    ([1], [1, 2]),
    ([], {}),
    ({}, []),
    ({"$contains": "x"}, "abc"),
    ({"$contains": True}, [1]),
    ({"$contains": 2}, "a1"),
    ({"$contains": True}, "True"),
    ({"$contains": 1}, 11),
    ({"$icontains": "x"}, "abc"),
    ({"$icontains": "x"}, None),
    ({"$regex": r"^\d+$"}, "12a"),
    ({"$regex": "1"}, 1),
    ({"$not": "a"}, "a"),
    ({"$in": [1, 2]}, 3),
    ({"$in": [1]}, True),
    ({"$in": []}, 1),
    ({"$gt": 1}, 1),
    ({"$gt": 1}, "2"),
    ({"$gt": 0}, True),
    ({"$gte": 2}, 1),
    ({"$lt": 2}, 2),
    ({"$lt": 2}, None),
    ({"$lte": 2}, 3),
    ({"$approx": {"value": 0.3}}, 0.31),
    ({"$approx": {"value": 0.1}}, 0.1000005),
    ({"$approx": {"value": 100, "abs": 1}}, 102),
    ({"$approx": {"value": 100}}, "100"),
    ({"$len": 3}, "ab"),
    ({"$len": 1}, 1),
    ({"$len": {"$gte": 2}}, [1]),
    ({"$type": "integer"}, 1.5),
    ({"$type": "integer"}, True),
    ({"$type": "number"}, True),
    ({"$type": "string"}, None),
    ({"a": {"$missing": True}}, {"a": None}),
    ({"a": {"$missing": False}}, {}),
    ({"a": {"$any": True}}, {}),
    ({"a": {"$not": 3}}, {}),
    ({"a": {"$in": [None]}}, {}),
    ({"$schema": {"type": "object", "required": ["a"]}}, {}),
    ({"$all": [{"$gt": 1}, {"$lt": 3}]}, 3),
    ({"$some": {"role": "user"}}, [{"role": "system"}]),
    ({"$some": 1}, 1),
    ({"$json": {"intent": "billing"}}, '{"intent": "refund"}'),
    ({"$json": {"intent": "billing"}}, "{"),
    ({"$json": 1}, 1),
    ({"$json": {"$any": True}}, "[1, NaN]"),
    ({"$json": {"$any": True}}, "-Infinity"),
    ({"$cel": "value > 3"}, 2),
    ({"$exact": {"a": 1}}, {"a": 1, "b": 2}),
    ({"$exact": {"a": {"b": 1}}}, {"a": {"b": 1, "c": 2}}),
    ({"$exact": [{"a": 1}]}, [{"a": 1, "b": 2}]),
    ({"$exact": {}}, {"a": 1}),
]

MALFORMED = [
    ({"$contain": "x"}, "unknown matcher '$contain'\n    did you mean '$contains'?"),
    ({"$icontains": 1}, "$icontains wants text, not 1"),
    ({"$regex": "("}, "$regex wants a regular expression (missing ), unterminated subpattern at position 0)"),
    ({"$in": "ab"}, "$in wants a list"),
    ({"$gt": None}, "$gt wants a number or text, not null"),
    ({"$approx": 3}, "$approx wants {value, rel?, abs?}"),
    ({"$approx": {"value": 3, "tolerance": 1}}, "$approx wants {value, rel?, abs?}"),
    ({"$approx": {"value": 3, "abs": -1}}, "rel and abs not below 0"),
    ({"$len": -1}, "$len wants a count"),
    ({"$type": "text"}, "$type wants one of null, boolean, integer, number, string, array, object"),
    ({"$any": False}, "$any wants true"),
    ({"$missing": 1}, "$missing wants true or false"),
    ({"$schema": {"type": "text"}}, "not a JSON Schema (2020-12): $.type"),
    ({"$all": {"$gt": 1}}, "$all wants a list of matchers"),
    ({"$cel": "value >"}, "$cel wants an expression"),
    ({"$exact": 1}, "$exact wants a mapping or a list"),
    ({"$not": {"$gt": []}}, "$gt wants a number or text"),
    ({"$some": {"a": {"$foo": 1}}}, "a: unknown matcher '$foo'"),
]


@pytest.mark.parametrize(("expected", "actual"), HELD)
def test_it_matches(expected: Any, actual: Any) -> None:
    assert matches(expected, actual)
    assert leaf_score(expected, actual) == (1.0, [])


@pytest.mark.parametrize(("expected", "actual"), NOT_HELD)
def test_it_does_not_match(expected: Any, actual: Any) -> None:
    assert not matches(expected, actual)
    score, mismatches = leaf_score(expected, actual)
    assert score < 1
    assert mismatches


@pytest.mark.parametrize(
    ("expected", "actual", "message"),
    [
        ({"$cel": "value"}, 1, "$cel: value is 1, neither true nor false"),
        ({"$cel": "value.a > 3"}, {"b": 1}, "$cel: value.a > 3: no such key: 'a' in value.a"),
        ({"x": {"$not": {"$cel": "value > 3"}}}, {"x": "text"}, "x: $cel: value > 3: no such overload"),
        ({"$some": {"$cel": "value > 3"}}, [1, "text"], "$cel: value > 3"),
    ],
)
def test_a_matcher_that_says_nothing_of_a_value_neither_matches_nor_fails(
    expected: Any, actual: Any, message: Any
) -> None:
    with pytest.raises(CannotEvaluate) as caught:
        matches(expected, actual)
    assert str(caught.value).startswith(message)


def test_an_item_that_matches_answers_for_one_that_cannot_be_told() -> None:
    assert matches({"$some": {"$cel": "value > 3"}}, ["text", 4])


@pytest.mark.parametrize(("expected", "message"), MALFORMED)
def test_a_malformed_matcher_is_told(expected: Any, message: Any) -> None:
    with pytest.raises(FormatError) as caught:
        matches(expected, "anything")
    assert message in str(caught.value)


def test_every_matcher_is_tried_both_ways() -> None:
    def names(cases: Any) -> Any:
        text = repr([expected for expected, _ in cases])
        return {name for name in MATCHERS if f"'{name}'" in text}

    assert names(HELD) == set(MATCHERS)
    assert names(NOT_HELD) | {"$any"} == set(MATCHERS)


def test_malformed_matchers_are_found_without_a_value_to_test() -> None:
    expected = {"a": [{"$regex": "("}, {"$gt": 1}], "b c": {"$foo": 1}, "d": {"$missing": "yes"}}

    assert [flaw.path for flaw in malformed(expected)] == [
        ("a", 0, "$regex"),
        ("b c", "$foo"),
        ("d", "$missing"),
    ]


def test_a_malformed_matcher_is_told_where_its_key_is_absent_too() -> None:
    with pytest.raises(FormatError):
        matches({"a": {"$regex": "("}}, {})


@pytest.mark.parametrize(
    ("expected", "actual", "score"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, 1 / 2),
        ({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 1, "c": 9}, "d": 3}, 2 / 3),
        ({"a": {"b": 1, "c": 2}, "d": 3}, {"a": "text", "d": 3}, 1 / 3),
        ({"a": {"b": 1, "c": 2}, "d": 3}, {"d": 3}, 1 / 3),
        ({"a": [1, 2, 3], "b": 1}, {"a": [1, 2, 9], "b": 1}, 3 / 4),
        ({"a": [1, 2, 3], "b": 1}, {"a": [1, 2], "b": 1}, 1 / 4),
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"x": 1}]}, 1 / 2),
        ({"a": {"$all": [1, 2, 3]}, "b": 1}, {"a": 1, "b": 1}, 1 / 2),
        ({"a": {}, "b": 1}, {"a": 3, "b": 1}, 1 / 2),
        ("a", "b", 0),
    ],
)
def test_the_score_is_the_share_of_leaves_that_match(expected: Any, actual: Any, score: Any) -> None:
    assert leaf_score(expected, actual)[0] == pytest.approx(score)


def test_a_mismatch_says_where_and_why() -> None:
    expected = {"messages": [{"content": "a"}, {"content": {"$contains": "refund"}}], "odd key": 1, "n": [1]}
    actual = {"messages": [{"content": "a"}, {"content": "no"}], "odd key": 2, "n": [1, 2]}

    _, mismatches = leaf_score(expected, actual)

    assert [(one.path, one.actual, one.reason) for one in mismatches] == [
        ("messages[1].content", "no", 'does not contain "refund"'),
        ('["odd key"]', 2, "differs"),
        ("n", [1, 2], "expected 1 item, was 2 items"),
    ]


def test_a_schema_may_not_refer_to_the_network() -> None:
    with pytest.raises(FormatError, match="Unresolvable"):
        matches({"$schema": {"$ref": "https://example.com/schema.json"}}, {})


def test_a_value_that_breaks_a_schema_is_told_with_its_path() -> None:
    schema = {"properties": {"a": {"items": {"type": "integer"}}}}

    _, (mismatch,) = leaf_score({"$schema": schema}, {"a": [1, "x"]})

    assert mismatch.reason == "a[1]: 'x' is not of type 'integer'"


keys = st.text(max_size=4).filter(lambda key: not key.startswith("$"))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_law_a_value_matches_itself(value: Any) -> None:
    assert matches(value, value)
    assert matches({"$in": [value]}, value)
    assert not matches({"$not": value}, value)


@given(values, values)
def test_law_scores_are_shares_and_one_exactly_when_it_matches(expected: Any, actual: Any) -> None:
    score, mismatches = leaf_score(expected, actual)

    assert 0 <= score <= 1
    assert (score == 1) == matches(expected, actual) == (not mismatches)
    assert (score, mismatches) == leaf_score(expected, actual)


@given(st.dictionaries(keys, values, max_size=4), st.dictionaries(keys, values, max_size=4))
def test_law_the_order_of_keys_is_irrelevant(expected: Any, actual: Any) -> None:
    def turned(mapping: Any) -> Any:
        return dict(reversed(mapping.items()))

    assert leaf_score(expected, actual)[0] == leaf_score(turned(expected), turned(actual))[0]


@given(st.dictionaries(keys, values, max_size=3), st.dictionaries(keys, values, max_size=3))
def test_law_a_mapping_matches_every_mapping_that_contains_it(expected: Any, more: Any) -> None:
    assert matches(expected, {**more, **expected})
