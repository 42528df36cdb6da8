"""The history of a project: records of runs, and trends over them."""

from __future__ import annotations

import itertools
import json
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import FormatError
from harness.report.history.file import HistoryWriter, read_history
from harness.report.history.record import Entry, Revision, RunRecord, Verdicts, revision_of
from harness.report.history.text import history_lines
from harness.report.history.trends import Trends
from harness.report.results import line
from harness.report.summary import summarise
from harness.scenario.outcome import Observation, Outcome

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def result(scenario: str, verdict: str = "passed", *, repeat: int = 0) -> dict[str, Any]:
    score = float(verdict == "passed")
    outcome = Outcome("a.yaml", scenario, "m.yaml", "sherma", "m", Observation(), verdict, score)  # type: ignore[arg-type]
    outcome.repeat = repeat
    return line(outcome)


def record(*verdicts: str, day: int = 1, incomplete: str = "", commit: str | None = COMMIT) -> RunRecord:
    """Return a run with one scenario for each verdict: `a.yaml::0`, `a.yaml::1`, …; "" leaves one out."""
    lines = [result(str(number), verdict) for number, verdict in enumerate(verdicts) if verdict]
    collected = Verdicts()
    for each in lines:
        collected.add(each)
    summary = {**summarise(lines), "complete": not incomplete, "reason": incomplete or None}
    return RunRecord.of(summary, collected, f"2026-11-{day:02}T08:00:00Z", Revision(commit, "main"))


def trends_of(records: Sequence[RunRecord], last: int | None = None) -> Trends:
    trends = Trends(last)
    trends.extend(records)
    return trends


def append(file: Path, *verdicts: str) -> None:
    writer = HistoryWriter(file, file.parent, lambda: {"a.yaml::0": "0123456789abcdef"})
    writer.check()
    lines = [result(str(number), verdict) for number, verdict in enumerate(verdicts)]
    for each in lines:
        writer.add(each)
    writer.append({**summarise(lines), "complete": True, "reason": None})


# ---------------------------------------------------------------- a line


def test_a_record_is_read_as_it_was_written() -> None:
    made = record("passed", "failed", incomplete="interrupted")._replace(inputs={"a.yaml::1": "0123456789"})
    assert RunRecord.read(json.loads(json.dumps(made.as_json()))) == made


def test_repeats_count_as_one_scenario_with_the_worst_verdict() -> None:
    verdicts = Verdicts()
    for repeat, verdict in enumerate(("passed", "failed", "passed", "skipped")):
        verdicts.add(result("x", verdict, repeat=repeat))
    assert verdicts.entries() == {"a.yaml::x": Entry("failed", 2 / 3, passed=2, runs=3)}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "harness-results/1"}, "not a line of the format harness-history/1"),
        ({"format": "harness-history/2"}, "found 'harness-history/2'"),
        ({"total": None}, "'total' is not a mapping: None"),
        ({"complete": "yes"}, "'complete' is neither true nor false: 'yes'"),
        ({"scenarios": {"a": "passed"}}, "scenario 'a': not [verdict, score]"),
        ({"scenarios": {"a": ["fine", 1]}}, "scenario 'a': not [verdict, score]"),
        ({"scenarios": {"a": ["passed", float("nan")]}}, "scenario 'a'"),
        ({"time": 5}, "'time' is not text: 5"),
        ({"inputs": ["a", "b"]}, "'inputs' is not a list with a text for each scenario"),
        ({"inputs": [5]}, "'inputs' is not a list with a text for each scenario"),
    ],
)
def test_invalid_record_is_rejected_with_its_location(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    file = tmp_path / "history.jsonl"
    lines = [record("passed").as_json(), record("passed").as_json() | change]
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    with pytest.raises(FormatError) as caught:
        [*read_history(file)]
    problem = caught.value.problems[0]
    assert said in problem.message
    assert problem.code == "history-line"
    assert problem.span is not None
    assert problem.span.line == 2


# ---------------------------------------------------------------- the file


def test_runs_are_appended_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "new" / "history.jsonl"
    append(file, "passed")
    append(file, "failed", "passed")
    assert [[entry.verdict for entry in run.scenarios.values()] for run in read_history(file)] == [
        ["passed"],
        ["failed", "passed"],
    ]


def test_run_killed_while_writing_leaves_the_other_records_intact(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    append(file, "passed")
    append(file, "failed")
    whole = file.read_bytes()
    first = whole.index(b"\n") + 1
    for end in {first, first + 1, first + 15, first + 100, len(whole) - 3, len(whole) - 1}:
        file.write_bytes(whole[:end])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            before = len([*read_history(file)])
        was_cut = first < end < len(whole) - 1
        assert before == (2 if end == len(whole) - 1 else 1)
        assert [str(each.message) for each in caught] == [
            f"{file}:2: the last line was cut off and is left out"
        ] * was_cut
        append(file, "passed")
        assert len([*read_history(file)]) == before + 1


def test_file_that_is_no_history_is_left_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    for content in (b"my notes\n", b"my notes", b"\x7fELF\x00\x01", b'{"format":"harness-results/1"}\n'):
        file.write_bytes(content)
        with pytest.raises(FormatError, match=r"notes\.txt:1:1: not a line of"):
            append(file, "passed")
        assert file.read_bytes() == content


def test_path_that_is_no_file_is_rejected_before_the_run(tmp_path: Path) -> None:
    for file, why in ((tmp_path, "it is a folder"), (Path("/dev/null"), "it is not a file")):
        with pytest.raises(FormatError, match=why):
            HistoryWriter(file, tmp_path).check()


def test_concurrent_runs_append_one_line_each(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    threads = [threading.Thread(target=append, args=(file, *["passed"] * 50)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(run.scenarios) for run in read_history(file)] == [50] * 20


def test_empty_run_is_not_recorded(tmp_path: Path) -> None:
    append(tmp_path / "history.jsonl")
    assert [*read_history(tmp_path / "history.jsonl")] == []


# ---------------------------------------------------------------- the revision


def test_the_revision_is_read_from_the_files_of_git(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    (git / "refs/heads/feature").mkdir(parents=True)
    below = tmp_path / "scenarios"
    below.mkdir()
    assert revision_of(below) == Revision()
    (git / "HEAD").write_text("ref: refs/heads/feature/x\n")
    assert revision_of(below) == Revision(None, "feature/x")
    (git / "packed-refs").write_text(
        f"# pack-refs with: peeled\n{'f' * 40} refs/heads/feature/x\n^{'0' * 40}\n"
    )
    assert revision_of(below) == Revision("f" * 40, "feature/x")
    (git / "refs/heads/feature/x").write_text(f"{COMMIT}\n")
    assert revision_of(below) == Revision(COMMIT, "feature/x")
    (git / "HEAD").write_text(f"{COMMIT}\n")
    assert revision_of(below) == Revision(COMMIT, None)
    (git / "HEAD").write_bytes(b"\xff\x00")
    assert revision_of(below) == Revision()


def test_work_tree_has_its_own_revision(tmp_path: Path) -> None:
    own = tmp_path / "main/.git/worktrees/other"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/topic\n")
    (own / "commondir").write_text("../..\n")
    (tmp_path / "main/.git/refs/heads").mkdir(parents=True)
    (tmp_path / "main/.git/refs/heads/topic").write_text(f"{COMMIT}\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/.git").write_text(f"gitdir: {own}\n")
    assert revision_of(tmp_path / "other") == Revision(COMMIT, "topic")


# ---------------------------------------------------------------- which scenario changed when


@pytest.mark.parametrize(
    ("verdicts", "state", "said"),
    [
        ("pp", "", ""),
        (
            "ppff",
            "failing",
            "last passed at 2026-11-02 08:00 (0123456), first failed at 2026-11-03 08:00 (0123456)",
        ),
        ("ff", "failing", "never passed, first failed at 2026-11-01 08:00 (0123456)"),
        (
            "pfp",
            "fixed",
            "last failed at 2026-11-02 08:00 (0123456), passes since 2026-11-03 08:00 (0123456), changed 2",
        ),
        ("pfpfp", "flaky", "passes since 2026-11-05 08:00 (0123456), changed 4 times in 5 runs"),
        (
            "pfpf",
            "failing",
            "first failed at 2026-11-04 08:00 (0123456), changed 3 times in 4 runs, flaky before, with the same",
        ),
        (
            "pfpfp" + "f" * 20,
            "failing",
            "first failed at 2026-11-06 08:00 (0123456), changed 5 times in 25 runs",
        ),
        ("pfpfp" + "p" * 20, "fixed", "passes since 2026-11-05 08:00 (0123456), changed 4 times in 25 runs"),
        ("pspsf", "failing", "last passed at 2026-11-03 08:00 (0123456), first failed at 2026-11-05 08:00"),
        ("pe", "failing", "first failed at 2026-11-02"),
    ],
)
def test_scenario_shows_when_it_changed(verdicts: str, state: str, said: str) -> None:
    words = {"p": "passed", "f": "failed", "e": "error", "s": "skipped"}
    runs = [record(words[letter], day=day) for day, letter in enumerate(verdicts, start=1)]
    trends = trends_of(runs)
    assert [trends.state(trend) for trend in trends.notable()] == ([state] if state else [])
    assert said in "\n".join(history_lines(trends, None))


def test_scenario_that_changes_with_the_agent_is_not_flaky() -> None:
    """Inputs are compared where both runs know them, and commits otherwise."""

    def states(inputs: list[str], commits: str) -> list[str]:
        runs = [
            record("passed" if n % 2 else "failed", day=n + 1, commit=commit)._replace(
                inputs={"a.yaml::0": digest} if digest else {}
            )
            for n, (digest, commit) in enumerate(zip(inputs, commits, strict=True))
        ]
        trends = trends_of(runs)
        return [trends.state(trend) for trend in trends.notable()]

    assert states(["a", "b", "c", "d"], "aaaa") == ["changed with the agent"]
    assert states(["", "", "", ""], "abcd") == ["changed with the agent"]
    assert states(["a", "a", "a", "a"], "abcd") == ["flaky"]
    assert states(["", "", "", ""], "aaaa") == ["flaky"]


def test_scenario_is_gone_only_if_a_complete_run_lacks_it() -> None:
    runs = [record("passed", "passed"), record("passed", "", day=2, incomplete="-k 0")]
    assert trends_of(runs).notable() == []
    found = trends_of([*runs, record("passed", "", day=3)])
    assert [(trend.label, found.state(trend)) for trend in found.notable()] == [("a.yaml::1", "gone")]


def test_repeats_with_different_verdicts_are_flaky() -> None:
    verdicts = Verdicts()
    lines = [result("x", verdict, repeat=repeat) for repeat, verdict in enumerate(("passed", "failed"))]
    for each in lines:
        verdicts.add(each)
    run = RunRecord.of({**summarise(lines), "complete": True, "reason": None}, verdicts, None, Revision())
    trends = trends_of([run])
    assert trends.state(trends.notable()[0]) == "flaky"
    assert "its repeats disagreed in 1 run" in "\n".join(history_lines(trends, None))


def test_hidden_runs_count_for_the_scenarios() -> None:
    runs = [record("passed"), *(record("failed", day=day) for day in range(2, 30))]
    trends = trends_of(runs, last=3)
    text = "\n".join(history_lines(trends, None))
    assert text.startswith("… 26 earlier runs (--last 29 shows all)\n")
    assert "last passed at 2026-11-01 08:00" in text


@given(
    st.lists(st.lists(st.sampled_from(["passed", "failed", "error", "skipped", ""]), max_size=3), min_size=1)
)
def test_trend_agrees_with_the_runs(runs: list[list[str]]) -> None:
    trends = trends_of([record(*verdicts, day=1) for verdicts in runs])
    for label, trend in trends.scenarios.items():
        number = int(label.removeprefix("a.yaml::"))
        judged = [
            (at, run[number])
            for at, run in enumerate(runs, start=1)
            if len(run) > number and run[number] not in ("", "skipped")
        ]
        passes = [verdict == "passed" for _, verdict in judged]
        assert trend.changes == sum(one != other for one, other in itertools.pairwise(passes))
        assert (trend.first_failed is not None) == (bool(passes) and not passes[-1])
        if trend.first_failed is not None:
            failing = len([*itertools.takewhile(lambda passed: not passed, reversed(passes))])
            assert trend.first_failed.number == judged[-failing][0]


# ---------------------------------------------------------------- how it is shown


def test_incomplete_run_is_marked_and_not_compared() -> None:
    runs = [record("passed"), record("failed", day=2, incomplete="1 of 2 selected"), record("passed", day=3)]
    table = [each.split() for each in history_lines(trends_of(runs), None)]
    assert [row[-1] for row in table[2:4]] == ["part", "0"]
    assert "part: 2026-11-02 08:00: 1 of 2 selected" in [*history_lines(trends_of(runs), None)]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120])
def test_lines_fit_the_terminal(width: int) -> None:
    runs = [record("passed", "failed", day=day, incomplete="x" * 10 + " y" * 100) for day in range(1, 20)]
    for each in history_lines(trends_of(runs), width):
        assert len(each) <= max(width, 30)


def test_control_characters_of_a_history_are_escaped() -> None:
    evil = record("passed")._replace(branch="\x1b[31m", time="\x1b]0;x", reason="\x1b[2J", complete=False)
    evil = evil._replace(scenarios={"\x1b[31m::x": Entry("failed", 0.0, 0, 1)})
    assert "\x1b" not in "\n".join(history_lines(trends_of([evil]), None))


def test_without_unicode_curves_are_ascii() -> None:
    runs = [record("passed", "passed"), record("passed", "failed", day=2)]
    text = "\n".join(history_lines(trends_of(runs), None, ascii_only=True))
    assert "pass rate  #_  100 % -> 50.0 %" in text
    assert "    .F  last passed" in text
