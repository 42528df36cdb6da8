"""Conditions: tables of examples, and properties. NOTES 5."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dialects.leafmesh import conditions
from harness.dialects.leafmesh.conditions import LanguageError

OUTPUT: Mapping[str, Any] = {
    "a": 1,
    "b": "text",
    "yes": True,
    "no": False,
    "none": None,
    "zero": 0,
    "empty": "",
    "list": [1],
    "order": {"total": 2.5, "lines": {"first": "x"}},
    "order_by": 1,
    "android": 1,
    "nothing": 1,
}


def holds(text: str | bool, output: Mapping[str, Any] = OUTPUT) -> bool:
    return conditions.parse(text).holds(output)


HOLD: Final[list[Any]] = [
    True, "true", "TRUE", "always", "a", "b", "list", "order", "calling_agent_response",
    "calling_agent_response.a", "a == 1", "a == 1.0", "a == calling_agent_response.a", "a != 2",
    "a != '1'", "b == 'text'", 'b == "text"', "yes == true", "yes == True", "no == FALSE", "none == null",
    "none == NONE", "ghost == none", "ghost.deeper == null", "a.deeper == null", "ghost != 'x'",
    "ghost != 0", "ghost != false", "yes != 1", "no != 0", "zero == 0", "a > 0", "a >= 1", "a < 1.5",
    "order.total > 2", "order.total < 1e1", "a > -1", "zero > -.5", "b > 'tex'", "b <= 'text'",
    "'B' < 'a'", "not ghost", "not none", "not zero", "not empty", "not no", "not (a == 2)", "not a == 2",
    "not not a", "a == 2 or b == 'text'", "a and b and not no", "a or ghost and ghost",
    "no or (a and (b or ghost))", "(((a)))", "order.lines.first == 'x'", "order_by", "android == 1",
    "nothing", "(no or 1) == true", "(a == 1) == true", "1 == 1.0", "list == calling_agent_response.list",
    "order == order", "\n  a\t==\n1 ",
]  # fmt: skip
HOLD_NOT: Final[list[Any]] = [
    False, "false", "null", "0", "''", "ghost", "none", "zero", "empty", "no", "not a", "a == '1'",
    "a == true", "yes == 1", "no == 0", "none == 0", "none == ''", "none == false", "ghost < 1",
    "ghost >= null", "none <= none", "yes > 0", "yes >= yes", "a < '2'", "b > 1", "list > 0",
    "list < list", "order == null", "not (a or ghost)", "ghost and a", "a != 1.0", "a == 2 or ghost",
    "input_data.a == 1", "list == 1",
]  # fmt: skip
REFUSED: Final[list[Any]] = [
    "a = 1", "a === 1", "a == ", "== 1", "a b", "a AND b", "NOT a", "a && b", "!a", "a or", "and a", "(a",
    "a)", "()", "", "  ", "a == 1 == 1", "a + 1", "a.b()", "len(a)", "a[0]", "a in list", "a is null",
    "'open", "a.", ".a", "a..b", "a == not b", "not", "lambda: 1", "a; b", "a if b else c",
    "__import__('os')", "a orb", "a andb", "a ory == 1", "(a)andb", "1or 2", "a == 1x", "`a`", "$a",
    "a == {}", "a == []", "0x10", "1_000",
]  # fmt: skip


def test_true_conditions() -> None:
    assert [text for text in HOLD if not holds(text)] == []


def test_false_conditions() -> None:
    assert [text for text in HOLD_NOT if holds(text)] == []


def test_syntax_errors() -> None:
    assert [text for text in REFUSED if not is_refused(text)] == []


def is_refused(text: str) -> bool:
    try:
        conditions.parse(text)
    except LanguageError:
        return True
    return False


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("a = 1", "equality is =="), ("a && b", "write `and`"), ("a AND b", "write `and`"),
        ("a || b", "write `or`"), ("a OR b", "write `or`"), ("!a", "write `not`"),
        ("a is null", "write `==`"), ("len(a)", "no functions"), ("{{a}}", "without braces"),
        ("0 < a < 1", "one comparison at a time"), ("a - 1 > 0", "no arithmetic"),
        ("a in [1]", "compare with each value"), ("calling_agent_response['a']", "after a dot"),
    ],
)  # fmt: skip
def test_words_of_other_languages_are_refused_with_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(LanguageError, match=advice):
        conditions.parse(text)


def test_a_long_text_that_is_refused_is_shown_in_part() -> None:
    with pytest.raises(LanguageError) as refusal:
        conditions.parse("(" * 3000)
    assert len(str(refusal.value)) < 300


def test_the_condition_of_an_entry_point_reads_its_input() -> None:
    condition = conditions.parse("input_data.a == 1 and a == 1 and input_data", of_input=True)
    assert condition.holds({"a": 1})
    assert not condition.holds({"a": 2})


def test_an_output_may_have_a_field_called_input_data() -> None:
    assert holds("input_data.a == 2", {"a": 1, "input_data": {"a": 2}})
    assert not conditions.parse("input_data.a == 2", of_input=True).holds({"a": 1, "input_data": {"a": 2}})


# Laws

FIELDS = ("a", "b", "c", "d")
scalars = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2) | st.sampled_from(["", "x", "y", "1"])
)
values = (
    scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), scalars, max_size=2)
)
outputs = st.dictionaries(st.sampled_from(FIELDS), values)
literals = st.sampled_from(["null", "true", "false", "0", "1", "-1.5", "'x'", '"1"', "''"])
operands = (
    st.sampled_from(FIELDS) | literals | st.sampled_from(FIELDS).map("calling_agent_response.{}".format)
)
comparisons = st.tuples(operands, st.sampled_from(["==", "!=", "<", ">", "<=", ">="]), operands).map(" ".join)
texts = st.recursive(
    operands | comparisons,
    lambda inner: st.one_of(
        inner.map("not {}".format),
        inner.map("({})".format),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
    ),
    max_leaves=8,
)


@given(texts, outputs)
def test_no_condition_fails(text: str, output: dict[str, Any]) -> None:
    assert holds(text, output) in (True, False)


@given(texts, texts, outputs)
def test_and_or_and_not_are_those_of_logic(one: str, other: str, output: dict[str, Any]) -> None:
    left, right = holds(one, output), holds(other, output)
    assert holds(f"({one}) and ({other})", output) == (left and right)
    assert holds(f"({one}) or ({other})", output) == (left or right)
    assert holds(f"not ({one})", output) is not left
    assert holds(f"not not ({one})", output) is left
    assert holds(f"not (({one}) or ({other}))", output) == holds(f"not ({one}) and not ({other})", output)


@given(texts, texts, texts, outputs)
def test_not_binds_tighter_than_and_which_binds_tighter_than_or(
    one: str, two: str, three: str, output: dict[str, Any]
) -> None:
    a, b, c = f"({one})", f"({two})", f"({three})"
    assert holds(f"{a} or {b} and not {c}", output) == holds(f"{a} or ({b} and (not {c}))", output)
    assert holds(f"not {a} and {b} or {c}", output) == holds(f"((not {a}) and {b}) or {c}", output)


@given(operands, operands, outputs)
def test_comparisons_agree_with_each_other(left: str, right: str, output: dict[str, Any]) -> None:
    def says(sign: str) -> bool:
        return holds(f"{left} {sign} {right}", output)

    assert says("==") is not says("!=")
    assert holds(f"not {left} == {right}", output) is not says("==")
    if says("<") or says(">"):  # only what has an order
        assert says("<=") == (says("<") or says("=="))
        assert says(">=") == (says(">") or says("=="))
        assert not (says("<") and says(">"))


@given(values, values)
def test_equality_never_converts(left: Any, right: Any) -> None:
    kinds = ((bool,), (int, float), (str,), (list,), (dict,), (type(None),))
    kind = next(each for each in kinds if isinstance(left, each))
    if not isinstance(right, kind) or (kind != (bool,) and isinstance(right, bool)):
        assert holds("a != b", {"a": left, "b": right})
    assert holds("a == a", {"a": left}) or (isinstance(left, float) and math.isnan(left))


@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_is_refused_at_a_place_in_it(text: str) -> None:
    try:
        conditions.parse(text)
    except LanguageError as error:
        place = error.offset
    else:
        return
    assert 0 <= place <= len(text)
