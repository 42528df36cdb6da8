"""What is emphasised in the text of a failure, on a terminal."""

import pytest

from harness.report.failure import emphasised
from harness.report.formatting import wrapped

HEADING = "a double charge — score 0.50, failed"
GREEN, RED = "green", "bold red"


def styled(text: str, width: int | None = None) -> list[tuple[str, str]]:
    return [part for parts in emphasised(text, width) for part in parts if part[1]]


def test_the_heading_is_bold() -> None:
    assert styled(f"{HEADING}\n  a.scenario.yaml:3:11\n\n  path\n    ran: b") == [(HEADING, "bold")]


@pytest.mark.parametrize(
    ("line", "expected", "actual"),
    [
        ("    expected 'a', was 'b'", "'a'", "'b'"),
        ("    n: expected at most 1 s, was 2.5 s", "at most 1 s", "2.5 s"),
        ("    n: expected {$gt: 1}, was {a: 1} (is not > 1)", "{$gt: 1}", "{a: 1}"),
        ("    expected completed, was failed: KeyError: 'a'", "completed", "failed"),
        ("    expected 'it''s, was', was \"a\\n\\\" (b)\" (why)", "'it''s, was'", '"a\\n\\" (b)"'),
        ("    step 2: expected the end, was b", "the end", "b"),
    ],
)
def test_what_was_expected_and_what_was_found_differ_on_one_line(
    line: str, expected: str, actual: str
) -> None:
    assert styled(line) == [(expected, GREEN), (actual, RED)]


def test_what_was_expected_and_what_was_found_differ_on_lines_of_their_own() -> None:
    assert styled("    a:\n      expected: 'x'\n      actual:   'y'\n      because:  z") == [
        ("'x'", GREEN),
        ("'y'", RED),
    ]


@pytest.mark.parametrize("width", [30, 40, 100, None])
def test_emphasis_changes_no_text_and_continues_on_the_next_line(width: int | None) -> None:
    words = "one word after another " * 5
    text = f"{HEADING}\n    expected '{words}', was '{words}'\n  rerun  pytest a\n        {'x' * 50}\n          ^~~"
    lines = ["".join(part for part, _ in parts) for parts in emphasised(text, width)]
    assert "\n".join(lines) == wrapped(text, width)
    found = "".join(part for part, style in styled(text, width) if style == RED)
    assert found.split() == f"'{words}'".split()
