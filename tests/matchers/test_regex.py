"""Patterns mean what they mean for Python's `re`, and most are searched in linear time."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.matchers.json_schema import schema_errors
from harness.matchers.regex import last_part_matches, searcher
from harness.matchers.value import matches

CATASTROPHIC = ["(a+)+$", "^(a|a)*$", "(a|aa)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", r"(\w+\s?)+:$"]


@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_a_pattern_that_would_never_end_ends(pattern: str) -> None:
    assert not matches({"$regex": pattern}, "a" * 5000 + "!")
    assert schema_errors({"pattern": pattern}, "a" * 50 + "!") == [
        f"'{'a' * 50}!' does not match {pattern!r}"
    ]


PIECES = [
    r"a",
    r"b",
    r".",
    r"\d",
    r"\w",
    r"\s",
    r"\b",
    r"^",
    r"$",
    r"\B",
    r"[ab]",
    r"[^a]",
    r"(?:ab)",
    r"(a|b)",
    r"(?i:a)",
    r"(?im:a$)",
    r"(?=a)",
    r"(a)\1",
]
PIECES += [r"{2}", r"{,2}", r"{1,}", r"*", r"+", r"?", r"|", r"\Z", r"\$", r"\\", r"é", r"\x41", r"\n"]


@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join),
    st.text("abAB1 _\n$\\é\x0b\x1c:[]", max_size=8),
)
def test_a_pattern_finds_what_re_finds(pattern: str, text: str) -> None:
    try:
        expected = re.search(pattern, text) is not None
    except re.error:
        return
    assert searcher(pattern)(text) is expected


def test_what_is_no_pattern_of_re_is_refused() -> None:
    with pytest.raises(re.error):
        searcher("a**")
    with pytest.raises(re.error):
        searcher(r"\p{L}")


def test_patterns_of_property_names_are_searched_in_linear_time_too() -> None:
    schema = {
        "patternProperties": {r"^(a+)+!$": {"type": "string"}},
        "additionalProperties": {"type": "integer"},
    }
    name = "a" * 50
    assert schema_errors(schema, {name: 1, f"{name}!": "x"}) == []
    assert schema_errors(schema, {name: "x"}) == [f"{name}: 'x' is not of type 'integer'"]
    assert schema_errors({**schema, "additionalProperties": False}, {name: 1, "aa!": 1}) == [
        f"Additional properties are not allowed ('{name}' was unexpected)",
        "['aa!']: 1 is not of type 'string'",
    ]


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("model", "tools/searcher/model", True),
        ("tools/model", "tools/searcher/model", True),
        ("tools/searcher/model", "tools/searcher/model", True),
        ("tools/*", "tools/searcher/model", True),
        ("searcher/model", "tools/searcher/model", False),
        ("tools/searcher", "tools/searcher/model", False),
        ("tools/model", "model", False),
        ("tools/model", "tools/model", True),
        ("deepseek*", "deepseek-ai/DeepSeek-V3", True),
        ("Deep*", "deepseek-ai/DeepSeek-V3", True),
        ("seek*", "deepseek-ai/DeepSeek-V3", False),
    ],
)
def test_a_pattern_may_leave_out_parts_of_a_name_before_the_last(pattern: str, name: str, fits: bool) -> None:
    assert last_part_matches(pattern, name) is fits
