"""What makes a verdict worth little is told, in each form of output, and changes no verdict."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.gate.judge import Verdict, judge
from harness.gate.policy import Policy, Rules, read_policy
from harness.gate.text import lines, markdown
from harness.report.baseline_file import baseline_text
from harness.report.scenario_runs import read_run
from tests.gate.runs import RunSpec, write_run

RUN = {"x": RunSpec(tags=["billing"]), "y": RunSpec(), "z": RunSpec(suite="b.scenario.yaml")}
OTHER = {**RUN, "x": replace(RUN["x"], latency=1.1)}
DEFAULT = Policy(Rules())


def codes(verdict: Verdict) -> list[str]:
    return [warning.code for warning in verdict.warnings]


def judged(
    folder: Path, rules: str, run: dict[str, RunSpec], before: dict[str, RunSpec] | None = None
) -> Verdict:
    policy = folder / "gate.yaml"
    policy.write_text(f"gate: {{{rules}}}\n", encoding="utf-8")
    baseline = write_run(folder / "before", before) if before else None
    return judge(write_run(folder / "after", run), read_policy(policy, folder), baseline)


def saved(run: Path, *, later_by_s: int) -> Path:
    """Save the baseline of a run, later than the run by this time."""
    file = run.with_suffix(".json")
    file.write_text(baseline_text(read_run(run)), encoding="utf-8")
    time = (run / "results.jsonl").stat().st_mtime + later_by_s
    os.utime(file, (time, time))
    return file


def test_each_form_of_output_has_the_warnings_and_the_verdict_stays(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", RUN)

    verdict = judge(run, DEFAULT, run)

    message = f"the baseline {run} is this very run"
    assert verdict.passed
    assert f"warning: {message}" in [*lines(verdict)]
    assert "- **warning**: the baseline" in markdown(verdict)
    assert verdict.as_json()["warnings"] == [{"code": "baseline-is-run", "message": message, "scenarios": []}]


@pytest.mark.parametrize(
    "baseline",
    [
        lambda run: run,
        lambda run: run / "results.jsonl",
        lambda run: Path(shutil.copytree(run, run.with_name("copy"))),
        lambda run: saved(run, later_by_s=5),
    ],
    ids=["folder", "results", "copy", "saved from it"],
)
def test_a_baseline_that_is_the_run_itself_is_told(tmp_path: Path, baseline: Callable[[Path], Path]) -> None:
    run = write_run(tmp_path / "run", RUN)

    assert codes(judge(run, DEFAULT, baseline(run))) == ["baseline-is-run"]


def test_a_baseline_of_an_earlier_run_with_the_same_results_is_another(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", RUN)
    other = write_run(tmp_path / "other", OTHER)

    assert codes(judge(run, DEFAULT, saved(run, later_by_s=-5))) == []
    assert codes(judge(run, DEFAULT, other)) == []
    assert codes(judge(run, DEFAULT, saved(other, later_by_s=5))) == []


@pytest.mark.parametrize("became", ["failed", "error"])
def test_a_baseline_in_which_nothing_passed_is_told(tmp_path: Path, became: str) -> None:
    failing = {name: replace(spec, verdict=became, score=0.0) for name, spec in RUN.items()}

    assert codes(judged(tmp_path, "no_new_failures: true", RUN, failing)) == ["baseline-never-passed"]
    assert codes(judged(tmp_path, "no_new_failures: true", RUN, {**failing, "x": RUN["x"]})) == []


@pytest.mark.parametrize(
    ("fails_never", "may_fail"),
    [
        ("min_pass_rate: 0", "min_pass_rate: 0.01"),
        ("min_fitness: 0", "min_fitness: 0.01"),
        ("min_coverage: {nodes: 0, edges: 0}", "min_coverage: {nodes: 0.5, edges: 0}"),
        ("max_flaky: 3", "max_flaky: 2"),
        ("max_errors: 3", "max_errors: 2"),
        ("max_fitness_drop: 1", "max_fitness_drop: 0.99"),
        ("proven_no_worse: {fitness: 1}", "proven_no_worse: {fitness: 0.99, latency: 1}"),
        ("allow_removed: true", "allow_removed: true, min_fitness: 1"),
        ("min_pass_rate: 1, by: [{tag: billing, max_errors: 1}]", "by: [{tag: billing, max_errors: 0}]"),
    ],
)
def test_a_rule_that_no_run_can_fail_is_told(tmp_path: Path, fails_never: str, may_fail: str) -> None:
    assert codes(judged(tmp_path, fails_never, RUN, OTHER)) == ["rule-cannot-fail"]
    assert codes(judged(tmp_path, may_fail, RUN, OTHER)) == []


def test_a_latency_in_milliseconds_is_told(tmp_path: Path) -> None:
    for rule in ("max_p50_latency", "max_p95_latency"):
        assert codes(judged(tmp_path, f"{rule}: 30000", RUN, OTHER)) == ["unlikely-time"]
        assert codes(judged(tmp_path, f"{rule}: 7200", RUN, OTHER)) == []


@pytest.mark.parametrize(
    ("rule", "figure"),
    [
        ("max_p50_latency: 1", "latency"),
        ("max_p95_latency: 1", "latency"),
        ("max_cost: 1", "cost"),
        ("max_tokens: 1000", "tokens"),
        ("max_latency_increase: 0.1", "latency"),
        ("max_cost_increase: 0.1", "cost"),
        ("max_tokens_increase: 0.1", "tokens"),
        ("proven_no_worse: {cost: 0.1}", "cost"),
        ("by: [{tag: billing, max_tokens: 1000}]", "tokens"),
    ],
)
def test_a_bound_on_figures_that_are_all_0_is_told(tmp_path: Path, rule: str, figure: str) -> None:
    none: dict[str, Any] = {figure: 0}
    zero = {name: replace(spec, **none) for name, spec in RUN.items()}
    before = {name: replace(spec, **none) for name, spec in OTHER.items()}
    if figure == "latency":
        before["x"] = replace(before["x"], tokens=99)  # else it would be the same run

    assert codes(judged(tmp_path, rule, zero, before)) == ["figures-all-zero"]
    assert codes(judged(tmp_path, rule, {**zero, "x": RUN["x"]}, before)) == []
