"""Rendering of problems: exact texts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from harness.errors import Problem, Span
from harness.secrets import hidden
from harness.source import display
from harness.source.display import did_you_mean, nearest

excerpt = partial(display.excerpt, hide=hidden)


def render(problem: Problem, text: str | None = None) -> str:
    return display.render(problem, hidden, text)


def test_a_problem_shows_its_line_a_caret_and_the_hint() -> None:
    text = "a: 1\n  - repaly: hi\n"
    problem = Problem(
        "unknown-key", "unknown key 'repaly' in a stub", Span("t.yaml", 2, 5, 6), "did you mean 'reply'?"
    )
    assert render(problem, text) == (
        "t.yaml:2:5: unknown key 'repaly' in a stub\n"
        "      - repaly: hi\n"
        "        ^~~~~~\n"
        "    did you mean 'reply'?"
    )


def test_the_line_is_read_from_the_file_if_no_text_is_given(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("key: value\n")
    assert excerpt(Span(str(file), 1, 6, 5)) == "    key: value\n         ^~~~~"


def test_a_problem_without_a_location_or_a_readable_file_is_only_its_message() -> None:
    assert render(Problem("x", "no such file")) == "no such file"
    assert render(Problem("x", "broken", Span("/nowhere/x", 3, 1))) == "/nowhere/x:3:1: broken"
    assert excerpt(Span("f", 9, 1), text="one line") == ""


def test_a_blank_line_is_not_shown_and_no_line_ends_in_blanks() -> None:
    assert excerpt(Span("f", 1, 1), text="") == excerpt(Span("f", 1, 2), text=" \n") == ""
    assert excerpt(Span("f", 1, 1), text="a: 1  ") == "    a: 1\n    ^"


@pytest.mark.parametrize(
    ("line", "column", "length", "expected"),
    [
        ("a: b", 4, 0, "    a: b\n       ^"),
        ("a: b", 5, 1, "    a: b\n        ^"),
        ("a: bcd", 4, 99, "    a: bcd\n       ^~~"),
        ("\ta: b", 5, 1, "    \ta: b\n    \t   ^"),
        ("世界: b", 5, 1, "    世界: b\n          ^"),
        ("a: 世", 4, 1, "    a: 世\n       ^~"),
        ("e\u0301: b", 5, 1, "    e\u0301: b\n       ^"),
        ("a: \x1b[31m", 4, 1, "    a: ·[31m\n       ^"),
    ],
)
def test_the_caret_is_under_the_span(line: str, column: int, length: int, expected: str) -> None:
    assert excerpt(Span("f", 1, column, length), text=line) == expected


def test_long_lines_are_cut_around_the_span() -> None:
    shown, caret = excerpt(Span("f", 1, 151, 3), text="x" * 150 + "abc" + "y" * 150).split("\n")
    assert len(shown) < 110
    assert shown[caret.index("^") : caret.index("^") + 3] == "abc"
    assert shown.strip().startswith("…")
    assert shown.endswith("…")


def test_the_nearest_word_is_found_ignoring_case() -> None:
    assert nearest("Repaly", ["reply", "times", "latency"]) == "reply"
    assert nearest("zzz", ["reply", "times"]) is None
    assert nearest("REPLY", ["reply"]) == "reply"


def test_a_word_that_only_shares_letters_is_not_suggested() -> None:
    assert nearest("path", ["repeat"]) is None
    assert nearest("assert", ["cassette"]) is None
    assert [nearest("prompt", ["user_prompt"]), nearest("nswer", ["answer"])] == ["user_prompt", "answer"]


def test_a_hint_names_the_nearest_word_or_else_the_known_ones() -> None:
    assert did_you_mean("repaly", ["reply", "json"]) == "did you mean 'reply'?"
    assert did_you_mean("zzz", ["reply", "json"]) == "known: reply, json"
    assert did_you_mean("zzz", []) == ""
    assert did_you_mean("zzz", [str(number) for number in range(30)]).endswith("18, 19, …")


def test_an_excerpt_shows_the_present_text_of_a_changed_file(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("first")
    assert excerpt(Span(str(file), 1, 1, 5)) == "    first\n    ^~~~~"
    file.write_text("second")
    assert excerpt(Span(str(file), 1, 1, 6)) == "    second\n    ^~~~~~"
    file.unlink()
    assert excerpt(Span(str(file), 1, 1, 6)) == ""


LONG = "x" * 150


@pytest.mark.parametrize(
    ("text", "line", "column", "length", "shown"),
    [
        ("password: hunter22xy", 1, 1, 8, "    password: <secret:password>\n    ^~~~~~~~"),
        ("password: hunter22xy", 1, 11, 10, "    password: <secret:password>\n              ^~~~~~~~~~~~~~~~~"),
        (f'{{token: "{LONG} hunter22xy", n: 1}}', 1, 174, 1, f'    {{token: "<secret:token>", n: 1}}\n{" " * 30}^'),
        ("secret: |\n  hunter22xy and\nother: 1", 2, 3, 4, "      <secret:secret> and\n      ^~~~~~~~~~~~~~~"),
        ("a: -----BEGIN PRIVATE KEY-----\n  MIIEvQIBADAN\n  -----END PRIVATE KEY-----\n", 2, 3, 1, ""),
    ],
)  # fmt: skip
def test_a_secret_is_hidden_before_the_line_is_cut(
    text: str, line: int, column: int, length: int, shown: str
) -> None:
    assert excerpt(Span("f", line, column, length), text=text) == shown
