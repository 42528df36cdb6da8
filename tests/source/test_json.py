"""JSON: the values of `json.loads`, their locations, and everything that is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ManifestError
from harness.source.document import Document, parse


def read(text: str) -> Document:
    return parse(text, file="f.json", json=True)


def problem_of(text: str) -> tuple[str, int, int]:
    with pytest.raises(ManifestError) as caught:
        read(text)
    (problem,) = caught.value.problems
    assert problem.span
    return problem.code, problem.span.line, problem.span.column


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(DATA, st.sampled_from([None, 2]), st.booleans())
def test_values_are_those_of_json_loads(data: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    value = read(text).value
    assert value == json.loads(text)
    assert json.dumps(value) == json.dumps(json.loads(text))


def test_keys_and_values_have_locations() -> None:
    document = read('{\n  "a": [1, {"bé": "x"}]\n}')
    assert str(document.span(("a", 1, "bé"))) == "f.json:2:19"
    assert str(document.key_span(("a", 1, "bé"))) == "f.json:2:13"
    assert document.span(("a",)).length == 16


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("empty-file", 1, 1)),
        ('{"a": 1, "a": 2}', ("duplicate-key", 1, 10)),
        ('{"a": 1,}', ("syntax", 1, 9)),
        ("[1,]", ("syntax", 1, 4)),
        ("[1 2]", ("syntax", 1, 4)),
        ("[1", ("syntax", 1, 3)),
        ("{a: 1}", ("syntax", 1, 2)),
        ('{"a" 1}', ("syntax", 1, 6)),
        ('{"a": 01}', ("syntax", 1, 8)),
        ('"abc', ("syntax", 1, 1)),
        ('"a\nb"', ("syntax", 1, 3)),
        ('"\\x"', ("syntax", 1, 2)),
        ("[NaN]", ("syntax", 1, 2)),
        ("[-Infinity]", ("syntax", 1, 2)),
        ("nul", ("syntax", 1, 1)),
        ("1 2", ("syntax", 1, 3)),
        ("// x", ("syntax", 1, 1)),
        ('["\\ud800"]', ("bad-surrogate", 1, 2)),
        ("[" * 101 + "]" * 101, ("too-deep", 1, 101)),
        ("[" * 100_000, ("too-deep", 1, 101)),
    ],
)
def test_invalid_json_is_refused_at_its_location(text: str, expected: tuple[str, int, int]) -> None:
    assert problem_of(text) == expected


def test_every_duplicate_key_is_reported() -> None:
    with pytest.raises(ManifestError) as caught:
        read('{"a": 1, "a": {"b": 1, "b": 2}}')
    assert [problem.message for problem in caught.value.problems] == [
        "key 'b' is given twice (first in line 1)",
        "key 'a' is given twice (first in line 1)",
    ]


@given(st.text(alphabet='{}[]",:0123456789.eE+- \\untrfalse\n', max_size=20))
def test_text_is_refused_exactly_when_json_loads_refuses_it(text: str) -> None:
    try:
        expected = json.loads(text, object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError):
        with pytest.raises(ManifestError):
            read(text)
    else:
        assert read(text).value == expected


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("duplicate")
    return dict(pairs)
