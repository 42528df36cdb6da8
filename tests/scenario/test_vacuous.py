"""What cannot fail is told: when the file is read, and of every run."""

from pathlib import Path

import pytest

from harness.scenario.load import load_file
from harness.scenario.model import Scenario
from harness.scenario.run import run_scenario
from tests.manifests import COUNTER


def read(folder: Path, keys: str) -> Scenario:
    """A scenario with these keys; they begin at column 1 of line 5."""
    (folder / "counter.yaml").write_text(COUNTER)
    file = folder / "a.scenario.yaml"
    file.write_text(f"harness: 1\nmanifest: counter.yaml\nscenarios: [{{name: x,\n\n{keys}}}]\n")
    return load_file(file).scenarios[0]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("pass_score: 0", "5:1 pass_score: 0 cannot fail: this scenario passes whatever its run does"),
        ("expect: {never: []}", "5:10 'never' lists nothing, so that it cannot fail"),
        ("expect: {latency: {}}", "5:10 'latency' lists nothing"),
        ("expect: {calls: [], calls_order: any}", "5:10 'calls' lists nothing"),
        ("turns: [{expect: {never_calls: []}}]", "5:19 'never_calls' lists nothing"),
        (
            "expect: {checks: [{that: 'true'}]}",
            "5:26 'true' reads nothing of the run, so that it cannot fail",
        ),
        ("expect: {checks: [{that: '1 < 2'}]}", "5:26 '1 < 2' reads nothing of the run"),
        (
            "expect: {latency: {total: 30}}",
            "5:27 this bound cannot be exceeded: a run ends at its timeout of 30 s",
        ),
        (
            "timeout: 5, turns: [{expect: {latency: {total: 5}}}]",
            "5:48 this bound cannot be exceeded: a run ends at its timeout of 5 s",
        ),
        (
            "expect: {judge: [{rubric: r, model: m, threshold: 0}]}",
            "5:51 a threshold of 0 is reached by every",
        ),
        (
            "expect: {path: [add], weights: {path: 0, status: 0, unused: 0}}",
            "5:23 the weight of every check is 0",
        ),
    ],
)
def test_what_cannot_fail_is_told(tmp_path: Path, keys: str, told: str) -> None:
    (problem,) = read(tmp_path, keys).warnings
    assert problem.span is not None
    assert f"{problem.span.line}:{problem.span.column} {problem.message}".startswith(told)
    assert (problem.code, problem.severity) == ("cannot-fail", "warning")


@pytest.mark.parametrize(
    "keys",
    [
        "pass_score: 0.1",
        "expect: {calls: [], calls_order: exact}",
        "expect: {path: [], state: {}, error: {}}",
        "expect: {checks: [{that: 'false'}, {that: 'state.count == 1'}]}",
        "expect: {path: [add], weights: {path: 0}}",
        "expect: {checks: [{that: state.count == 1, weight: 1}], weights: {checks: 0, status: 0, unused: 0}}",
    ],
)
def test_what_can_fail(tmp_path: Path, keys: str) -> None:
    assert read(tmp_path, keys).warnings == ()


def test_every_run_tells_it(tmp_path: Path) -> None:
    outcomes = run_scenario(read(tmp_path, "pass_score: 0, repeat: 2, expect: {state: {count: 7}}"))
    assert [outcome.verdict for outcome in outcomes] == ["passed", "passed"]
    assert all("pass_score: 0 cannot fail" in outcome.observed.warnings[0] for outcome in outcomes)
