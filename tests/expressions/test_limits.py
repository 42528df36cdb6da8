"""An expression that would take for ever, or all memory, is an error that nothing absorbs."""

import pytest

from harness.errors import ExpressionError
from harness.expressions import functions as limits
from harness.expressions.cel import compile

TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STEPS", "LONGEST_TEXT", "LONGEST_LIST"):
        monkeypatch.setattr(limits, name, 1000)


def nested(depth: int) -> str:
    return TEN if depth == 0 else f"{TEN}.map(x{depth}, {nested(depth - 1)})"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (nested(4), "the expression looks at more than 1,000 items"),
        (f"default({nested(4)}, 1)", "the expression looks at more than 1,000 items"),
        (f"size({nested(4)}) > 0 || true", "the expression looks at more than 1,000 items"),
        (f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, true))))", "more than 1,000 items"),
        (f"{TEN}.reduce(s, i, 'abc', s + s)", "the text would have more than 1,000 characters"),
        (f"{TEN}.reduce(s, i, [1, 2, 3], s + s)", "the list would have more than 1,000 items"),
        (f"{TEN}.reduce(s, i, 'aa', s.replace('a', s))", "the text would have more than 1,000 characters"),
        (f"{TEN}.reduce(s, i, 'aa', [s, s].join(s))", "the text would have more than 1,000 characters"),
        ("template(long, {'a': long})", "the text would have more than 1,000 characters"),
    ],
)
def test_an_expression_that_explodes_is_an_error(source: str, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        compile(source).evaluate({"long": "${a}" * 200})


def test_each_evaluation_has_its_own_limit() -> None:
    expression = compile(f"size({nested(2)})")
    assert [expression.evaluate({}) for _ in range(50)] == [10] * 50


def test_long_values_are_read_whatever_their_size() -> None:
    assert compile("size(text) + size(items)").evaluate({"text": "a" * 5000, "items": [0] * 5000}) == 10_000
