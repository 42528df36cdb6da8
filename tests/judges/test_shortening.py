"""Shortening of a judge's material: it stays JSON within the limit, and each cut is reported."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.judges.request import MAX_LENGTH, Cut, read_grade, shorten

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


def test_short_material_is_unchanged() -> None:
    cuts: list[Cut] = []
    value = {"a": ["b"] * 100}
    assert shorten("output", value, cuts) is value
    assert cuts == []


@given(values, st.sampled_from([1, 3_000, 20_000]))
@settings(max_examples=20, deadline=None)
def test_any_material_is_shortened_below_the_limit_and_stays_json(value: Any, times: int) -> None:
    cuts: list[Cut] = []
    many = {"many": [value] * times, "x" * times: str(value) * times}
    kept = json.dumps(shorten("context", many, cuts), ensure_ascii=False)
    assert len(kept) <= MAX_LENGTH + 100
    assert bool(cuts) == (len(json.dumps(many, ensure_ascii=False)) > MAX_LENGTH)


def test_a_long_text_loses_its_middle_and_reports_how_much() -> None:
    cuts: list[Cut] = []
    kept = shorten("output", "a" * 50_000 + "b" * 50_000, cuts)
    assert kept == "a" * 25_000 + "… 50000 characters left out …" + "b" * 25_000
    assert str(cuts[0]) == "50,031 of 100,002 characters of 'output'"


@given(st.text() | st.text().map(lambda text: f'{{"grade": {text}, "reason": "r"}}'), st.booleans())
def test_any_answer_yields_a_grade_and_a_reason(answer: str, strict: bool) -> None:
    grade, reason = read_grade(answer, strict=strict)
    assert 0 <= grade <= 1
    assert isinstance(reason, str)
