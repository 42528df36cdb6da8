"""A conversation that was left out of report.html can be opened from a trace file that the reader chooses."""

from pathlib import Path
from typing import Any

import pytest

from harness.report.html import page as module
from tests.report.html.conftest import outcome, run_events, write, wrong_path

HERE = "#scenario=triage.scenario.yaml%3A%3Aa%20double%20charge"


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a page without conversations."""
    monkeypatch.setattr(module, "MAX_TRACES", 1)
    outcomes = [
        outcome(
            "a double charge",
            "failed",
            checks=[wrong_path()],
            events=run_events(),
            digest="d1",
            traced=True,
        ),
        outcome("another", events=run_events("Nobody knows."), digest="d2", traced=True),
    ]
    return write(tmp_path, outcomes)


def test_page_counts_omitted_conversations_and_explains_how_to_open_them(page: Any, report: Path) -> None:
    page.goto(report.as_uri())
    assert "the conversations of 2 runs" in page.locator("header").inner_text()
    page.goto(report.as_uri() + HERE)
    chooser = page.locator(".chooser")
    chooser.wait_for()
    assert "traces/1.jsonl.gz" in chooser.inner_text()
    assert "harness trace 'triage.scenario.yaml::a double charge'" in chooser.inner_text()
    assert chooser.get_by_role("button", name="Copy").count() == 1


def test_chosen_trace_file_is_unpacked_and_shown(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + HERE)
    page.set_input_files("#trace-files", report.parent / "traces/1.jsonl.gz")
    page.locator(".event.current").wait_for()
    assert "answer starts" in page.locator(".event.current").inner_text()  # where it left its path
    assert page.locator(".waterfall").is_visible()


def test_a_chosen_folder_opens_the_conversations_of_all_runs(page: Any, report: Path) -> None:
    page.goto(report.as_uri() + HERE)
    page.set_input_files("#trace-folder", report.parent / "traces")
    page.locator(".story").wait_for()
    page.evaluate("location.hash = '#scenario=triage.scenario.yaml::another'")
    page.locator(".story", has_text="Nobody knows.").wait_for()


def test_invalid_trace_file_is_rejected_with_the_reason(page: Any, report: Path) -> None:
    trace = report.parent / "traces/1.jsonl.gz"
    [other] = [each for each in trace.parent.iterdir() if each != trace]
    page.goto(report.as_uri() + HERE)
    page.set_input_files("#trace-files", other)
    page.get_by_text("1.jsonl.gz is not among the 1 file that you chose.").wait_for()
    trace.write_bytes(other.read_bytes())
    page.set_input_files("#trace-files", trace)
    page.get_by_text(
        "1.jsonl.gz is the trace of another run (triage.scenario.yaml::another, digest d2)"
    ).wait_for()
    trace.write_bytes(b"</script><script>document.title = 'owned'</script>")
    page.set_input_files("#trace-files", trace)
    page.get_by_text("1.jsonl.gz is not a trace").wait_for()
    trace.write_bytes(b"\x1f\x8b cut off")
    page.set_input_files("#trace-files", trace)
    page.get_by_text("The trace cannot be read").wait_for()
