"""Progress of a run, on a terminal and in other outputs."""

import io
from typing import Any

import pytest
from rich.console import Console

from harness.report.console import open_console
from harness.report.progress import Pace, Progress


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def _facts(pace: Pace) -> list[str]:
    return [*pace.facts.values()]


def test_count_rate_and_time_left() -> None:
    clock = Clock()
    pace = Pace(1000, clock)
    for number in range(100):
        clock.now = 60 + number / 8
        pace.add("failed" if number % 20 == 19 else "passed")
    assert _facts(pace) == ["100 of 1,000", "95 passed", "5 failed", "8.0/s", "1 min 53 s left"]


def test_a_slow_run_is_measured_by_the_minute() -> None:
    clock = Clock()
    pace = Pace(20, clock)
    for number in range(3):
        clock.now = number * 15.0
        pace.add("passed")
    assert _facts(pace)[-2:] == ["4.0/min", "4 min 15 s left"]


def test_rate_covers_the_last_half_minute() -> None:
    clock = Clock()
    pace = Pace(10_000, clock)
    for number in range(1000):
        clock.now += 0.01 if number < 800 else 1.0
        pace.add("passed")
    assert "1.0/s" in _facts(pace)


def test_first_run_with_its_imports_does_not_count_for_the_rate() -> None:
    clock = Clock()
    pace = Pace(10, clock)
    clock.now = 5.0
    pace.add("passed")
    clock.now = 9.0
    assert _facts(pace) == ["1 of 10", "1 passed"]


def _shown(console: Console) -> str:
    now = Clock()
    progress = Progress(console, 200, now)
    for number in range(150):
        now.now = float(number)
        progress.add("passed")
    progress.stop()
    stream: Any = console.file
    return str(stream.getvalue())


@pytest.mark.parametrize("width", [10, 40, 60, 80, 200])
def test_the_bar_fits_in_one_line(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    console = Console(file=Terminal(), color_system=None, legacy_windows=False)
    frames = [
        frame.rpartition("\x1b[2K")[2].removeprefix("\x1b[?25l") for frame in _shown(console).split("\r")
    ]
    drawn = [frame for frame in frames if " of 200" in frame]
    assert drawn
    assert max(map(len, drawn)) < width
    assert any("left" in frame for frame in drawn) is (width >= 40)
    assert any("━" in frame for frame in drawn) is (width >= 80)


@pytest.mark.parametrize(
    ("name", "value"), [("CI", "true"), ("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "unknown")]
)
def test_output_that_cannot_redraw_gets_occasional_lines(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    lines = _shown(open_console(Terminal())).splitlines()
    assert lines[0] == "progress  31 of 200 · 31 passed · 1.0/s · 2 min 49 s left"
    assert len(lines) == 4
    assert "\x1b" not in "".join(lines)


def test_bar_is_shown_with_ci_set_to_false(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "false")
    progress = Progress(open_console(Terminal()), 2)
    assert progress.redraws
    progress.stop()


def test_pipe_gets_lines_even_with_forced_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert _shown(open_console(io.StringIO())).count("\n") == 4


def test_short_run_prints_no_progress_if_output_is_no_terminal() -> None:
    stream = io.StringIO()
    progress = Progress(open_console(stream), 3)
    for _ in range(3):
        progress.add("passed")
    assert stream.getvalue() == ""
