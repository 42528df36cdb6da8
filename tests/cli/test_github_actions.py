"""What GitHub Actions is told of a run."""

from pathlib import Path

import pytest

from tests.cli.fixtures import Invoke, WriteSuite

FAILS = "{name: 'counts, to: 2%', expect: {state: {count: 2}}}"


@pytest.fixture(autouse=True)
def in_actions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(Path.cwd().parent))


def _commands(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith("::")]


def test_a_failure_is_an_annotation_on_the_line_of_its_expectation(invoke: Invoke, suite: WriteSuite) -> None:
    suite(FAILS)
    (command,) = _commands(invoke("run", ".").output)
    folder = Path.cwd().name
    assert command.startswith(f"::error file={folder}/a.scenario.yaml,line=4,col=")
    assert ",title=counts%2C to%3A 2%25::state" in command


def test_more_than_ten_are_counted(invoke: Invoke, suite: WriteSuite) -> None:
    suite(*(f"{{name: 'n{number}', expect: {{state: {{count: 2}}}}}}" for number in range(12)))
    commands = _commands(invoke("run", ".", "-q").output)
    assert [command.split()[0] for command in commands[:10]] == ["::error"] * 10
    assert commands[10:] == ["::notice::2 more runs did not pass, see summary.md"]


def test_the_summary_is_appended_to_that_of_the_job(
    invoke: Invoke, suite: WriteSuite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    job = tmp_path / "job.md"
    job.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(job))
    suite(FAILS)
    invoke("run", ".")
    assert job.read_text(encoding="utf-8").startswith("before\n## Scenarios: 0 passed, 1 failed\n")


def test_elsewhere_nothing_is_told(
    invoke: Invoke, suite: WriteSuite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS")
    suite(FAILS)
    assert _commands(invoke("run", ".").output) == []


def test_pytest_tells_the_same(
    invoke: Invoke,
    suite: WriteSuite,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    suite(FAILS)
    of_run = _commands(invoke("run", ".").output)
    told = pytester.runpytest_inprocess("-p", "no:cacheprovider", Path.cwd()).outlines
    assert _commands("\n".join(told)) == of_run != []
