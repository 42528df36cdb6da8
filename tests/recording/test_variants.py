"""A variant has its own recordings, below those of its scenario: the baseline is never called again."""

from __future__ import annotations

import pytest

from harness.scenario.load import load_file
from harness.scenario.model import Scenario
from harness.settings import Projects, RecordMode
from harness.variants.application import apply_variants
from harness.variants.document import read_variants
from tests.recording.project import Project

SCENARIO = """\
harness: 1
manifest: weather.yaml
scenarios:
  - {name: rain, input: Rain?, cassette: rain, tools: {forecast: real}}
"""
VARIANTS = "harness: 1\nvariants: [{name: curt, prompts: {manner: One word.}}]"
SERVED = """
llm:
  - {when: 'request.messages[0].content == "One word."', reply: Rain., times: any}
  - {reply: It will rain all day., times: any}
"""


def both(project: Project) -> tuple[Scenario, Scenario]:
    scenarios = load_file(project.write("rain.scenario.yaml", SCENARIO)).scenarios
    variants = read_variants(project.write("variants.yaml", VARIANTS))
    baseline, curt = apply_variants(scenarios, variants, Projects())
    return baseline, curt


def test_a_variant_is_recorded_beside_the_baseline_and_replayed(project: Project) -> None:
    with project.serving(SERVED):
        baseline, curt = both(project)
        (first,) = project.run(baseline, RecordMode.ONCE)
        kept = {path: path.read_bytes() for path in (project.cassettes / "rain").rglob("*") if path.is_file()}
        (second,) = project.run(curt, RecordMode.ONCE)
    assert (first.observed.output, second.observed.output) == ("It will rain all day.", "Rain.")
    assert {path: path.read_bytes() for path in kept} == kept
    assert (project.cassettes / "rain" / "variants" / "curt").is_dir()
    assert project.replay(baseline).observed.output == "It will rain all day."
    assert project.replay(curt).observed.output == "Rain."


def test_a_variant_that_was_never_recorded_cannot_be_judged(project: Project) -> None:
    with project.serving(SERVED):
        baseline, curt = both(project)
        project.run(baseline, RecordMode.ONCE)
    outcome = project.replay(curt)
    assert outcome.verdict == "error"
    assert "rain/variants/curt" in str(outcome.observed.error)
    assert "record it: the same command with --record-mode new_episodes" in str(outcome.observed.error)


def test_on_a_ci_machine_the_error_does_not_advise_what_records_nothing_there(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    _, curt = both(project)
    advised = "record it: the same command with --record-mode new_episodes, where CI is not set"
    assert advised in str(project.replay(curt).observed.error)
