"""`pytest --harness-variants FILE` runs each scenario with each variant. Source: docs/variants.md, "Scoring"."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tests.preloaded  # noqa: F401

TRIAGE = Path(__file__).parents[2] / "scenarios" / "tutorial" / "agents" / "triage.yaml"

SCENARIOS = f"""\
harness: 1
manifest: {TRIAGE}
scenarios:
  - name: billing
    input: I was charged twice
    llm: {{classify: [{{json: {{intent: billing}}}}]}}
"""


def test_each_scenario_is_an_item_for_each_variant(pytester: pytest.Pytester) -> None:
    (pytester.path / "a.scenario.yaml").write_text(SCENARIOS)
    (pytester.path / "v.yaml").write_text("harness: 1\nvariants: [{name: terse, prompts: {classify: x}}]")
    result = pytester.runpytest("-p", "no:cacheprovider", "-v", "--harness-variants", "v.yaml")
    result.stdout.fnmatch_lines(
        ["*a.scenario.yaml::billing[[]baseline[]] PASSED*", "*::billing[[]terse[]] PASSED*"]
    )
    lines = (pytester.path / "reports/latest/results.jsonl").read_text().splitlines()
    assert [json.loads(line)["variant"] for line in lines] == ["baseline", "terse"]


def test_a_variant_that_is_the_baseline_once_more_is_a_warning(pytester: pytest.Pytester) -> None:
    (pytester.path / "a.scenario.yaml").write_text(SCENARIOS)
    (pytester.path / "v.yaml").write_text("harness: 1\nvariants: [{name: same, models: {gpt-4o: gpt-4o}}]")
    (pytester.path / "a.scenario.yaml").write_text(f"{SCENARIOS}    env: {{TRIAGE_MODEL: gpt-4o}}\n")
    result = pytester.runpytest("-p", "no:cacheprovider", "--harness-variants", "v.yaml")
    result.stdout.fnmatch_lines(
        [
            "*v.yaml:2:19: 'same' is the same as the baseline: "
            "the scenarios already run with the values that it sets*"
        ]
    )


def test_a_parameter_that_nothing_knows_is_a_warning_of_the_scenarios_of_its_variant(
    pytester: pytest.Pytester,
) -> None:
    (pytester.path / "a.scenario.yaml").write_text(SCENARIOS)
    (pytester.path / "v.yaml").write_text("harness: 1\nvariants: [{name: cold, params: {temprature: 0}}]")
    pytester.runpytest("-p", "no:cacheprovider", "--harness-variants", "v.yaml")
    lines = (pytester.path / "reports/latest/results.jsonl").read_text().splitlines()
    said = {line["variant"]: line["warnings"] for line in map(json.loads, lines)}
    assert set(said["cold"]) - set(said["baseline"]) == {
        "v.yaml:2:34: no manifest that the scenarios run sets a parameter 'temprature', and no provider "
        "documents it (did you mean 'temperature'?)"
    }


def test_a_variant_that_changes_nothing_that_is_there_ends_the_session(pytester: pytest.Pytester) -> None:
    (pytester.path / "a.scenario.yaml").write_text(SCENARIOS)
    (pytester.path / "v.yaml").write_text("harness: 1\nvariants: [{name: terse, prompts: {clasify: x}}]")
    result = pytester.runpytest("-p", "no:cacheprovider", "--harness-variants", "v.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*v.yaml:2:36: no manifest that the scenarios run has a prompt 'clasify'*"])


def test_a_file_that_cannot_be_read_is_the_error_and_not_the_variant_for_its_manifest(
    pytester: pytest.Pytester,
) -> None:
    (pytester.path / "a.scenario.yaml").write_text(SCENARIOS)
    (pytester.path / "b.scenario.yaml").write_text("harness: 1\nmanifest: b.yaml\nscenarios: [{nam: x}]")
    variant = "{name: cold, params: {temperature: 0}, only: [b.yaml]}"
    (pytester.path / "v.yaml").write_text(f"harness: 1\nvariants: [{variant}]")
    result = pytester.runpytest("-p", "no:cacheprovider", "--harness-variants", "v.yaml")
    result.stdout.fnmatch_lines(["*unknown key 'nam' in a scenario*"])
    assert "v.yaml" not in result.stderr.str()
