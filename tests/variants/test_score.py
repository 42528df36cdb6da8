"""`harness score` compares variants with the baseline. Source: docs/variants.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import cli
from tests.manifests import ASKING, COUNTER

TUTORIAL = Path(__file__).parents[2] / "scenarios" / "tutorial"

SCENARIOS = """\
harness: 1
manifest: {manifest}
env: {{TRIAGE_MODEL: gpt-4o}}
defaults:
  allow_unused: true
  llm:
    classify: [{{json: {{intent: question}}}}]
    answer:
      - {{when: 'request.messages.exists(m, m.content.contains("PLEASE"))', reply: "{polite}", latency: {latency}}}
      - {{reply: Nine.}}
scenarios:
  - name: ask
    cases: [{cases}]
    input: "${{case.q}}"
    expect: {{output: {{$icontains: {expected}}}}}
"""

Score = Callable[..., Result]


@pytest.fixture
def score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Score:
    """A function that scores variants on questions that the baseline never answers politely."""
    monkeypatch.chdir(tmp_path)

    def run(
        variants: str,
        *options: str,
        questions: int = 8,
        polite: str = "Nine, please.",
        expected: str = "please",
        latency: float = 0,
    ) -> Result:
        cases = ", ".join(f"{{q: q{number}}}" for number in range(questions))
        text = SCENARIOS.format(
            manifest=TUTORIAL / "agents/triage.yaml",
            cases=cases,
            polite=polite,
            expected=expected,
            latency=latency,
        )
        Path("a.scenario.yaml").write_text(text)
        Path("variants.yaml").write_text(f"harness: 1\nvariants:\n{variants}")
        arguments = [
            "score",
            "a.scenario.yaml",
            "--variants",
            "variants.yaml",
            "--json",
            "score.json",
            *options,
        ]
        return CliRunner().invoke(cli, arguments)

    return run


def written() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(Path("score.json").read_text())
    return read


def of(name: str) -> dict[str, Any]:
    (found,) = [each for each in written()["variants"] if each["name"] == name]
    assert isinstance(found, dict)
    return found


POLITE = "  - {name: polite, prompts: {answer: Say PLEASE.}}\n"
SAME_AS_BASELINE = "  - {name: same, prompts: {answer: Say it.}}\n"


def test_a_variant_that_passes_where_the_baseline_fails_is_better(score: Score) -> None:
    result = score(POLITE + SAME_AS_BASELINE)
    assert result.exit_code == 0, result.output
    assert written()["format"] == "harness-score/1"
    assert written()["baseline"] == "baseline"
    assert [each["name"] for each in written()["variants"]] == ["baseline", "polite", "same"]
    assert (of("baseline")["fitness"], of("polite")["fitness"]) == (0.0, 1.0)
    assert of("polite")["difference"] == {
        "fitness": 1.0,
        "low": pytest.approx(0.665, abs=0.001),  # with a confidence of 97.5 %, for two variants
        "high": 1.0,
        "p": pytest.approx(2 * 2 / 2**8),
        "verdict": "better",
        "scenarios": 8,
        "needed": 0,
        "needed_repeats": None,
    }
    assert (of("polite")["confidence"], of("polite")["undone_by"]) == (0.975, 2)
    assert "2 more scenarios that it breaks would undo this" in result.stdout
    assert of("same")["difference"]["verdict"] == "no evidence"
    assert written()["pareto"] == ["polite"]


def test_the_scenarios_that_changed_are_named_with_the_check_that_did_it(score: Score) -> None:
    result = score(POLITE)
    changed = written()["changed"]
    assert len(changed) == 8
    assert changed[0] == {
        "id": "a.scenario.yaml::ask[q0]",
        "variant": "polite",
        "before": 0.0,
        "after": 1.0,
        "verdicts": ["failed", "passed"],
        "checks": [changed[0]["checks"][0]],
    }
    assert changed[0]["checks"][0].startswith("output: expected {$icontains: 'please'}, was 'Nine.'")
    assert "0.000 → 1.000  a.scenario.yaml::ask[q0]  (failed → passed)" in result.output


def test_a_small_p_value_is_never_nothing(score: Score) -> None:
    assert "better (p < 0.001)" in score(POLITE, questions=13).output


def test_a_worse_variant_is_worse(score: Score) -> None:
    score(POLITE, polite="Go away.", expected="nine")
    assert of("polite")["difference"]["fitness"] == -1.0
    assert of("polite")["difference"]["verdict"] == "worse"
    assert written()["pareto"] == ["baseline"]


def test_runs_in_which_faults_are_drawn_are_scripted_all_the_same(score: Score) -> None:
    score(POLITE, questions=2)
    text = Path("a.scenario.yaml").read_text()
    drawn = text.replace("    input:", "    faults: [{effect: llm, rate: 0.1, latency: 1}]\n    input:")
    Path("a.scenario.yaml").write_text(drawn)
    result = CliRunner().invoke(cli, ["score", "a.scenario.yaml", "--variants", "variants.yaml"])
    assert "polite: 2 runs scripted" in result.output


def test_a_single_scenario_has_a_difference_without_an_interval(score: Score) -> None:
    result = score(POLITE, questions=1)
    assert "+1.000  no evidence (p 1.000)" in result.output
    assert "one run is too few" in result.output
    assert of("polite")["difference"]["low"] is None


def test_variants_are_compared_over_few_scenarios_with_no_verdict(score: Score) -> None:
    score(POLITE, questions=3)
    assert of("polite")["difference"]["verdict"] == "no evidence"
    assert of("polite")["difference"]["needed"] == 6
    assert of("polite")["note"].startswith("about 6 new scenarios like these, scored alone, would show it")


def test_what_cannot_differ_is_told_instead_of_a_verdict(score: Score, tmp_path: Path) -> None:
    score("  - {name: other, prompts: {classify: Sort it.}}\n")
    assert of("other")["difference"]["verdict"] == "no evidence"
    text = (
        (tmp_path / "a.scenario.yaml")
        .read_text()
        .replace("when: 'request.messages.exists(m, m.content.contains(\"PLEASE\"))', ", "")
    )
    Path("b.scenario.yaml").write_text(text)
    result = CliRunner().invoke(
        cli,
        [
            "score",
            "b.scenario.yaml",
            "--variants",
            "variants.yaml",
            "--json",
            "score.json",
            "--require",
            "other",
        ],
    )
    assert result.exit_code == 1
    assert of("other")["difference"]["verdict"] is None
    assert "cannot differ" in of("other")["note"]
    assert "read neither prompt nor model" in result.output


AGENT = f"{TUTORIAL}/agents/triage.yaml"
ANSWER = '"Answer the customer\'s question in one or two friendly sentences."'


@pytest.mark.parametrize(
    ("keys", "is_same"),
    [
        (f"prompts: {{answer: {ANSWER}}}", True),
        (f"prompts: {{answer: {ANSWER}, classify: x}}", False),
        ("models: {gpt-4o: gpt-4o}", True),
        ("models: {gpt-4o: gpt-4o-mini}", False),
        (f"manifest: {TUTORIAL}/../tutorial/agents/triage.yaml", True),
        ("env: {TRIAGE_MODEL: gpt-4o}", True),
        ("env: {TRIAGE_MODEL: gpt-4o, OTHER: x}", False),
        ("edit: [{op: test, path: /manifest_version, value: 1}]", True),
        ("edit: [{op: replace, path: /manifest_version, value: 1.0}]", False),
        ("edit: [{op: remove, path: /agents/triage/graph/nodes/0/on_error}]", False),
        ("params: {temperature: 0}", False),
        (f"manifest: {AGENT}, params: {{temperature: 0}}", False),
    ],
)
def test_a_variant_that_is_the_baseline_cannot_differ(score: Score, keys: str, is_same: bool) -> None:
    result = score(f"  - {{name: same, {keys}}}\n", questions=1)
    note = "cannot differ: the scenarios already run with the values that it sets"
    assert (of("same")["note"] == note) is is_same
    assert (note in result.output) is is_same
    assert (of("same")["difference"] or {}).get("verdict") == (None if is_same else "no evidence")


HELLO = "'request.messages.exists(m, m.content.contains(\"h\"))'"


@pytest.mark.parametrize(
    ("node", "stubs", "expected", "verdict"),
    [
        (
            "ask",
            f"{{ask: [hello], judge: [{{model: grader, when: {HELLO}, json: {{grade: 1, reason: fine}}}}]}}",
            "{judge: {rubric: It is kind., model: grader}}",
            None,
        ),
        ("judge", f"{{judge: [{{when: {HELLO}, reply: hello}}]}}", "{output: hello}", "no evidence"),
    ],
    ids=["stub of a judge", "agent with a node judge"],
)
def test_a_stub_of_a_judge_tells_no_variants_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, node: str, stubs: str, expected: str, verdict: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("agent.yaml").write_text(ASKING.replace("ask\n", f"{node}\n"))
    Path("a.scenario.yaml").write_text(
        "harness: 1\nmanifest: agent.yaml\nenv: {MODEL: gpt-4o}\nscenarios:\n"
        f"  - {{name: ask, input: hi, llm: {stubs}, expect: {expected}}}\n"
    )
    Path("v.yaml").write_text("harness: 1\nvariants: [{name: cold, params: {temperature: 0}}]")
    arguments = ["score", "a.scenario.yaml", "--variants", "v.yaml", "--json", "score.json"]
    result = CliRunner().invoke(cli, arguments)
    assert (of("cold")["pass_rate"], of("cold")["difference"]["verdict"]) == (1, verdict), result.output


@pytest.mark.parametrize(("name", "code"), [("polite", 0), ("same", 1), ("baseline", 1)])
def test_a_variant_may_be_required_to_be_the_best(score: Score, name: str, code: int) -> None:
    assert score(POLITE + SAME_AS_BASELINE, "--require", name).exit_code == code


def test_a_better_but_slower_variant_shares_the_pareto_front(score: Score) -> None:
    score(POLITE, latency=2)
    assert written()["pareto"] == ["baseline", "polite"]
    assert of("polite")["latency"]["p50"] == 2


def test_a_variant_of_which_no_run_could_be_judged_is_not_on_the_pareto_front(score: Score) -> None:
    score(POLITE, questions=1, latency=2)
    file = Path("a.scenario.yaml")
    file.write_text(file.read_text().replace("      - {reply: Nine.}\n", ""))
    CliRunner().invoke(
        cli, ["score", str(file), "--variants", "variants.yaml", "--json", "score.json", "--fresh"]
    )
    assert written()["pareto"] == ["polite"]


def test_some_variants_may_be_chosen(score: Score) -> None:
    score(POLITE + SAME_AS_BASELINE, "--variant", "same")
    assert [each["name"] for each in written()["variants"]] == ["baseline", "same"]
    result = score(POLITE, "--variant", "polit")
    assert result.exit_code == 2
    assert "did you mean 'polite'?" in result.output


def test_lines_of_results_carry_the_variant(score: Score) -> None:
    score(POLITE, "--report", "out")
    lines = [json.loads(line) for line in Path("out/results.jsonl").read_text().splitlines()]
    assert {(line["variant"], line["verdict"]) for line in lines} == {
        ("baseline", "failed"),
        ("polite", "passed"),
    }


def test_the_same_score_comes_out_every_time_and_in_several_processes(score: Score) -> None:
    score(POLITE + SAME_AS_BASELINE, questions=3)
    first = Path("score.json").read_bytes()
    score(POLITE + SAME_AS_BASELINE, "-j", "2", questions=3)
    assert Path("score.json").read_bytes() == first


def test_json_alone_goes_to_standard_output(score: Score) -> None:
    result = score(POLITE, "--json", "-")
    assert json.loads(result.stdout)["format"] == "harness-score/1"
    assert "the baseline" in result.stderr


@pytest.mark.parametrize("place", ["nowhere/score.json", "."])
def test_where_the_score_cannot_be_written_nothing_runs(score: Score, place: str) -> None:
    refused = score(POLITE, "--json", place)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"error: {place} cannot be written: " in refused.stderr
    assert not Path("reports").exists()


TWO_MANIFESTS = """\
harness: 1
scenarios:
  - name: ask
    manifest: first.yaml
    env: {MODEL: gpt-4o}
    input: hi
    llm: {ask: [hello]}
  - {name: count, manifest: second.yaml}
"""
"""A scenario for each of two manifests."""


@pytest.mark.parametrize(
    ("options", "code", "names"),
    [
        ((), 0, ["baseline", "cold", "short"]),
        (("-k", "count"), 0, ["baseline", "short"]),
        (("-k", "count", "--variant", "cold"), 2, None),
        (("-k", "count", "--require", "cold"), 2, None),
    ],
)
def test_a_variant_for_scenarios_that_are_not_selected_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: Sequence[str],
    code: int,
    names: list[str] | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("first.yaml").write_text(ASKING)
    Path("second.yaml").write_text(COUNTER)
    Path("a.scenario.yaml").write_text(TWO_MANIFESTS)
    Path("v.yaml").write_text(
        "harness: 1\nvariants:\n"
        "  - {name: cold, params: {temperature: 0}, only: [first.yaml]}\n"
        "  - {name: short, params: {max_tokens: 9}}\n"
    )
    arguments = ["score", "a.scenario.yaml", "--variants", "v.yaml", "--json", "score.json", *options]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == code, result.output
    said = (
        "'cold' is not scored: its `only` matches no manifest of the 1 of 2 scenarios selected (-k 'count')"
    )
    assert (said in result.stderr) is bool(options)
    if names is not None:
        assert [each["name"] for each in written()["variants"]] == names


@pytest.mark.parametrize(
    ("variants", "said"),
    [
        ("  - {name: a, prompts: {anser: x}}\n", "did you mean 'answer'?"),
        ("  - {name: a, models: {gpt-4: x}}\n", "did you mean 'gpt-4o'?"),
        ("  - {name: a, edit: [{op: remove, path: /nothing}]}\n", "the patch cannot be applied"),
        ("  - {name: a, params: {top_p: 1}, only: [triag.yaml]}\n", "did you mean 'triage.yaml'?"),
        ("  - {nam: a}\n", "unknown key 'nam' in a variant"),
    ],
)
def test_a_faulty_variant_is_refused_before_anything_runs(score: Score, variants: str, said: str) -> None:
    result = score(variants)
    assert result.exit_code == 2
    assert said in result.output
    assert not Path("reports").exists()


def test_names_of_parameters_and_variables_that_nothing_uses_are_warnings(score: Score) -> None:
    result = score(
        "  - {name: cold, params: {temprature: 0, top_p: 1}, env: {TRIAGE_MODLE: x, OPENAI_API_KEY: y}}\n"
        "  - {name: small, env: {TRIAGE_MODEL: tiny}}\n"
        "matrix: {a: [cold], b: [small]}\n"
    )
    assert result.exit_code == 0
    said = [
        line for line in result.stderr.splitlines() if line.startswith(("variants.yaml:", "    did you mean"))
    ]
    assert said == [
        "variants.yaml:3:27: warning: no manifest that the scenarios run sets a parameter 'temprature', "
        "and no provider documents it [unknown-parameter]",
        "    did you mean 'temperature'?",
        "variants.yaml:3:59: warning: no manifest that the scenarios run uses the variable 'TRIAGE_MODLE' "
        "[unknown-variable]",
        "    did you mean 'TRIAGE_MODEL'?",
    ]


def test_a_parameter_that_a_manifest_sets_is_no_unknown_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("agent.yaml").write_text(
        "{component_type: Agent, agentspec_version: 25.4.1, name: a, system_prompt: Talk., llm_config: "
        "{component_type: OpenAiConfig, name: m, model_id: x, default_generation_parameters: {lucky: 7}}}"
    )
    Path("a.scenario.yaml").write_text(
        "harness: 1\nmanifest: agent.yaml\nscenarios: [{name: talk, input: hi, llm: [hello]}]"
    )
    Path("v.yaml").write_text("harness: 1\nvariants: [{name: v, params: {lucky: 8, unlucky: 13}}]")
    result = CliRunner().invoke(cli, ["score", "a.scenario.yaml", "--variants", "v.yaml"])
    assert result.exit_code == 0, result.output
    assert "parameter 'lucky'" not in result.stderr
    assert "sets a parameter 'unlucky'" in result.stderr


def test_a_scenario_file_that_cannot_be_read_is_the_error_and_not_the_variants(score: Score) -> None:
    result = score(POLITE, expected="[")
    assert result.exit_code == 2
    assert "a.scenario.yaml:" in result.output
    assert "no manifest that the scenarios run" not in result.output


def test_a_run_that_cannot_be_judged_is_told(score: Score) -> None:
    patch = "{op: replace, path: /agents/triage/graph/entry_point, value: nowhere}"
    result = score(f"  - {{name: lost, edit: [{patch}]}}\n")
    assert result.exit_code == 3
    assert "some runs could not be judged: see the results\nerror: " in result.output
    assert "'nowhere'" in result.output
    assert " as lost\n" in result.output
    again = "harness score --variants variants.yaml --variant lost 'a.scenario.yaml::ask[q0]'  # seed 0"
    assert f"    rerun  {again}\n" in result.output
    assert of("lost")["not_judged"] == of("lost")["runs"]
    assert of("lost")["fitness"] == 0
    assert of("lost")["difference"]["verdict"] == "no evidence"
    assert of("baseline")["not_judged"] == 0


def test_the_repeats_that_a_trace_may_be_of_are_named_once_for_all_variants(score: Score) -> None:
    score(POLITE, "--repeat", "2", questions=1)
    refused = CliRunner().invoke(cli, ["trace", "a.scenario.yaml::ask[q0]", "reports/score", "--repeat", "7"])
    assert refused.stderr.endswith("has no repeat 7 [unknown-scenario]\n    repeats: 0, 1\n")


def test_a_trace_is_that_of_a_variant(score: Score) -> None:
    score(POLITE)
    told = CliRunner().invoke(cli, ["trace", "a.scenario.yaml::ask[q0]", "reports/score"])
    assert "as variant baseline; others with --variant: polite" in told.stdout
    told = CliRunner().invoke(
        cli, ["trace", "a.scenario.yaml::ask[q0]", "reports/score", "--variant", "polite"]
    )
    assert "Say PLEASE." in told.stdout


def test_a_name_that_only_a_variant_lacks_is_said_with_that_variant(score: Score) -> None:
    """No file has the error before that variant runs."""
    Path("b.scenario.yaml").write_text(
        f"harness: 1\nmanifest: {TUTORIAL / 'agents/triage.yaml'}\nenv: {{TRIAGE_MODEL: gpt-4o}}\nscenarios:\n"
        "  - {name: b, input: q, llm: {classify: ['{\"intent\": 1}'], answer: [a]}, expect: {never: [open_ticket]}}\n"
    )
    way_out = "{op: replace, path: /agents/triage/graph/edges/0/branches/0/target, value: answer}"
    gone = "{op: remove, path: /agents/triage/graph/nodes/2}"
    result = score(f"  - {{name: direct, edit: [{way_out}, {gone}]}}\n", "b.scenario.yaml", questions=1)
    assert result.exit_code == 2
    assert "b.scenario.yaml:5:91: never names 'open_ticket', but 'triage' has no such node" in result.output
    assert "    as 'direct'\nnothing is scored\nresults: " in result.output


APP = """\
from langchain_openai import ChatOpenAI


def agent(question: str) -> str:
    return ChatOpenAI(model="gpt-4o", api_key="none").invoke(question).text
"""


def test_a_misspelt_model_of_an_app_is_told_after_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text(APP)
    Path("a.scenario.yaml").write_text(
        "harness: 1\nmanifest: app.py:agent\nscenarios: [{name: ask, input: When?, llm: [Nine.]}]"
    )
    Path("variants.yaml").write_text(
        "harness: 1\nvariants:\n"
        "  - {name: right, models: {gpt-4o: gpt-4o-mini}}\n"
        "  - {name: wrong, models: {gpt-4p: gpt-4o-mini}}\n"
    )
    told = CliRunner().invoke(cli, ["score", "a.scenario.yaml", "--variants", "variants.yaml"])
    assert told.exit_code == 0
    warning = "no run of 'baseline' called a model 'gpt-4p', so 'wrong' does not replace it [unknown-model]"
    assert f"variants.yaml:4:28: warning: {warning}" in told.stderr
    assert "did you mean 'gpt-4o'?" in told.stderr
    assert told.stderr.count("unknown-model") == 1
