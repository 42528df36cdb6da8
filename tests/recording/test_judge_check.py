"""The measurement of a judge is recorded beside the file of labels: called once, replayed, kept if interrupted."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.calibration import asking
from harness.cli.main import cli
from tests.recording.project import KEY, Project

LABELS = "output,label\ngood one,pass\ngood two,pass\nbad three,fail\nbad four,fail\n"
JUDGE = """
llm:
  - {when: 'request.prompt.contains("good")', json: {reason: It is good., grade: 0.9}, times: any}
  - {when: 'request.prompt.contains("bad")', json: {reason: It is bad., grade: 0.1}, times: any}
"""
ARGUMENTS = ("judge-check", "labels.csv", "--rubric", "It is kind.", "--model", "gpt-4o")
HTTP = "labels.csv.cassette/http.yaml"

Check = Callable[..., Result]


@pytest.fixture
def check(project: Project) -> Check:
    project.write("labels.csv", LABELS)

    def run(*options: str, live: bool = False, yes: bool = True) -> Result:
        environment: dict[str, Any] = project.environment if live else {}
        given = [*ARGUMENTS, *options, *(["--yes"] if yes else [])]
        return CliRunner().invoke(cli, given, prog_name="harness", env=environment)

    return run


def test_answers_of_the_judge_are_recorded_and_replayed_without_a_key(project: Project, check: Check) -> None:
    with project.serving(JUDGE):
        recorded = check("--record-mode=new_episodes", live=True)
    told = "the judge gpt-4o will be called, for at most 4 rows\nrecorded in labels.csv.cassette\n"
    assert (recorded.exit_code, recorded.stderr) == (0, told)
    assert "agreement  1.000  (4 of 4" in recorded.stdout
    replayed = check()
    assert (replayed.exit_code, replayed.stdout) == (0, recorded.stdout)
    assert KEY not in project.read(HTTP)


def test_only_missing_answers_are_requested(project: Project, check: Check) -> None:
    with project.serving(JUDGE):
        check("--record-mode=new_episodes", live=True)
        project.write("labels.csv", LABELS + "good five,pass\n")
        assert check().exit_code == 3
        check("--record-mode=new_episodes", live=True)
    assert [project.read(HTTP).count(text) for text in ("good one", "good five")] == [1, 1]
    assert check().exit_code == 0


@pytest.mark.parametrize("mode", ["once", "new_episodes", "all", "rewrite"])
def test_without_a_terminal_and_yes_the_judge_is_not_called(
    project: Project, check: Check, mode: str
) -> None:
    with project.serving(JUDGE) as server:
        refused = check(f"--record-mode={mode}", live=True, yes=False)
        assert server.requests == []
    assert refused.exit_code == 2
    assert "--yes goes on without a question" in refused.stderr
    assert not (project.folder / "labels.csv.cassette").exists()


def test_rows_that_are_all_recorded_need_no_consent(project: Project, check: Check) -> None:
    with project.serving(JUDGE) as server:
        check("--record-mode=new_episodes", live=True)
        for mode in ("once", "new_episodes", "none"):
            assert check(f"--record-mode={mode}", live=True, yes=False).exit_code == 0
        assert len(server.requests) == 4
        project.write("labels.csv", LABELS + "good five,pass\n")
        assert check("--record-mode=new_episodes", live=True, yes=False).exit_code == 2
        assert len(server.requests) == 4


def test_an_answer_that_is_an_error_is_not_kept(project: Project, check: Check) -> None:
    broken = JUDGE.replace(
        "llm:\n", "llm:\n  - {when: 'request.prompt.contains(\"two\")', error: auth, times: any}\n"
    )
    with project.serving(broken):
        assert check("--record-mode=new_episodes", live=True).exit_code == 3
    assert "good two" not in project.read(HTTP)
    with project.serving(JUDGE):
        assert check("--record-mode=new_episodes", live=True).exit_code == 0


@pytest.mark.parametrize("mode", ["new_episodes", "rewrite"])
def test_recordings_completed_before_ctrl_c_are_kept(
    project: Project,
    check: Check,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    mode: str,
) -> None:
    answers: list[str] = []

    def interrupted_at_the_third(text: str, *, strict: bool) -> tuple[float, str]:
        answers.append(text)
        if len(answers) == 3:
            signal.raise_signal(signal.SIGINT)
        return 1.0, "fine"

    # A background job of a shell, which these tests may be, ignores it from the start.
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, ours))
    with project.serving(JUDGE), monkeypatch.context() as patch:
        patch.setattr(asking, "read_grade", interrupted_at_the_third)
        stopped = check(f"--record-mode={mode}", "--jobs=1", live=True)
    assert stopped.exit_code == 3
    assert "of 4 rows were judged; --record-mode=new_episodes goes on\ninterrupted\n" in stopped.stderr
    assert "good two" in project.read(HTTP)
    assert "bad four" not in project.read(HTTP)


def test_on_a_ci_machine_nothing_is_asked(
    project: Project, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    with project.serving(JUDGE):
        assert check("--record-mode=new_episodes", live=True).exit_code == 3
    assert not (project.folder / "labels.csv.cassette").exists()
