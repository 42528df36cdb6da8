"""Placeholders of secrets in a recording match the texts in their places."""

from typing import Any

import pytest

from harness.secrets.encodings import match_placeholders


@pytest.mark.parametrize(
    ("recorded", "asked", "secrets"),
    [
        ("My password is <secret:password>.", "My password is hunter2.", {"password": "hunter2"}),
        ({"a": ["<secret:A>", 1]}, {"a": ["x", 1]}, {"A": "x"}),
        ("<secret:A> and <secret:A>", "x and x", {"A": "x"}),
        ("<secret:A>/<secret:B>", "x/y", {"A": "x", "B": "y"}),
    ],
)
def test_a_placeholder_matches_the_text_in_its_place(recorded: Any, asked: Any, secrets: Any) -> None:
    assert match_placeholders(recorded, asked) == secrets


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        ("My password is <secret:password>.", "Your password is hunter2."),
        ("My password is <secret:password>.", "My password is two words."),
        ("<secret:A> and <secret:A>", "x and y"),
        ({"a": "<secret:A>"}, {"a": "x", "b": 1}),
        (["<secret:A>"], ["x", "y"]),
        ({"a": "<secret:A>", "b": 1}, {"a": "x", "b": 2}),
    ],
)
def test_all_else_must_be_equal(recorded: Any, asked: Any) -> None:
    assert match_placeholders(recorded, asked) is None


def test_without_a_placeholder_there_is_no_match() -> None:
    assert match_placeholders({"a": "x"}, {"a": "x"}) is None
