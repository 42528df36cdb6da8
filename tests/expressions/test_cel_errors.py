"""Messages of wrong expressions, and the limits that keep evaluations from hanging."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from harness.errors import ExpressionError
from harness.expressions.cel import compile

BINDINGS: dict[str, Any] = {"state": {"count": 1, "items": [1, 2], "name": "x"}, "prompts": {}}


def message(source: str) -> str:
    with pytest.raises(ExpressionError) as raised:
        compile(source).evaluate(BINDINGS)
    assert raised.value.source == source
    return str(raised.value)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("state.no_such_field", "no such key: 'no_such_field' in state.no_such_field"),
        ('state["no_such_field"]', "no such key: 'no_such_field' in state[\"no_such_field\"]"),
        ("1 + state.cuont", "no such key: 'cuont' in state.cuont (did you mean 'count'?)"),
        ("stat.count", "undeclared name 'stat' (did you mean 'state'?)"),
        ("state.nope.deeper.still", "no such key: 'nope' in state.nope"),
        ("state.items[5]", "index 5 is out of range (size 2) in state.items[5]"),
        ("state.name.field", "no field 'field' in a value of type string in state.name.field"),
        ("1 + 0.5", "no such overload: + of int and double in 1 + 0.5"),
        ("1 / 0", "division by zero in 1 / 0"),
        ("9223372036854775807 + 1", "integer overflow in 9223372036854775807 + 1"),
        (
            "state.name.upperAscci()",
            "no function 'upperAscci' in state.name.upperAscci() (did you mean 'upperAscii'?)",
        ),
        ("len(state.items)", "no function 'len' in len(state.items) (did you mean 'size'?)"),
        ("state.name.strip()", "no function 'strip' in state.name.strip() (did you mean 'trim'?)"),
        ("state.count == None", "undeclared name 'None' (did you mean 'null'?)"),
        ('state["None"]', "no such key: 'None' in state[\"None\"]"),
        ("all([1], x, x > 0)", "no function 'all'; it is a method: list.all(x, …) in all([1], x, x > 0)"),
        ('"abc".substring(1)', 'no such overload: substring(string, int) in "abc".substring(1)'),
        ('split("a", "")', 'split(): the separator is empty in split("a", "")'),
        ('int("x")', "int(): cannot read 'x' in int(\"x\")"),
        ("state.count ? 1 : 2", "the condition of ?: has type int, not bool in state.count ? 1 : 2"),
        ("[0].map(x, 1 / x)", "division by zero in 1 / x"),
    ],
)
def test_an_evaluation_error_names_what_failed_and_where(source: str, expected: str) -> None:
    assert message(source) == expected


def test_json_errors_say_what_is_wrong_with_the_text() -> None:
    assert "json(): not valid JSON (Expecting value" in message('json("{\\"a\\": ")')
    assert "(char 0)): 'it is renew' in json(" in message('json("it is renew")')


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("state.count = 1", "unexpected '=' (equality is ==) (line 1, column 13)"),
        ("a and b", "unexpected 'and' (and is &&) (line 1, column 3)"),
        ("state.", "the expression ends too early (line 1, column 7)"),
        ("(1", "the expression ends too early (line 1, column 3)"),
        ("1)", "unexpected ')' (line 1, column 2)"),
        ("[1,\n 2 3]", "unexpected '3' (line 2, column 4)"),
        ("a @ b", "unexpected '@' (line 1, column 3)"),
        ('x == "abc', "a string is not closed (line 1, column 6)"),
        ("", "the expression is empty (line 1, column 1)"),
        ("Foo{a: 1}", 'message types cannot be constructed; a map is written {"key": value}'),
        ("9223372036854775808", "not a literal: 9223372036854775808 (integer overflow)"),
        ("has()", "has() takes 1 argument, not 0"),
        ("default(1)", "default() takes 2 arguments, not 1"),
        ("[1].map(x)", "map() takes 2 arguments, not 1"),
        ("[1].filter(1, true)", "filter() starts with a variable name: filter(x, …)"),
    ],
)
def test_a_text_that_is_no_expression_is_refused_when_compiled(source: str, expected: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        compile(source)
    assert str(raised.value) == expected


def test_a_syntax_error_has_a_line_and_a_column() -> None:
    with pytest.raises(ExpressionError) as raised:
        compile("[1,\n  2 3]")
    assert (raised.value.line, raised.value.column) == (2, 5)


def test_an_evaluation_error_has_a_line_and_a_column() -> None:
    with pytest.raises(ExpressionError) as raised:
        compile("[1,\n  state.nope]").evaluate(BINDINGS)
    assert (raised.value.line, raised.value.column) == (2, 3)


@pytest.mark.parametrize(
    "source",
    [
        "(" * 10_000 + "1" + ")" * 10_000,
        "[" * 10_000,
        "!" * 2_000 + "true",
        "a" + ".b" * 2_000,
        "true ? 1 : " * 500 + "1",
        "1" + " " * 100_000,
        '"' + "\\n" * 5_000,
        "'''" + "\\n" * 5_000,
        'r"""' + "\\n" * 5_000,
        "1" * 5_000,
    ],
    ids=["parens", "brackets", "nots", "fields", "ternaries", "length", "quote", "triple", "raw", "digits"],
)
def test_monstrous_text_is_refused(source: str) -> None:
    with pytest.raises(ExpressionError):
        compile(source)


def test_long_flat_expressions_are_fine() -> None:
    assert compile(" + ".join(["1"] * 2_000)).evaluate({}) == 2_000
    assert compile(" || ".join(["false"] * 1_000)).evaluate({}) is False
    assert compile("(" * 50 + "1" + ")" * 50).evaluate({}) == 1
    assert compile("-(" * 40 + "1" + ")" * 40).evaluate({}) == 1


def test_a_value_that_contains_itself_has_no_plain_form() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert compile("size(loop)").evaluate({"loop": loop}) == 1
    with pytest.raises(ExpressionError, match="nested too deeply"):
        compile("loop").evaluate({"loop": loop})


def test_importing_the_engine_does_not_load_cel_python() -> None:
    program = "import sys, harness.expressions.cel; sys.exit('celpy' in sys.modules or 'lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
