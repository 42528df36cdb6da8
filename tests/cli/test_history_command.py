"""`harness history`, and the runs that are appended to the file it reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.fixtures import Invoke, WriteFile, WriteSuite

PASSES = "{name: x, expect: {state: {count: 1}}}"
FAILS = "{name: x, expect: {state: {count: 2}}}"


@pytest.fixture
def two_runs(suite: WriteSuite, invoke: Invoke) -> Path:
    """A history in which scenario x passed first, and then failed."""
    for scenario in (PASSES, FAILS):
        suite(scenario, "{name: y}")
        invoke("run", "a.scenario.yaml", "--history", "history.jsonl")
    return Path("history.jsonl")


def test_runs_are_appended_and_changes_of_scenarios_are_listed(two_runs: Path, invoke: Invoke) -> None:
    result = invoke("history", "--file", str(two_runs))
    assert result.exit_code == 0
    assert "-50.0 points" in result.stdout
    assert "failing: 1 scenario\n  a.scenario.yaml::x\n    ✓✗  last passed at 20" in result.stdout


def test_the_json_has_all_runs_and_scenarios(two_runs: Path, invoke: Invoke) -> None:
    found = json.loads(invoke("history", "--file", str(two_runs), "--json", "-").stdout)
    assert (found["format"], found["count"], found["left_out"]) == ("harness-trends/1", 2, 0)
    assert [run["total"]["pass_rate"] for run in found["runs"]] == [1.0, 0.5]
    states = {each["id"]: (each["state"], each["last_passed"]["number"]) for each in found["scenarios"]}
    assert states == {"a.scenario.yaml::x": ("failing", 1), "a.scenario.yaml::y": ("steady", 2)}


def test_a_project_may_set_its_history_file(suite: WriteSuite, write: WriteFile, invoke: Invoke) -> None:
    write("pyproject.toml", '[tool.harness]\nhistory = "reports/history.jsonl"\n')
    suite(PASSES)
    invoke("run", "a.scenario.yaml")
    invoke("run", "a.scenario.yaml", "-k", "x")
    result = invoke("history")
    assert "2 runs" not in result.stderr
    assert "1 scenario: each passed in every run that had it" in result.stdout
    assert len(Path("reports/history.jsonl").read_text().splitlines()) == 2


def test_a_partial_run_is_marked(suite: WriteSuite, invoke: Invoke) -> None:
    suite(PASSES, "{name: y}")
    invoke("run", "a.scenario.yaml", "-k", "::y", "--history", "h.jsonl")
    record = json.loads(Path("h.jsonl").read_text())
    assert (record["complete"], record["reason"]) == (False, "1 of 2 scenarios selected (-k '::y')")
    assert "part: 20" in invoke("history", "--file", "h.jsonl").stdout


def test_folders_of_results_are_read_as_runs(suite: WriteSuite, invoke: Invoke) -> None:
    for name, scenario in (("monday", PASSES), ("tuesday", FAILS)):
        suite(scenario)
        invoke("run", "a.scenario.yaml", "--report", name)
    result = invoke("history", "monday", "tuesday")
    assert "last passed at monday, first failed at tuesday" in result.stdout
    assert invoke("history", "monday", "tuesday").stdout == result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no history is configured"),
        (("--file", "nowhere.jsonl"), "cannot read the history nowhere.jsonl: No such file"),
        (("--file", "."), "a folder with results is an argument, not --file"),
        (("--file", "empty.jsonl"), "no run is in empty.jsonl"),
        (("--file", "binary"), "binary:1:1: error: not a line of JSON: '\\x00\\x01"),
        (("nowhere",), "cannot read the results nowhere"),
    ],
)
def test_an_invalid_argument_or_file_is_an_error(
    invoke: Invoke, arguments: tuple[str, ...], said: str
) -> None:
    Path("empty.jsonl").touch()
    Path("binary").write_bytes(b"\0\1\2")
    result = invoke("history", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_run_does_not_start_if_its_history_file_is_invalid(suite: WriteSuite, invoke: Invoke) -> None:
    suite(PASSES)
    result = invoke("run", "a.scenario.yaml", "--history", "a.scenario.yaml")
    assert result.exit_code == 2
    assert "a.scenario.yaml:1:1: error: not a line of JSON" in result.stderr
    assert not Path("reports").exists()


def test_the_report_page_has_the_history_of_the_project(two_runs: Path, invoke: Invoke) -> None:
    assert '"history":{"name":"history.jsonl"' in Path("reports/latest/report.html").read_text()
    invoke("report")
    assert '"history":null' in Path("reports/latest/report.html").read_text()
    assert invoke("report", "--history", str(two_runs)).exit_code == 0
    assert '"history":{"name":"history.jsonl"' in Path("reports/latest/report.html").read_text()
    result = invoke("report", "--history", "a.scenario.yaml")
    assert result.exit_code == 2
    assert "a.scenario.yaml:1:1: error: not a line of JSON" in result.stderr
