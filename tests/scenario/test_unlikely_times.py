"""Times are in seconds; one that looks like milliseconds is a warning of its file."""

from pathlib import Path

import pytest

from tests.scenario.reading import read, warning

EXPECTING = " expect: {path: []},"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("timeout: 30000", "5:10 'timeout' is in seconds, and 30000 looks like milliseconds"),
        (
            "llm: [{reply: a, latency: 5500}]",
            "5:27 'latency' is in seconds, and 5500 looks like milliseconds",
        ),
        ("tools: {t: {return: 1, latency: 10000}}", "5:33 'latency' is in seconds"),
        ("turns: [{llm: [{reply: a, latency: 60000}]}]", "5:36 'latency' is in seconds"),
        ("faults: [{effect: llm, nth: 1, latency: 12000}]", "5:41 'latency' is in seconds"),
    ],
)
def test_a_time_in_milliseconds_is_a_warning(tmp_path: Path, keys: str, expected: str) -> None:
    code, text = warning(read(tmp_path, keys, EXPECTING))
    assert code == "unlikely-time"
    assert text.startswith(expected)


@pytest.mark.parametrize("seconds", [600, 1000, 4000, 5001, 7200, 9000, 36000, 86400])
def test_hours_and_days_are_none(tmp_path: Path, seconds: int) -> None:
    assert read(tmp_path, f"timeout: {seconds}", EXPECTING).warnings == ()
