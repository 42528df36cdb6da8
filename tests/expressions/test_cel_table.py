"""The values of expressions: the sherma document's CEL section, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import ExpressionError
from harness.expressions.cel import compile

STATE: dict[str, Any] = {
    "n": 3,
    "f": 1.5,
    "s": "abc",
    "t": True,
    "line": "  Ebb,Flood  ",
    "body": '{"result": {"score": 0.75, "tags": ["x", "y"]}, "nil": null}',
    "broken": '{"result": ',
    "nums": [3, 1, 4, 1, 5],
    "empty": [],
    "birds": [{"name": "tern", "m": 35}, {"name": "gull", "m": 60}],
    "messages": [
        {"type": "human", "content": "look", "additional_kwargs": {"kind": "tag", "meta": {"ids": [7, 8]}}},
        {"type": "ai", "content": "it rains", "additional_kwargs": {}},
    ],
}
BINDINGS = {
    "state": STATE,
    "prompts": {"verse": {"instructions": "Moon ${phase}."}, "my-prompt": {"instructions": "hi"}},
    "llms": {"m": {"model_name": "almanac-1"}},
}


def value(source: str) -> Any:
    return compile(source).evaluate(BINDINGS)


def table(text: str) -> list[Any]:
    """Rows of `expression => Python value`; the expression is the test's name."""
    rows = [line.split(" => ") for line in text.strip().splitlines() if line.strip()]
    return [pytest.param(source.strip(), expected.strip(), id=source.strip()) for source, expected in rows]


def same(actual: Any, expected: str) -> bool:
    return repr(actual) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    table(r"""
    "hello" => 'hello'
    'single' => 'single'
    "a\"b" => 'a"b'
    "\u00e6\x41" => 'æA'
    r"\d" => '\\d'
    42 => 42
    -7 => -7
    0x1F => 31
    5u => 5
    1.5 => 1.5
    true => True
    null => None
    b"ab" => b'ab'
    [1, "a", 2.5, null] => [1, 'a', 2.5, None]
    [] => []
    {"a": 1, "b": [true]} => {'a': 1, 'b': [True]}
    {} => {}
    """),
)
def test_literals(source: str, expected: str) -> None:
    assert same(value(source), expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    table("""
    state.n => 3
    state["n"] => 3
    state.birds[1].name => 'gull'
    state["birds"][0]["m"] => 35
    state.messages[size(state.messages) - 1] => {'type': 'ai', 'content': 'it rains', 'additional_kwargs': {}}
    state.messages[size(state.messages) - 1].content => 'it rains'
    state.messages[0]["additional_kwargs"]["meta"]["ids"][1] => 8
    prompts["my-prompt"]["instructions"] => 'hi'
    prompts.verse.instructions => 'Moon ${phase}.'
    llms["m"]["model_name"] => 'almanac-1'
    state.nums[-1] => 5
    {"count": state.n + 1, "status": "done"} => {'count': 4, 'status': 'done'}
    """),
)
def test_paths(source: str, expected: str) -> None:
    assert same(value(source), expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    table("""
    state.n + 1 => 4
    1 - 2 - 3 => -4
    2 * 3 + 4 => 10
    7 / 2 => 3
    -7 / 2 => -3
    -7 % 3 => -1
    7.0 / 2.0 => 3.5
    -state.n => -3
    "a" + "b" => 'ab'
    [1] + state.empty + [2] => [1, 2]
    state.n > 2 => True
    "a" < "b" => True
    state.s == "abc" => True
    state.s != "abc" => False
    [1, 2] == [1, 2] => True
    {"a": 1} == {"a": 1} => True
    !state.t => False
    state.n > 2 && state.t => True
    false || state.t => True
    state.n > 5 ? "long" : "short" => 'short'
    4 in state.nums => True
    9 in state.nums => False
    "m" in state.birds[1] => True
    "x" in state.birds[1] => False
    size("Ærø") => 3
    "😀".size() => 1
    size(state.nums) + state.birds.size() => 7
    string(1) => '1'
    string(1.5) => '1.5'
    string(true) => 'True'
    int("5") => 5
    int(1.9) => 1
    double("1.5") => 1.5
    double(state.n) + state.f => 4.5
    type(state.n) == int => True
    type("a") == string => True
    type(state.nums) == list && type(state.birds[0]) == map => True
    "tide".startsWith("ti") => True
    "tide".endsWith("de") => True
    "tide".contains("id") => True
    "tide-42".matches("[a-z]+-[0-9]+") => True
    timestamp("2020-01-01T00:00:00Z") + duration("90s") => '2020-01-01T00:01:30Z'
    duration("90s") => '90s'
    """),
)
def test_standard_operators_and_functions(source: str, expected: str) -> None:
    assert same(value(source), expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    table("""
    state.nums.filter(x, x > 2) => [3, 4, 5]
    state.nums.map(x, x * x) => [9, 1, 16, 1, 25]
    state.nums.all(x, x > 0) => True
    state.nums.exists(x, x == 4) => True
    state.nums.exists_one(x, x == 5) => True
    state.nums.exists_one(x, x == 1) => False
    state.empty.all(x, x > 100) => True
    state.empty.exists(x, true) => False
    state.birds.filter(b, state.nums.exists(x, x * 12 == b.m)).map(b, b["name"]) => ['gull']
    state.birds.map(b, b.name.upperAscii()).join("/") => 'TERN/GULL'
    [1, 2].map(x, [3, 4].map(y, x * y)) => [[3, 4], [6, 8]]
    [1, 2].map(x, [x].map(x, x + 1)) => [[2], [3]]
    [[1, 2], [3]].map(l, size(l)) => [2, 1]
    state.birds[0].map(key, key) => ['name', 'm']
    has(state.birds[0].m) => True
    has(state.birds[0].colour) => False
    has(state.nope) => False
    state.messages.map(m, m["type"]) => ['human', 'ai']
    state.messages.exists(m, m["additional_kwargs"]["kind"] == "tag") => True
    size(state.messages.filter(m, default(m["additional_kwargs"]["kind"], "") == "tag")) => 1
    last(state.messages.filter(m, m["type"] == "ai"))["content"] => 'it rains'
    [1, 2, 3].reduce(sum, i, 0, sum + i) => 6
    [3, 1].min() => 1
    dyn(1) => 1
    """),
)
def test_macros(source: str, expected: str) -> None:
    assert same(value(source), expected)


# name, arguments, value: called as function and as method
BOTH_STYLES = [
    ("json", ["state.body"], {"result": {"score": 0.75, "tags": ["x", "y"]}, "nil": None}),
    ("json", ['"[1, [2, 3]]"'], [1, [2, 3]]),
    ("json", ['"7"'], 7),
    ("json", ['"null"'], None),
    ("jsonValid", ["state.body"], True),
    ("jsonValid", ["state.broken"], False),
    ("jsonValid", ['""'], False),
    ("jsonValid", ['"3"'], True),
    ("default", ["state.nope", '"none"'], "none"),
    ("default", ["state.n", "0"], 3),
    ("split", ['"a;b"', '";"'], ["a", "b"]),
    ("split", ['"abc"', '","'], ["abc"]),
    ("trim", ['" x "'], "x"),
    ("lowerAscii", ['"AbÆ"'], "abæ"),
    ("upperAscii", ['"aBæ"'], "ABÆ"),
    ("replace", ['"wave wave"', '"wave"', '"calm"'], "calm calm"),
    ("indexOf", ['"seaweed"', '"we"'], 3),
    ("indexOf", ['"seaweed"', '"z"'], -1),
    ("join", ['["a", "b"]', '"+"'], "a+b"),
    ("join", ["[]", '","'], ""),
    ("join", ["[1, 2.5, true]", '","'], "1,2.5,True"),
    ("substring", ['"harbour"', "3", "7"], "bour"),
    ("substring", ['"bay"', "1", "99"], "ay"),
    ("substring", ['"bay"', "2", "2"], ""),
    ("template", ['"Hi ${a}${a}, ${unknown}"', '{"a": "x"}'], "Hi xx, ${unknown}"),
    ("template", ['"${n} ${f} ${t}"', '{"n": 3, "f": 1.5, "t": true}'], "3 1.5 True"),
    ("template", ['"${a}"', '{"a": "${b}", "b": "x"}'], "x"),
    ("template", ['"${a}"', '{"b": "x", "a": "${b}"}'], "${b}"),
    ("template", ['"$${a}"', '{"a": 1}'], "$1"),
    ("template", ['"a${b}c"', '{"b": ""}'], "ac"),
    ("last", ["state.nums"], 5),
    ("size", ["state.nums"], 5),
    ("contains", ['"tide"', '"id"'], True),
    ("contains", ["[1, 2]", "2"], True),
    ("contains", ["state.birds[0]", '"name"'], True),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), BOTH_STYLES)
def test_functions_are_called_as_functions_and_as_methods(
    name: str, arguments: list[str], expected: Any
) -> None:
    subject, *rest = arguments
    assert value(f"{name}({', '.join(arguments)})") == expected
    assert value(f"{subject}.{name}({', '.join(rest)})") == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    table("""
    default(json(state.body)["nope"]["deep"], "none") => 'none'
    default(json(state.body)["result"]["score"], 0.0) => 0.75
    default(json(state.broken), "a, (b") => 'a, (b'
    default(last([]), "empty") => 'empty'
    default(state.nums[9], -1) => -1
    default(1 / 0, 99) => 99
    default(1 + 0.5, "mixed") => 'mixed'
    default(state.nope, default(state.nope, "deep")) => 'deep'
    default(json(state.broken)["a"], "") != "" => False
    1 + default(state.nope, 41) => 42
    [1, 2].map(x, default(state.nums[x + 2], 0)) => [1, 5]
    state.nope.default("method") => 'method'
    default(false, true) => False
    default("", "x") => ''
    default(0, 1) => 0
    default(state.empty, [1]) => []
    default(null, 1) => None
    jsonValid(state.broken) && json(state.broken)["a"] == 1 => False
    """),
)
def test_default_catches_every_error_of_its_first_argument_and_no_value(source: str, expected: str) -> None:
    assert same(value(source), expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    table("""
    true || state.nope => True
    state.nope || true => True
    false && state.nope => False
    state.nope && false => False
    [1, 0].exists(x, 1 / x == 1) => True
    [0, 1].exists(x, 1 / x == 1) => True
    [0, 1].all(x, 1 / x == 5) => False
    [0].map(x, 1 / x) == [1] || true => True
    true ? 1 : state.nope => 1
    false ? state.nope : 2 => 2
    """),
)
def test_a_failed_side_is_absorbed_when_the_other_decides(source: str, expected: str) -> None:
    assert same(value(source), expected)


@pytest.mark.parametrize(
    "source",
    [
        "1 + 0.5",
        '1 == "1"',
        '"a" + 1',
        '"a" * 2',
        '"%d" % 1',
        "9223372036854775807 + 1",
        "-9223372036854775808 - 1",
        "9223372036854775807 * 2",
        "1 / 0",
        "1 % 0",
        "-true",
        "!state.n",
        "state.n ? 1 : 2",
        "state.nope",
        "nope",
        "state.birds[7]",
        "state.n.field",
        "state.birds[0].colour",
        'state.nums["a"]',
        "state.nums[1.0]",
        "false || state.nope",
        "true && state.nope",
        "[0, 1].exists(x, 1 / x == 5)",
        "[0, 1].all(x, 1 / x == 1)",
        "[0, 1].filter(x, 1 / x == 1)",
        "[0, 1].map(x, 1 / x)",
        "[0, 1].exists_one(x, 1 / x == 1)",
        "state.n.map(x, x)",
        'split("abc", "")',
        '"abc".substring(1)',
        '"abc".substring(1, 2, 3)',
        "last([])",
        'json("{")',
        'json("")',
        "json(state.nums)",
        '"abc".matches("[")',
        'int("x")',
        'template("x", [1])',
        "default(state.nope, state.gone)",
        '{"a": state.nope}',
        '{"a": 1, "a": 2}',
        "{[1]: 2}",
        "unknown(1)",
        "all([1], x, x > 0)",
        "size(5)",
    ],
)
def test_there_is_no_value(source: str) -> None:
    with pytest.raises(ExpressionError):
        value(source)


MIXED = table("""
    1 < 1.5 => True
    3 <= 1.5 => False
    2 > 1.5 => True
    state.n >= 3.5 => False
    1 == 1.0 => True
    2u != 2 => False
    9007199254740993 == 9007199254740992.0 => False
    2 in [1.0, 2.0] => True
    [1, 2.0] == [1.0, 2] => True
    {"a": [3]} == {"a": [3.0]} => True
    {"a": 1} != {"b": 1.0} => True
    """)


@pytest.mark.parametrize(("source", "expected"), MIXED)
def test_numbers_of_different_types_are_compared_by_value_in_scenario_files(
    source: str, expected: str
) -> None:
    assert same(value(source), expected)


@pytest.mark.parametrize("source", [row.values[0] for row in MIXED if "!=" not in row.values[0]])
def test_they_cannot_be_compared_in_sherma(source: str) -> None:
    with pytest.raises(ExpressionError):
        compile(source, null_as_false=True).evaluate(BINDINGS)


@pytest.mark.parametrize(
    "source", ['1 == "1"', "1 != true", '"a" < 1.5', '[1, "a"] == [1.0, 5]', "1 in ['1']"]
)
def test_values_that_are_no_numbers_are_compared_with_their_own_type_only(source: str) -> None:
    with pytest.raises(ExpressionError):
        value(source)


@pytest.mark.parametrize(
    "content", ["all COMPLETE", ["all", {"type": "text", "text": "COMPLETE"}, {"type": "image"}]]
)
@pytest.mark.parametrize("mark", ["type", "role"])
def test_contains_looks_into_the_content_of_a_message(content: Any, mark: str) -> None:
    bindings = {"message": {mark: "ai", "content": content}}
    assert compile('message.contains("COMPLETE")').evaluate(bindings) is True
    assert compile('message.contains("content")').evaluate(bindings) is False
