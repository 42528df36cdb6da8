"""`harness score` with new model calls: the estimate, the budget, and resuming. Source: docs/variants.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli.main import cli
from harness.serve import Serving
from tests.recording.project import Project

NAMES = ("bergen", "oslo", "rome", "turin")
SCENARIOS = (
    "harness: 1\nmanifest: weather.yaml\ndefaults: {tools: {forecast: real}, timeout: 600}\nscenarios:\n"
    + "".join(
        f"  - {{name: {name}, input: '{name}?', cassette: {name}, expect: {{output: {{$contains: rain}}}}}}\n"
        for name in NAMES
    )
)
VARIANTS = """\
harness: 1
variants:
  - {name: curt, prompts: {manner: One word.}}
  - {name: kind, prompts: {manner: Be kind.}}
"""
SERVED = """
llm:
  - {reply: It will rain., usage: {input_tokens: 1000, output_tokens: 100}, times: any}
"""
PRICES = "[tool.harness.prices]\n'gpt-4o-mini' = {input = 10, output = 100}\n"
"""Prices with which a call costs 0.02 USD."""

Score = Callable[..., Result]


@pytest.fixture
def server(project: Project, request: pytest.FixtureRequest) -> Iterator[Serving]:
    with project.serving(getattr(request, "param", SERVED)) as server:
        yield server


@pytest.fixture
def score(project: Project, monkeypatch: pytest.MonkeyPatch, server: Serving) -> Score:
    """A function that scores two variants and the baseline over four scenarios of one call each."""
    project.write("cities.scenario.yaml", SCENARIOS)
    project.write("variants.yaml", VARIANTS)
    project.write("pyproject.toml", PRICES)
    for name, value in project.environment.items():
        monkeypatch.setenv(name, value)

    def run(
        *options: str,
        paths: tuple[str, ...] = ("cities.scenario.yaml",),
        typed: str = "",
        yes: tuple[str, ...] = ("--yes",),
    ) -> Result:
        # One after the other, as the answers of the server come in an order.
        arguments = [
            "score",
            *paths,
            "--variants",
            "variants.yaml",
            "--report",
            "out",
            "-j",
            "1",
            *options,
            *yes,
        ]
        return CliRunner().invoke(cli, arguments, input=typed)

    return run


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("out/results.jsonl").read_text().splitlines()]


def test_unknown_costs_are_named_and_not_guessed(score: Score) -> None:
    result = score("--record-mode", "once")
    assert "models will be asked anew: 12 runs, unknown: nothing recorded yet" in result.output
    assert "  curt      4 runs, unknown: nothing recorded yet" in result.output


def test_there_is_no_estimate_without_new_calls(score: Score) -> None:
    assert "asked anew:" in score("--record-mode", "once").output
    for options in (("--record-mode", "once"), ("--record-mode", "none")):
        result = score(*options)
        assert result.exit_code == 0
        assert "will be asked anew" not in result.output


def test_the_estimate_is_that_of_the_recordings_of_another_variant(score: Score) -> None:
    score("--record-mode", "once", "--variant", "kind")
    result = score("--record-mode", "once")
    assert "models will be asked anew: 4 runs, about 4 calls, 4,400 tokens, 0.08 USD" in result.output
    assert "asked anew: 4 calls, 4,400 tokens, 0.08 USD" in result.output
    assert "  baseline" not in result.output.partition("recorded:")[0]


def test_a_partly_known_estimate_is_a_lower_bound(score: Score) -> None:
    score("--record-mode", "once", paths=("cities.scenario.yaml::rome",))
    result = score("--record-mode", "rewrite")
    assert (
        "12 runs, at least 3 calls, 3,300 tokens, 0.06 USD, 9 of them unknown: nothing recorded yet"
        in result.output
    )


def test_a_model_without_a_price_is_named(score: Score, project: Project) -> None:
    project.write(
        "variants.yaml", "harness: 1\nvariants: [{name: odd, models: {gpt-4o-mini: our-own-model}}]"
    )
    score("--record-mode", "once", "--variant", "baseline")
    result = score("--record-mode", "once")
    assert "4 runs, about 4 calls, 4,400 tokens, cost unknown" in result.output
    assert "no price is known of our-own-model: set it in [tool.harness.prices]" in result.output


@pytest.mark.parametrize(
    "server", ["llm: [{reply: It will rain., times: 4}, {reply: It will not., times: 4}]"], indirect=True
)
def test_a_variant_that_changes_nothing_has_no_verdict(score: Score, project: Project) -> None:
    project.write("variants.yaml", "harness: 1\nvariants: [{name: same, models: {gpt-4o-mini: gpt-4o-mini}}]")
    result = score("--record-mode", "once", "--json", "score.json")
    sets = "the scenarios already run with the values that it sets"
    assert f"  'same' is the same as the baseline: {sets}" in result.output.partition("recorded:")[0]
    same = json.loads(Path("score.json").read_text())["variants"][1]
    assert (same["difference"]["fitness"], same["difference"]["verdict"]) == (-1, None)
    assert same["note"] == f"differs for other reasons: {sets}"


@pytest.mark.parametrize(("answer", "runs"), [("n\n", False), ("", False), ("y\n", True)])
def test_at_a_terminal_it_asks_before_the_first_call(
    score: Score, monkeypatch: pytest.MonkeyPatch, answer: str, runs: bool
) -> None:
    monkeypatch.setattr("harness.cli.options.is_at_terminal", lambda: True)
    result = score("--record-mode", "once", typed=answer, yes=())
    assert "go on? [y/N]" in result.output
    assert result.exit_code == (0 if runs else 3)
    assert Path("out/results.jsonl").exists() is runs


def test_yes_continues_without_a_question(score: Score, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.cli.options.is_at_terminal", lambda: True)
    result = score("--record-mode", "once")
    assert result.exit_code == 0
    assert "go on?" not in result.output


def test_without_a_terminal_and_yes_nothing_is_asked(score: Score, server: Serving) -> None:
    result = score("--record-mode", "once", yes=())
    assert result.exit_code == 2
    assert "error: models would be called" in result.output
    assert "--yes goes on without a question" in result.output
    assert server.requests == []
    assert not Path("out/results.jsonl").exists()


def test_on_a_ci_machine_models_are_called_with_yes_only(
    score: Score, server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    assert score("--record-mode", "rewrite", yes=()).exit_code == 2
    assert server.requests == []
    assert score("--record-mode", "rewrite").exit_code == 0


def test_a_scoring_that_calls_no_models_needs_no_consent(score: Score, server: Serving) -> None:
    score("--record-mode", "once")
    calls = len(server.requests)
    for mode in ("once", "none"):
        assert score("--record-mode", mode, yes=()).exit_code == 0
    assert len(server.requests) == calls


def test_a_refusal_discards_no_interrupted_scoring(score: Score) -> None:
    score("--record-mode", "once", "--budget", "5")
    assert score("--record-mode", "once", "--fresh", yes=()).exit_code == 2
    assert "taken over" in score("--record-mode", "once").output


@pytest.mark.parametrize("budget", ["7", "0.14USD"])
def test_no_call_exceeds_the_budget_and_the_next_scoring_continues(score: Score, budget: str) -> None:
    score("--record-mode", "once")
    first = score("--record-mode", "rewrite", "--budget", budget)
    assert first.exit_code == 3
    assert "asked anew: 7 calls, 7,700 tokens, 0.14 USD" in first.output
    assert "  curt: 2 of 4 runs not made" in first.output
    assert json.loads(Path("out/score.json").read_text())["variants"][1]["difference"]["scenarios"] == 2
    second = score("--record-mode", "rewrite", "--budget", budget)
    assert second.exit_code == 0
    assert "7 runs taken over" in second.output
    assert "asked anew: 5 calls" in second.output
    assert [(line["variant"], line["scenario"]) for line in lines()] == [
        (variant, name) for variant in ("baseline", "curt", "kind") for name in NAMES
    ]


def test_a_run_that_the_budget_breaks_off_is_as_if_it_had_not_begun(score: Score, project: Project) -> None:
    project.replace(
        "cities.scenario.yaml",
        "{output: {$contains: rain}}",
        "{judge: [{rubric: Is it dry?, model: gpt-4o-mini}]}",
    )
    result = score("--record-mode", "once", "--budget", "5")
    assert result.exit_code == 3
    assert "12 runs, unknown: nothing recorded yet" in result.output
    assert "asked anew: 5 calls" in result.output
    assert len(lines()) == 2
    assert not [line for line in lines() if line["verdict"] == "error"]


def test_a_budget_for_which_nothing_can_be_asked_runs_nothing(score: Score, project: Project) -> None:
    project.replace("pyproject.toml", "gpt-4o-mini", "another")
    project.replace("weather.yaml", "gpt-4o-mini", "our-own-model")
    result = score("--record-mode", "once", "--budget", "5USD")
    assert result.exit_code == 3
    assert "baseline: 4 of 4 runs not made" in result.output


def test_a_budget_that_is_none_is_refused(score: Score) -> None:
    result = score("--budget", "5EUR")
    assert result.exit_code == 2
    assert "write 200 for model calls" in result.output


# ------------------------------------------------------------ --last-failed

NO_KEY_FOR_ROME = """
llm:
  - {when: 'request.prompt == "rome?"', error: auth, times: 3}
  - {reply: It will rain., usage: {input_tokens: 1000, output_tokens: 100}, times: any}
"""
REWRITE = ("--record-mode", "rewrite")


@pytest.mark.parametrize("server", [NO_KEY_FOR_ROME], indirect=True)
def test_runs_that_an_error_ended_are_repeated_and_the_others_are_not_paid_again(
    score: Score, server: Serving
) -> None:
    score(*REWRITE)
    assert [line["scenario"] for line in lines() if line["error"]] == ["rome"] * 3
    calls = len(server.requests)
    result = score(*REWRITE, "--last-failed")
    assert result.exit_code == 0, result.output
    assert "9 runs taken over from the last scoring\n" in result.output
    assert "models will be asked anew: 3 runs" in result.output
    assert len(server.requests) == calls + 3
    assert [line["verdict"] for line in lines()] == ["passed"] * 12
    again = score(*REWRITE, "--last-failed", yes=())
    assert "nothing to repeat: no run of the last scoring was ended by an error" in again.output
    assert len(server.requests) == calls + 3
    assert len(lines()) == 12


def test_a_failed_check_is_no_reason_to_ask_again(score: Score, server: Serving, project: Project) -> None:
    project.replace("cities.scenario.yaml", "$contains: rain", "$contains: sun")
    score(*REWRITE)
    calls, before = len(server.requests), lines()
    assert {line["verdict"] for line in before} == {"failed"}
    assert score(*REWRITE, "--last-failed", yes=()).exit_code == 0
    assert (len(server.requests), lines()) == (calls, before)


def test_what_has_changed_since_is_repeated_as_well(score: Score, server: Serving, project: Project) -> None:
    score(*REWRITE)
    calls = len(server.requests)
    project.replace("variants.yaml", "One word.", "Two words.")
    assert "8 runs taken over from the last scoring" in score(*REWRITE, "--last-failed").output
    assert len(server.requests) == calls + 4


@pytest.mark.parametrize("server", [NO_KEY_FOR_ROME], indirect=True)
def test_a_refusal_leaves_the_last_scoring_as_it_is(score: Score) -> None:
    score(*REWRITE)
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    refused = score(*REWRITE, "--last-failed", yes=())
    assert (refused.exit_code, "--yes goes on" in refused.output) == (2, True)
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before


def test_without_a_last_scoring_there_is_nothing_to_repeat(
    score: Score, server: Serving, project: Project
) -> None:
    result = score(*REWRITE, "--last-failed")
    assert result.exit_code == 2
    assert "error: --last-failed: there is no last scoring in out" in result.output
    score(*REWRITE)
    project.replace("weather.yaml", "gpt-4o-mini", "gpt-4o")
    calls = len(server.requests)
    result = score(*REWRITE, "--last-failed")
    assert result.exit_code == 2
    assert "files or options have changed since the last scoring in out" in result.output
    assert len(server.requests) == calls


def test_a_fresh_scoring_repeats_nothing(score: Score) -> None:
    result = score(*REWRITE, "--last-failed", "--fresh")
    assert result.exit_code == 2
    assert "--fresh and --last-failed are mutually exclusive" in result.output
