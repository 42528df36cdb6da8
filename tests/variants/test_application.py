"""A variant changes what the scenarios run, in every dialect. Source: docs/variants.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.dialects.load import load_prompts
from harness.errors import FormatError
from harness.scenario.load import load_file
from harness.scenario.model import Scenario, load_request
from harness.scenario.outcome import Outcome
from harness.scenario.run import run_scenario
from harness.settings import Projects, Settings
from harness.variants.application import apply_variants
from harness.variants.document import read_variants

TUTORIAL = Path(__file__).parents[2] / "scenarios" / "tutorial"
DIALECTS = {
    "triage": "classify",
    "complaints": "read.instructions",
    "parcels": "sort.prompt_template",
    "returns": "prompts/returns.yaml#sort.system",
    "workshop": "intake.prompt",
}
"""A suite of the tutorial for each dialect, with the id of a prompt that its first scenario uses."""

Vary = Callable[[Sequence[Scenario], str], list[Scenario]]


@pytest.fixture
def vary(tmp_path: Path) -> Vary:
    """A function that returns scenarios with a single variant that has these keys."""

    def scenarios(of: Sequence[Scenario], keys: str) -> list[Scenario]:
        file = tmp_path / "variants.yaml"
        file.write_text(f"harness: 1\nvariants: [{{name: v, {keys}}}]")
        return apply_variants(of, read_variants(file)[1:], Projects())

    return scenarios


def suite(name: str) -> tuple[Scenario, ...]:
    return tuple(load_file(TUTORIAL / f"{name}.scenario.yaml").scenarios)


def prompts_of(scenario: Scenario) -> dict[str, str]:
    listed = load_prompts(load_request(scenario, Settings()), scenario.dialect)
    return {each.id: each.text for each in listed}


def run(scenario: Scenario) -> Outcome:
    (outcome,) = run_scenario(scenario)
    return outcome


@pytest.mark.parametrize(("name", "prompt"), DIALECTS.items())
def test_a_prompt_is_changed_in_every_dialect(vary: Vary, name: str, prompt: str) -> None:
    text = 'Say "x": one word,\nno more. # ümlaut'
    longer = f"{prompts_of(suite(name)[0])[prompt]} {text}"
    (scenario,) = vary(suite(name)[:1], f"prompts: {{{json.dumps(prompt)}: {json.dumps(longer)}}}")
    before, after = run(suite(name)[0]), run(scenario)
    assert after.variant == "v"
    assert after.digest != before.digest
    asked = json.dumps(after.events, ensure_ascii=False)
    assert json.dumps(text, ensure_ascii=False)[1:-1] in asked
    assert run(suite(name)[0]).digest == before.digest


@pytest.mark.parametrize("name", DIALECTS)
def test_a_prompt_that_says_the_same_changes_nothing(vary: Vary, name: str) -> None:
    scenario = suite(name)[0]
    prompts = {
        each.id: each.text for each in load_prompts(load_request(scenario, Settings()), scenario.dialect)
    }
    (same,) = vary([scenario], f"prompts: {json.dumps(prompts)}")
    assert run(same).digest == run(scenario).digest
    assert same.variation is not None
    assert same.variation.is_same


def test_a_prompt_in_a_file_of_its_own_is_changed(vary: Vary, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("The old text.")
    (tmp_path / "m.yaml").write_text(
        (TUTORIAL / "agents/triage.yaml")
        .read_text()
        .replace(
            "    instructions: Answer the customer's question in one or two friendly sentences.",
            "    instructions_path: a.md",
        )
    )
    (tmp_path / "a.scenario.yaml").write_text(
        "harness: 1\nmanifest: m.yaml\nscenarios:\n  - {name: x, input: hi, "
        "llm: {classify: [{json: {intent: question}}], answer: [hello]}}"
    )
    (scenario,) = vary(load_file(tmp_path / "a.scenario.yaml").scenarios, "prompts: {answer: The new text.}")
    assert "The new text." in json.dumps(run(scenario).events)
    assert (tmp_path / "a.md").read_text() == "The old text."


def test_a_model_and_parameters_are_those_of_the_variant(vary: Vary) -> None:
    (scenario,) = vary(suite("triage")[1:2], "models: {gpt-4o: tiny}, params: {temperature: 0.5, top_p: 1}")
    outcome = run(scenario)
    assert {call["name"] for call in outcome.observed.calls} == {"tiny"}
    assert '"temperature": 0.5' in json.dumps(outcome.events)
    assert "calls" in {check.name for check in outcome.checks if not check.passed}


def test_judges_are_the_same_in_all_variants(vary: Vary, tmp_path: Path) -> None:
    (tmp_path / "a.scenario.yaml").write_text(
        f"harness: 1\nmanifest: {TUTORIAL}/agents/triage.yaml\nenv: {{TRIAGE_MODEL: gpt-4o}}\n"
        "scenarios:\n  - name: x\n    input: hi\n    llm:\n"
        "      classify: [{json: {intent: question}}]\n      answer: [hello]\n"
        "      judge: [{model: gpt-4o, json: {grade: 1, reason: fine}}]\n"
        "    expect: {judge: [{rubric: kind, model: gpt-4o}]}\n"
    )
    (scenario,) = vary(load_file(tmp_path / "a.scenario.yaml").scenarios, "models: {gpt-4o: tiny}")
    assert run(scenario).passed


def test_variables_and_the_manifest_are_those_of_the_variant(vary: Vary) -> None:
    (renamed,) = vary(suite("triage")[:1], "env: {TRIAGE_MODEL: other}")
    assert {call["name"] for call in run(renamed).observed.calls} == {"other"}
    (other,) = vary(suite("triage")[:1], f"manifest: {TUTORIAL}/agents/refunds.yaml")
    assert run(other).manifest.endswith("refunds.yaml")


def test_a_patch_changes_the_manifest(vary: Vary) -> None:
    patch = "edit: [{op: remove, path: /agents/triage/graph/nodes/0/on_error}]"
    (scenario,) = vary(suite("triage")[2:3], patch)
    outcome = run(scenario)
    assert run(suite("triage")[2]).passed
    assert outcome.observed.status == "failed"


def test_a_variant_applies_to_manifests_that_have_what_it_changes(vary: Vary) -> None:
    both = [suite("triage")[0], suite("returns")[0]]
    assert [each.file.name for each in vary(both, "prompts: {classify: x}")] == ["triage.scenario.yaml"]
    assert len(vary(both, "params: {temperature: 0}")) == 2
    assert [each.file.name for each in vary(both, "params: {temperature: 0}, only: ['*/returns.yaml']")] == [
        "returns.scenario.yaml"
    ]


@pytest.mark.parametrize(
    ("keys", "refusal"),
    [
        ("prompts: {clasify: x}", "no manifest that the scenarios run has a prompt 'clasify'"),
        ("models: {gpt-4: x}", "no manifest that the scenarios run uses a model 'gpt-4'"),
        ("edit: [{op: remove, path: /nothing}]", "the patch cannot be applied to"),
        (
            "edit: [{op: test, path: /manifest_version, value: 9}]",
            "the value at '/manifest_version' is different",
        ),
        (
            "edit: [{op: remove, path: /agents/triage/grph/nodes/0}]",
            r"triage.yaml: there is no '/agents/triage/grph'\s+did you mean 'graph'\?",
        ),
        (
            "edit: [{op: remove, path: /agents/triage/graph/nodes/90}]",
            r"there is no '/agents/triage/graph/nodes/90'\s+the list has \d items, the first is 0",
        ),
        (
            "edit: [{op: move, from: /agnts, path: /x}]",
            r"there is no '/agnts'\s+did you mean 'agents'\?",
        ),
        (
            "edit: [{op: add, path: /manifest_version/x, value: 1}]",
            "the patch cannot be applied to .*triage.yaml: ",
        ),
        (
            "edit: [{op: remove, path: /agents}], only: [none*]",
            "no manifest of the scenarios is the one that this patch changes",
        ),
        (
            "prompts: {classify: x}, only: [none*]",
            "no manifest that the scenarios run has a prompt 'classify'",
        ),
        (
            "params: {temperature: 0}, only: ['*/triag.yaml']",
            r"matches `only` of 'v': '\*/triag.yaml'\s+did you mean 'triage.yaml'\?",
        ),
        (
            "env: {A: x}, only: [none*, nothing]",
            r"'none\*' or 'nothing'\s+known: .*tutorial/agents/triage.yaml",
        ),
    ],
)
def test_what_no_manifest_has_is_refused(vary: Vary, keys: str, refusal: str) -> None:
    with pytest.raises(FormatError, match=refusal) as caught:
        vary(suite("triage"), keys)
    assert caught.value.problems[0].span is not None


def test_a_prompt_that_an_app_lacks_is_refused_with_the_nearest(vary: Vary) -> None:
    app = load_file(TUTORIAL.parent / "langgraph/react/react.scenario.yaml").scenarios
    refusal = r"has a prompt 'trip_planner:planner.sytem'\s+did you mean 'trip_planner:planner.system'\?"
    with pytest.raises(FormatError, match=refusal):
        vary(app, "prompts: {'trip_planner:planner.sytem': x}")


def test_a_patch_that_applies_is_not_refused_for_what_it_makes_of_the_manifest(vary: Vary) -> None:
    both = [suite("triage")[0], suite("returns")[0]]
    (broken,) = vary(both, "edit: [{op: replace, path: /prompts/0/instructions, value: 3}]")
    assert "instructions: expected text, found the number 3" in str(run(broken).observed.error)


def test_a_patch_runs_on_manifests_that_cannot_be_read_whatever_others_refused(
    vary: Vary, tmp_path: Path
) -> None:
    (tmp_path / "bad.yaml").write_text("manifest_version: 1\nagents: {x: [")
    (tmp_path / "a.scenario.yaml").write_text(
        "harness: 1\nmanifest: bad.yaml\ndialect: sherma\nscenarios: [{name: x}]"
    )
    (bad,) = load_file(tmp_path / "a.scenario.yaml").scenarios
    patch = "edit: [{op: remove, path: /agents/triage/graph/nodes/0/on_error}]"
    for of in (
        [suite("triage")[0], suite("returns")[0], bad],
        [bad, suite("returns")[0], suite("triage")[0]],
    ):
        assert {each.name for each in vary(of, patch)} == {suite("triage")[0].name, "x"}


@pytest.mark.parametrize("keys", ["edit: [{op: remove, path: /a}]", "prompts: {a: x}", "models: {a: b}"])
def test_what_may_be_in_a_manifest_that_cannot_be_read_is_refused_with_the_reason(
    vary: Vary, tmp_path: Path, keys: str
) -> None:
    (tmp_path / "bad.yaml").write_text("manifest_version: 1\nagents: {x: [")
    (tmp_path / "a.scenario.yaml").write_text("harness: 1\nmanifest: bad.yaml\nscenarios: [{name: x}]")
    with pytest.raises(FormatError, match=r"bad.yaml:2:13: not valid YAML"):
        vary(load_file(tmp_path / "a.scenario.yaml").scenarios, keys)


def test_a_baseline_is_narrowed_as_other_variants_are(tmp_path: Path) -> None:
    both = [suite("triage")[0], suite("returns")[0]]
    (tmp_path / "v.yaml").write_text("harness: 1\nvariants: [{name: today, only: [triage.yaml]}]")
    assert [
        each.file.name for each in apply_variants(both, read_variants(tmp_path / "v.yaml"), Projects())
    ] == ["triage.scenario.yaml"]
    (tmp_path / "v.yaml").write_text("harness: 1\nvariants: [{name: today, only: [triag.yaml]}]")
    with pytest.raises(FormatError, match=r"did you mean 'triage.yaml'"):
        apply_variants(both, read_variants(tmp_path / "v.yaml"), Projects())


def test_a_combination_that_is_meant_for_no_manifest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "v.yaml").write_text(
        "harness: 1\nvariants:\n"
        "  - {name: a, params: {top_p: 1}, only: [triage.yaml]}\n"
        "  - {name: b, params: {temperature: 0}, only: [returns.yaml]}\n"
        "matrix: {one: [a], other: [b]}"
    )
    variants = read_variants(tmp_path / "v.yaml")
    with pytest.raises(FormatError, match=r"matches `only` of 'a\+b': 'triage.yaml' and 'returns.yaml'"):
        apply_variants([*suite("triage"), *suite("returns")], variants, Projects())
