"""YAML: values, versions, and everything that is refused."""

from __future__ import annotations

import contextlib
import datetime
import math
import random
from typing import Any, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ManifestError, Problem
from harness.source.document import parse


def value_of(text: str, version: Literal["1.1", "1.2"] = "1.1") -> Any:
    return parse(text, file="f.yaml", yaml=version).value


def problems_of(text: str, version: Literal["1.1", "1.2"] = "1.1") -> list[tuple[str, int, int]]:
    return [(p.code, p.span.line, p.span.column) for p in problem_list(text, version) if p.span]


def problem_list(text: str, version: Literal["1.1", "1.2"] = "1.1") -> tuple[Problem, ...]:
    with pytest.raises(ManifestError) as caught:
        parse(text, file="f.yaml", yaml=version)
    return caught.value.problems


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.dates(),
    st.sampled_from(
        ["yes", "No", "on", "off", "y", "012", "1:30", "1_000", "0x1f", "0b11", "1e3", "~", ".inf", "=", "<<"]
    ),
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(DATA, st.booleans(), st.sampled_from([None, "'", '"', "|", ">"]))
def test_version_1_1_reads_what_pyyaml_reads(data: Any, flow: bool, style: str | None) -> None:
    text = yaml.safe_dump(data, default_flow_style=flow, default_style=style, allow_unicode=True)
    node: Any = yaml.compose(text)
    if node.value == "" and data is None:
        return  # an empty document is refused
    assert value_of(text) == yaml.safe_load(text)


KEYS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.dates(), st.text(max_size=8)
)


@given(
    st.recursive(SCALARS, lambda inner: st.dictionaries(KEYS, inner, max_size=4), max_leaves=15),
    st.booleans(),
)
def test_keys_may_be_the_scalars_of_pyyaml_in_a_version_of_their_own(data: Any, flow: bool) -> None:
    text = yaml.safe_dump({"data": data}, default_flow_style=flow, allow_unicode=True)
    document = parse(text, file="f.yaml", yaml="scalar-keys")
    assert document.value == yaml.safe_load(text)
    for key in data if isinstance(data, dict) else ():
        assert document.key_span(("data", key)).line <= document.span(("data", key)).line


def test_a_key_of_no_version_is_a_list_or_a_mapping() -> None:
    with pytest.raises(ManifestError) as caught:
        parse("a: 1\n[b]: 2\n", file="f.yaml", yaml="scalar-keys")
    assert [str(problem) for problem in caught.value.problems] == [
        "f.yaml:2:1: a key must be text, not a list or mapping"
    ]


PLAIN = st.text(alphabet="yesnoftru0123456789abx_:.-+eE~T Z", min_size=1, max_size=12)


@given(PLAIN)
def test_plain_scalars_of_version_1_1_have_the_values_of_pyyaml(scalar: str) -> None:
    text = f"- {scalar.strip() or 'x'}\n"
    try:
        expected = yaml.safe_load(text)
    except (ValueError, yaml.YAMLError):
        return
    if all(type(key) is str for item in expected if isinstance(item, dict) for key in item):
        assert value_of(text) == expected or "nan" in scalar


@pytest.mark.parametrize(
    ("written", "in_1_1", "in_1_2"),
    [
        ("yes", True, "yes"),
        ("no", False, "no"),
        ("On", True, "On"),
        ("true", True, True),
        ("FALSE", False, False),
        ("012", 10, 12),
        ("0o14", "0o14", 12),
        ("0x1F", 31, 31),
        ("0b11", 3, "0b11"),
        ("1_000", 1000, "1_000"),
        ("1:30", 90, "1:30"),
        ("1e3", "1e3", 1000.0),
        ("-.5", "-.5", -0.5),
        ("1.", 1.0, 1.0),
        ("-.inf", -math.inf, -math.inf),
        ("~", None, None),
        ("Null", None, None),
        ("", None, None),
        ("2024-05-01", datetime.date(2024, 5, 1), "2024-05-01"),
        ("'12'", "12", "12"),
        ("!!str 12", "12", "12"),
        ("!!float 1", 1.0, 1.0),
        ('!!int "7"', 7, 7),
    ],
)
def test_scalars_by_version(written: str, in_1_1: Any, in_1_2: Any) -> None:
    for version, expected in (("1.1", in_1_1), ("1.2", in_1_2)):
        found = value_of(f"a: {written}", version)["a"]  # type: ignore[arg-type]
        assert (found, type(found)) == (expected, type(expected))


def test_merge_keys_are_overridden_by_the_mapping_they_are_in() -> None:
    text = (
        "base: &b {x: 1, y: 1}\nmore: &m {y: 2, z: 2}\nboth: {<<: [*m, *b], z: 3}\none:\n  <<: *b\n  y: 5\n"
    )
    assert value_of(text) == yaml.safe_load(text)
    assert list(value_of(text)["one"]) == ["x", "y"]


def test_a_quoted_merge_key_is_a_key() -> None:
    assert value_of('{"<<": 1}') == {"<<": 1}


def test_aliases_share_one_object() -> None:
    value = value_of("a: &x [1]\nb: *x")
    assert value["a"] is value["b"]


def test_a_duplicate_key_is_refused_at_the_second_naming_the_first() -> None:
    (problem,) = problem_list("a: 1\nb: 2\n'a': 3\n")
    assert str(problem) == "f.yaml:3:1: key 'a' is given twice (first in line 1)"


def test_all_bad_keys_of_a_file_are_reported_at_once() -> None:
    assert problems_of("a: 1\na: 2\n3: x\nb: {c: 1, c: 2}\non: 1\n") == [
        ("duplicate-key", 2, 1),
        ("key-not-text", 3, 1),
        ("duplicate-key", 4, 11),
        ("key-not-text", 5, 1),
    ]


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize(
    ("text", "in_1_2"),
    [
        ("a: 1  # one{0}b: 2\nc: 3", {"a": 1, "c": 3}),
        ("# one{0}a: 1\nc: 3\n", {"c": 3}),
        ("a: one{0}two\n'b{0}': \"{0}\"\nc: |\n  x{0}y\n", {"a": "one{0}two", "b{0}": "{0}", "c": "x{0}y\n"}),
        ("a: \ue000{0}\ue001", {"a": "\ue000{0}\ue001"}),
    ],
)
def test_line_breaks_of_version_1_1_are_characters_of_version_1_2(
    text: str, in_1_2: dict[str, Any], character: str
) -> None:
    """spec (YAML 1.2): 5.4, Line Break Characters."""
    expected = {
        key.format(character): value.format(character) if isinstance(value, str) else value
        for key, value in in_1_2.items()
    }
    assert value_of(text.format(character), "1.2") == expected


def test_locations_after_a_line_break_of_version_1_1_are_those_of_editors() -> None:
    document = parse("a: 1  # one\u2028two\nb: x", file="f.yaml", yaml="1.2")
    assert str(document.span(("b",))) == "f.yaml:2:4"
    assert problems_of("a: '\u2028'\nb: [1", "1.2") == [("syntax", 2, 4)]


def test_on_is_a_valid_key_in_version_1_2() -> None:
    assert value_of("on: 1", "1.2") == {"on": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1, 2", ("syntax", 1, 4)),
        ("a: b: c", ("syntax", 1, 5)),
        ("a:\n\t- b", ("syntax", 2, 1)),
        ("a: @x", ("syntax", 1, 4)),
        ("a: 1\n  b: 2", ("syntax", 2, 3)),
        ("a: \x07", ("syntax", 1, 4)),
        ("", ("empty-file", 1, 1)),
        ("# only a comment\n", ("empty-file", 1, 1)),
        ("---\n...\n", ("empty-file", 1, 1)),
        ("a: 1\n---\nb: 1\n", ("several-documents", 2, 1)),
        ("a: !!python/object:os.system {}", ("unknown-tag", 1, 4)),
        ("a: !mine x", ("unknown-tag", 1, 4)),
        ("a: !!binary aGk=", ("unknown-tag", 1, 4)),
        ("a: !!int x", ("bad-value", 1, 4)),
        ("a: &x [*x]", ("recursive-alias", 1, 8)),
        ("a: &xy 1\nb: *xz", ("unknown-anchor", 2, 4)),
        ("? [a]\n: b", ("key-not-text", 1, 3)),
        ("a: {<<: 3}", ("bad-value", 1, 9)),
        ("{<<: {a: 1}, <<: {b: 2}}", ("duplicate-key", 1, 14)),
        ("a: 2024-13-45", ("bad-value", 1, 4)),
        (f"a: {'9' * 5000}", ("bad-value", 1, 4)),
        ("a: '\ud83d'", ("bad-surrogate", 1, 5)),
    ],
)
def test_invalid_yaml_is_refused_at_its_location(text: str, expected: tuple[str, int, int]) -> None:
    assert problems_of(text) == [expected]


def test_syntax_errors_say_what_to_do() -> None:
    (tab,) = problem_list("a:\n\t- b")
    assert tab.hint == "indent with spaces: YAML does not allow tabs"
    (colon,) = problem_list("a: b: c")
    assert colon.hint == "quote a text that contains ': '"
    (bracket,) = problem_list("x: 1\na: [1,\n")
    assert str(bracket).startswith("f.yaml:2:4: not valid YAML: this '[' is never closed")


@pytest.mark.parametrize("deep", ["[" * 100_000, "{a: " * 100_000, "- " * 5_000 + "a"])
def test_deep_nesting_is_refused_quickly(deep: str) -> None:
    assert problem_list(deep)[0].code == "too-deep"


def test_a_hundred_levels_are_allowed() -> None:
    assert value_of("[" * 100 + "]" * 100)


def test_depth_is_counted_through_aliases() -> None:
    lines = ["a0: &a0 " + "[" * 60 + "]" * 60, "a1: &a1 " + "[" * 60 + "*a0" + "]" * 60]
    assert problems_of("\n".join(lines)) == [("too-deep", 2, 69)]


def test_an_alias_bomb_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert problem_list("\n".join(lines))[0].code == "too-many-nodes"


def test_broken_yaml_raises_nothing_but_a_manifest_error() -> None:
    chance = random.Random(1)
    pieces = [
        "a",
        ": ",
        "- ",
        "\n",
        "  ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&a",
        "*a",
        "|",
        ">",
        "'",
        '"',
        "#",
        "!",
        "<<",
        "? ",
    ]
    for _ in range(3000):
        text = "".join(chance.choices(pieces, k=chance.randrange(1, 12)))
        with contextlib.suppress(ManifestError):
            parse(text, file="f.yaml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("port: ${PORT:6379}", {"port": "${PORT:6379}"}),
        ("{port: ${PORT:6379}, a: ${A}${LONGER}}", {"port": "${PORT:6379}", "a": "${A}${LONGER}"}),
        ("[${A}, x${B: {y}, '${C}', \"\\t${D}\"]", ["${A}", "x${B: {y}", "${C}", "\t${D}"]),
        ("${KEY}: |\n  a ${A}\n  b\n", {"${KEY}": "a ${A}\nb\n"}),
        ("a: 5 # ${A}", {"a": 5}),
    ],
)
def test_placeholders_of_a_templated_text_are_always_text(text: str, expected: object) -> None:
    assert parse(text, file="f", yaml="templated").value == expected


def test_locations_in_a_templated_text_are_those_of_the_file() -> None:
    document = parse("{port: ${PORT:6379}, a: ${A}}", file="f", yaml="templated")
    assert [str(document.span((key,))) for key in ("port", "a")] == ["f:1:8", "f:1:25"]
