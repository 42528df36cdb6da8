"""`--last-failed` repeats what failed or could not be judged. Source: docs/ci.md, docs/variants.md."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.fixtures import Invoke, WriteFile, WriteSuite

PASSES = "{name: passes, expect: {state: {count: 1}}}"
FAILS = "{name: fails, expect: {state: {count: 2}}}"
ERRS = "{name: errs, manifest: asking.yaml, env: {MODEL: m}, input: Hi}"


def ran(folder: str = "reports/latest") -> list[str]:
    lines = Path(folder, "results.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["id"] for line in lines]


@pytest.fixture
def ended(suite: WriteSuite, invoke: Invoke) -> None:
    """The last run: two scenarios of a file did not pass, nor did one of another file."""
    suite(PASSES, FAILS, ERRS)
    suite(FAILS, file="b.scenario.yaml")
    assert invoke("run", ".").exit_code == 3


def test_what_failed_and_what_could_not_be_judged_runs_again(invoke: Invoke, ended: None) -> None:
    result = invoke("run", ".", "--last-failed")
    assert result.exit_code == 3
    assert ran() == ["a.scenario.yaml::fails", "a.scenario.yaml::errs", "b.scenario.yaml::fails"]
    assert "3 of 4 scenarios selected (did not pass in the last run)" in result.output


def test_what_is_mended_is_not_repeated_again(invoke: Invoke, ended: None, suite: WriteSuite) -> None:
    suite(PASSES.replace("passes", "fails"), file="b.scenario.yaml")
    invoke("run", ".", "--last-failed")
    invoke("run", ".", "--last-failed")
    assert ran() == ["a.scenario.yaml::fails", "a.scenario.yaml::errs"]


@pytest.mark.parametrize(
    ("args", "repeated"),
    [
        (["b.scenario.yaml"], ["b.scenario.yaml::fails"]),
        (["a.scenario.yaml::errs"], ["a.scenario.yaml::errs"]),
        ([".", "-k", "fails"], ["a.scenario.yaml::fails", "b.scenario.yaml::fails"]),
        ([".", "--shard", "1/3"], ["a.scenario.yaml::errs"]),
        ([".", "-x"], ["a.scenario.yaml::fails"]),
    ],
)
def test_a_part_of_it_may_be_selected_and_the_rest_is_not_forgotten(
    invoke: Invoke, ended: None, args: list[str], repeated: list[str]
) -> None:
    invoke("run", *args, "--last-failed")
    assert ran() == repeated
    invoke("run", ".", "--last-failed")
    assert len(ran()) == 3


def test_nothing_failed(invoke: Invoke, suite: WriteSuite) -> None:
    suite(PASSES)
    invoke("run", ".")
    before = Path("reports/latest/results.jsonl").read_bytes()
    result = invoke("run", ".", "--last-failed")
    told = "nothing to run: 0 of 1 scenario selected (none of 1 scenario failed in the last run)\n"
    assert (result.exit_code, result.output) == (0, told)
    assert Path("reports/latest/results.jsonl").read_bytes() == before


def test_nothing_that_failed_is_selected(invoke: Invoke, ended: None) -> None:
    result = invoke("run", ".", "-k", "passes", "--last-failed")
    told = "nothing to run: 0 of 4 scenarios selected (-k 'passes', did not pass in the last run)\n"
    assert (result.exit_code, result.output) == (0, told)
    assert len(ran()) == 4


@pytest.mark.parametrize("command", ["run", "record"])
def test_without_a_last_run_it_is_refused(invoke: Invoke, suite: WriteSuite, command: str) -> None:
    suite(PASSES)
    result = invoke(command, ".", "--last-failed")
    assert result.exit_code == 2
    assert "there is no last run, as reports/latest/results.jsonl does not exist" in result.output
    assert "run once without --last-failed" in result.output


def test_a_scenario_that_is_gone_is_named(invoke: Invoke, ended: None, suite: WriteSuite) -> None:
    suite(PASSES, FAILS.replace("fails", "renamed"), ERRS)
    result = invoke("run", ".", "--last-failed")
    text = "warning: --last-failed: 1 scenario of the last run did not pass, and no longer exists: "
    assert f"{text}a.scenario.yaml::fails [changed-since]" in result.stderr
    assert ran() == ["a.scenario.yaml::errs", "b.scenario.yaml::fails"]


def test_if_all_that_failed_is_gone_it_is_an_error(invoke: Invoke, ended: None, suite: WriteSuite) -> None:
    suite(PASSES)
    Path("b.scenario.yaml").unlink()
    result = invoke("run", ".", "--last-failed")
    assert result.exit_code == 2
    text = "3 scenarios of the last run did not pass, and no longer exist: a.scenario.yaml::fails, "
    assert f"error: --last-failed: {text}" in result.stderr


def test_files_that_were_saved_since_are_named(invoke: Invoke, ended: None) -> None:
    later = Path("reports/latest/results.jsonl").stat().st_mtime + 10
    os.utime("counter.yaml", (later, later))
    result = invoke("run", ".", "--last-failed")
    text = (
        "note: --last-failed: changed since the last run: counter.yaml; what passed then does not run again"
    )
    assert text in result.stderr


def test_the_scenarios_of_a_file_that_could_not_be_read_run(
    invoke: Invoke, suite: WriteSuite, write: WriteFile
) -> None:
    write("b.scenario.yaml", "harness: 1\nscenarios: [\n")
    suite(PASSES)
    assert invoke("run", ".").exit_code == 2
    suite(PASSES, file="b.scenario.yaml")
    assert invoke("run", ".", "--last-failed").exit_code == 0
    assert ran() == ["b.scenario.yaml::passes"]
    assert "nothing to run" in invoke("run", ".", "--last-failed").output


def test_the_last_run_is_that_of_the_project_wherever_the_command_is_given(
    invoke: Invoke, suite: WriteSuite, write: WriteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("pyproject.toml", "[tool.harness]\n")
    suite(PASSES, FAILS)
    invoke("run", ".")
    write("sub/empty.txt", "")
    monkeypatch.chdir("sub")
    invoke("run", "..", "--last-failed")
    assert len(ran("../reports/latest")) == 1


def test_it_is_not_for_watching(invoke: Invoke, ended: None) -> None:
    result = invoke("run", ".", "--last-failed", "--watch")
    assert result.exit_code == 2
    assert "--watch cannot be combined with" in result.output
