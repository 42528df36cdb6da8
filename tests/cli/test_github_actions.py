"""Workflow commands for GitHub Actions in the output of a run."""

import json
from pathlib import Path

import pytest

from tests.cli.fixtures import Invoke, RunCommand, WriteFile, WriteSuite
from tests.forked import run

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


def test_failures_beyond_ten_are_counted(invoke: Invoke, suite: WriteSuite) -> None:
    suite(*(f"{{name: 'n{number}', expect: {{state: {{count: 2}}}}}}" for number in range(12)))
    commands = _commands(invoke("run", ".", "-q").output)
    assert [command.split()[0] for command in commands[:10]] == ["::error"] * 10
    assert commands[10:] == ["::notice::2 more runs did not pass, see summary.md"]


def test_the_summary_is_appended_to_the_job_summary(
    invoke: Invoke, suite: WriteSuite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    job = tmp_path / "job.md"
    job.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(job))
    suite(FAILS)
    invoke("run", ".")
    assert job.read_text(encoding="utf-8").startswith("before\n## Scenarios: 0 passed, 1 failed\n")


def test_outside_github_actions_nothing_is_written(
    invoke: Invoke, suite: WriteSuite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS")
    suite(FAILS)
    assert _commands(invoke("run", ".").output) == []


def test_pytest_writes_the_same_annotations(
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


HOSTILE = "no\\n::set-output name=a::b\\n  ::stop-commands::x ##[add-mask]e"
SPEAKS = f"""\
name: speaks
manifest: asking.yaml
input: hi
env: {{MODEL: gpt-4o}}
llm: {{ask: [{{error: {{kind: invalid_request, message: "{HOSTILE}"}}}}]}}
expect: {{output: yes}}"""
NODE = """\
version: "1.0"
start_at: tell
end_at: [tell]
nodes: [{id: tell, handler: tell}]
edges: []
"""
TELLS = """\
import os
import sys
import warnings


def tell(state, params):
    for token in (":", ":error::printed", "\\n", "##", "[error]printed", "\\n"):
        print(token, end="", flush=True)
    os.write(2, b"::error::from a descriptor\\n")
    warnings.warn("see\\n::error::warned", UserWarning)
    raise ValueError("see\\n::error::raised")
"""


def _commands_found(output: str) -> list[str]:
    """Return the workflow commands that a runner finds in the output."""
    return [line for line in output.splitlines() if line.lstrip().startswith("::") or "##[" in line]


@pytest.fixture
def hostile(suite: WriteSuite, write: WriteFile) -> None:
    tells = "{name: tells, manifest: tell.yaml, handlers: {tell: tellers.tell}, input: {}, expect: {path: [tell]}}"
    suite(SPEAKS.replace("\n", "\n    "), tells)
    write("tell.yaml", NODE)
    write("tellers.py", TELLS)


@pytest.mark.parametrize("options", [("--narrate", "--debug"), ("--json", "-")])
def test_output_of_models_and_tools_contains_no_workflow_commands(
    options: tuple[str, ...], hostile: None, harness: RunCommand
) -> None:
    done = harness("run", ".", *options, GITHUB_ACTIONS="true")
    shown = done.stdout + done.stderr
    assert "set-output name=a::b" in shown
    assert "error::printed" in shown
    assert [line[: line.index(" ")] for line in _commands_found(shown)] == ["::error", "::error"]


@pytest.mark.parametrize("options", [("-s",), ("-n1", "-rA", "--tb=long")])
def test_output_under_pytest_contains_no_workflow_commands(
    options: tuple[str, ...], hostile: None, tmp_path: Path
) -> None:
    done = run(["pytest", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", *options, tmp_path])
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    assert [line for line in lines if "set-output name=a::b" in line]
    assert [line for line in lines if "error::printed" in line]
    assert [line[: line.index(" ")] for line in _commands_found("\n".join(lines))] == ["::error", "::error"]


def test_a_trace_as_json_contains_no_workflow_commands_and_is_unchanged(
    hostile: None, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    invoke("run", ".", "-q")
    told = invoke("trace", "a.scenario.yaml::speaks", "--json").output
    assert _commands_found(told) == []
    assert any("##[add-mask]e" in str(json.loads(line)) for line in told.splitlines())


@pytest.mark.parametrize(("taken", "told"), [(1 << 20, ""), ((1 << 20) - 300, "is left out here")])
def test_a_summary_too_large_for_github_is_left_out(
    taken: int, told: str, invoke: Invoke, suite: WriteSuite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    job = tmp_path / "job.md"
    job.write_bytes(b"x" * taken)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(job))
    suite(FAILS)
    invoke("run", ".")
    added = job.read_bytes()[taken:].decode()
    assert (told in added, len(job.read_bytes()) <= 1 << 20, "## Scenarios" in added) == (True, True, False)
