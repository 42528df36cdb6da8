"""Expressions of `-k`, compared with those of pytest."""

import pytest
from _pytest.mark.expression import Expression
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import FormatError
from harness.selection.keywords import parse

WORDS = st.sampled_from(["mail", "fax", "a.scenario.yaml", "ORDERS", "x-y", "a[1]", "::b", "s/t"])
EXPRESSIONS = st.recursive(
    WORDS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
        inner.map("not {}".format),
        inner.map("( {})".format),
    ),
    max_leaves=6,
)
NAMES = st.lists(
    st.sampled_from(["an e-mail", "Fax", "orders", "a.scenario.yaml::b", "s", "s/t"]), max_size=3
)


@given(EXPRESSIONS, NAMES)
def test_an_expression_of_pytest_selects_the_same_names(text: str, names: list[str]) -> None:
    def matches(word: str, /, **_kwargs: str | int | bool | None) -> bool:
        return any(word.lower() in name.lower() for name in names)

    assert parse(text).holds(names) == Expression.compile(text).evaluate(matches)


@given(st.lists(st.sampled_from(["and", "or", "not", "(", ")", "mail"]), min_size=1, max_size=6))
def test_an_expression_that_pytest_refuses_is_refused_unless_it_is_a_phrase(tokens: list[str]) -> None:
    text = " ".join(tokens)
    try:
        Expression.compile(text)
    except SyntaxError:
        if "mail mail" not in text and "mail (" not in text:
            with pytest.raises(FormatError):
                parse(text)
    else:
        if "mail (" not in text:  # a call, which pytest refuses when it is evaluated
            parse(text)


@pytest.mark.parametrize("text", ["is answered", "IS Answered", "it is", "not (answered is)", "s a"])
def test_adjacent_words_are_a_phrase(text: str) -> None:
    assert parse(text).holds(["it is answered"])
    assert not parse("answered is").holds(["it is answered"])


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("mail and", 9, "expected a part of a name or a tag after 'and'"),
        ("or mail", 1, "expected a part of a name or a tag, found 'or'"),
        ("(mail", 1, "this '(' is never closed"),
        ("mail)", 5, "nothing opens this ')'"),
        ("mail adn (fax)", 10, "expected 'and' or 'or' before this"),
        ("()", 2, "expected a part of a name or a tag after '(', found ')'"),
    ],
)
def test_an_invalid_expression_is_an_error_with_its_column(text: str, column: int, message: str) -> None:
    with pytest.raises(FormatError) as raised:
        parse(text)
    (problem,) = raised.value.problems
    assert (str(problem.span), problem.message) == (f"-k:1:{column}", message)
    assert problem.hint.splitlines()[0] == text


def test_a_mistyped_operator_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(FormatError, match="did you mean 'and' before it"):
        parse("mail adn (fax)")
