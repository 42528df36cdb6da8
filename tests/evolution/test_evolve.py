"""`harness evolve`: the search for better prompts, and its confirmation on held-out scenarios.

Source: docs/evolution.md.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli.evolve import ScenarioRuns
from harness.cli.main import cli
from harness.variants.document import read_variants
from tests.forked import Process
from tests.manifests import HELPER

MANIFEST = (
    """\
manifest_version: 1
prompts:
  - {id: answer, version: "1.0.0", instructions: "Answer the question about {{topic}}. Be brief."}
  - {id: unused, version: "1.0.0", instructions: "Never hurry. Begin with a greeting."}
"""
    + HELPER
)
SCENARIOS = """\
harness: 1
manifest: helper.yaml
defaults:
  llm:
    answer:
      - {{when: 'request.messages[0].content.contains("{word}")', reply: "Hello. {reply}"}}
      - {{reply: Nine.}}
    {mutator}
  allow_unused: true
scenarios:
  - name: ask
    cases: [{cases}]
    input: "${{case.q}}"
    expect: {{output: {{$contains: Hello}}}}
"""
SECOND_TIME_LUCKY = (
    "mutator: ['Answer the question about {{{{topic}}}}. Greet.', "
    "{reply: 'Answer the question about {{{{topic}}}} with a WAND.', times: any}]"
)
FILES = ("genomes.jsonl", "evolution.json", "mutations.jsonl", "winner.yaml")

Evolve = Callable[..., Result]


def project(word: str = "WAND", mutator: str = "", questions: int = 20, reply: str = "Nine.") -> None:
    """Write an agent that greets if its prompt contains `word`, and its scenarios."""
    cases = ", ".join(f"{{q: q{number}}}" for number in range(questions))
    Path("helper.yaml").write_text(MANIFEST)
    text = SCENARIOS.format(
        word=word, reply=reply, mutator=mutator.replace("{{{{", "{{").replace("}}}}", "}}"), cases=cases
    )
    Path("a.scenario.yaml").write_text(text)


@pytest.fixture
def evolve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evolve:
    """Return a function that runs the command in a new project."""
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").touch()

    def run(*options: str, paths: tuple[str, ...] = ("a.scenario.yaml",)) -> Result:
        small = [] if "--population" in options else ["--population", "4", "--generations", "4"]
        return CliRunner().invoke(cli, ["evolve", "helper.yaml", *paths, "--out", "out", *small, *options])

    return run


def evolution(folder: str = "out") -> dict[str, Any]:
    read: dict[str, Any] = json.loads(Path(folder, "evolution.json").read_text())
    return read


def genomes(folder: str = "out") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(folder, "genomes.jsonl").read_text().splitlines()]


def bytes_of(folder: str) -> list[bytes | None]:
    return [path.read_bytes() if (path := Path(folder, name)).exists() else None for name in FILES]


def test_the_mutator_finds_a_better_prompt_and_it_is_confirmed(evolve: Evolve) -> None:
    project(mutator=SECOND_TIME_LUCKY)
    result = evolve()
    assert result.exit_code == 0, result.output
    document = evolution()
    best = genomes()[int(document["winner"][1:])]
    assert best["prompts"] == {"answer": "Answer the question about {{topic}} with a WAND."}
    assert (genomes()[0]["fitness"], best["fitness"]) == (0.0, 1.0)
    assert (len(document["training"]), len(document["holdout"])) == (14, 6)
    assert document["confirmation"]["verdict"] == "better"
    assert document["stopped"] == "best possible"
    assert "+Answer the question about {{topic}} with a WAND." in result.output
    assert "verdict: better" in result.output
    (_, winner) = read_variants(Path("out/winner.yaml"))
    assert {id_: prompt.text for id_, prompt in winner.prompts.items()} == best["prompts"]


def test_the_mutator_is_shown_the_prompt_and_the_failures(evolve: Evolve) -> None:
    project(
        questions=6,
        mutator='mutator: [{when: \'request.prompt.contains("Be brief") && request.prompt.contains("was \'\'Nine") '
        '&& request.prompt.contains("topic")\', reply: "Answer {{topic}} with a WAND.", times: any}, '
        "{reply: No., times: any}]",
    )
    assert evolve().exit_code == 0
    assert "answer" in genomes()[int(evolution()["winner"][1:])]["prompts"]


def test_a_rewrite_that_loses_a_placeholder_is_refused_and_counted(evolve: Evolve) -> None:
    project(mutator="mutator: [{reply: A WAND., times: any}]")
    result = evolve("--population", "2", "--generations", "1", "--seed", "1")
    assert all("topic" in each["prompts"].get("answer", "topic") for each in genomes())
    refused = [json.loads(line) for line in Path("out/mutations.jsonl").read_text().splitlines()]
    assert {each["refused"] for each in refused if each["prompt"] == "answer"} == {"it lost {{topic}}"}
    assert evolution()["mutator"]["refused"] == 1
    assert "1 answer refused\n  1 ×: it lost {{topic}}\n" in result.output


def test_without_a_mutator_sentences_of_prompts_are_recombined(evolve: Evolve) -> None:
    project(word="greeting")
    result = evolve("--population", "6", "--generations", "6")
    assert "recombined from their sentences" in result.output
    winner = genomes()[int(evolution()["winner"][1:])]
    assert "Begin with a greeting." in winner["prompts"]["answer"]
    assert evolution()["confirmation"]["verdict"] == "better"


def test_the_same_search_writes_identical_files(evolve: Evolve) -> None:
    project(word="hurry greeting", questions=6)
    small = ("--population", "3", "--generations", "2")
    evolve(*small)
    evolve("--out", "again", *small)
    assert bytes_of("out") == bytes_of("again")
    evolve("--out", "other", "--seed", "1", *small)
    assert bytes_of("out")[0] != bytes_of("other")[0]


def test_a_killed_search_continues_to_the_same_result(evolve: Evolve) -> None:
    project(mutator=SECOND_TIME_LUCKY)
    small = ["--population", "4", "--generations", "4"]
    command = ["harness", "evolve", "helper.yaml", "a.scenario.yaml", *small, "--out", "killed"]
    unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with Process(command, stdout=subprocess.PIPE, env=unbuffered) as running:
        assert running.stdout is not None
        next(line for line in running.stdout if line.startswith("generation 1/"))
        running.kill()
    log = Path("killed/genomes.jsonl")
    log.write_bytes(log.read_bytes() + b'{"id": "g9", "gen')
    evolve()
    result = evolve("--out", "killed")
    assert "continuing an earlier search" in result.output
    assert bytes_of("out") == bytes_of("killed")


def test_continuing_with_other_arguments_or_another_manifest_is_refused(evolve: Evolve) -> None:
    project(mutator=SECOND_TIME_LUCKY, questions=6)
    evolve()
    other = evolve("--seed", "7")
    assert other.exit_code == 2
    assert "seed was 0, and is 7" in other.output
    assert "--fresh" in other.output
    Path("helper.yaml").write_text(MANIFEST.replace("brief", "short"))
    changed = evolve()
    assert changed.exit_code == 2
    assert "helper.yaml changed" in changed.output
    assert evolve("--fresh").exit_code == 0


def test_a_gain_on_training_scenarios_only_is_not_called_better(evolve: Evolve) -> None:
    project(mutator=SECOND_TIME_LUCKY)
    evolve()
    held = [id_.partition("[")[2].rstrip("]") for id_ in evolution()["holdout"]]
    text = Path("a.scenario.yaml").read_text()
    for name in held:  # the word improves none of these
        text = text.replace(f"{{q: {name}}}", f"{{q: {name}, name: {name}}}")
    only_training = (
        'request.messages[0].content.contains("WAND") && !(request.prompt in ' + json.dumps(held) + ")"
    )
    Path("a.scenario.yaml").write_text(
        text.replace('request.messages[0].content.contains("WAND")', only_training)
    )
    result = evolve("--fresh")
    assert evolution()["holdout"] == [f"a.scenario.yaml::ask[{name}]" for name in held]
    assert genomes()[int(evolution()["winner"][1:])]["fitness"] == 1.0
    assert evolution()["confirmation"]["verdict"] == "no evidence"
    assert "verdict: no evidence" in result.output


def test_a_search_stays_within_its_budget_of_calls(evolve: Evolve) -> None:
    project(mutator="mutator: [{reply: 'Say {{topic}}.', times: any}]")
    result = evolve("--budget", "60", "--population", "6", "--generations", "6")
    assert evolution()["stopped"] == "budget"
    assert 28 < evolution()["spent"]["calls"] <= 60
    assert "might exceed the budget" in result.output
    too_small = evolve("--budget", "3", "--fresh")
    assert "stopped: the budget of 3 calls is spent (1 genome scored)" in too_small.output


def test_too_few_scenarios_are_a_warning_before_the_search(evolve: Evolve) -> None:
    project(mutator=SECOND_TIME_LUCKY, questions=8)
    result = evolve()
    assert "2 of 8 scenarios are held out, and fewer than 6 never show" in result.output
    assert "it takes 19 scenarios with --holdout 0.3" in result.output


def test_stubs_that_read_neither_prompt_nor_model_are_refused(evolve: Evolve) -> None:
    project()
    text = Path("a.scenario.yaml").read_text()
    Path("a.scenario.yaml").write_text("".join(line for line in text.splitlines(True) if "when:" not in line))
    result = evolve()
    assert result.exit_code == 2
    assert "every answer comes from stubs that read neither prompt nor model" in result.output
    assert not Path("out").exists()


def test_stubs_of_the_mutator_are_ignored_by_an_ordinary_run(evolve: Evolve) -> None:
    project(mutator=SECOND_TIME_LUCKY)
    text = Path("a.scenario.yaml").read_text().replace("  allow_unused: true\n", "")
    text = text.replace("- {when:", "- {times: any, when:").replace(
        "{reply: Nine.}", "{reply: Nine., times: any}"
    )
    Path("a.scenario.yaml").write_text(text.replace("$contains: Hello", "$contains: Nine"))
    result = CliRunner().invoke(cli, ["run", "a.scenario.yaml"])
    assert result.exit_code == 0, result.output
    assert "mutator" not in result.output


def test_an_interrupted_search_keeps_its_results_and_can_be_continued(
    evolve: Evolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(mutator=SECOND_TIME_LUCKY, questions=6)
    evolve("--out", "whole")
    ran: list[object] = []
    real = ScenarioRuns.__call__

    def interrupted(self: ScenarioRuns, *arguments: Any) -> Any:
        ran.append(arguments)
        if len(ran) == 2:
            raise KeyboardInterrupt
        return real(self, *arguments)

    monkeypatch.setattr(ScenarioRuns, "__call__", interrupted)
    result = evolve()
    assert result.exit_code == 3
    assert "interrupted: the same command continues the search" in result.output
    assert (evolution()["stopped"], len(genomes())) == ("interrupted", 1)
    assert evolve().exit_code == 0
    assert bytes_of("out") == bytes_of("whole")


@pytest.mark.parametrize("written", ["", "elite_size: 1"])
def test_a_population_of_one_is_searched_genome_by_genome(written: str, evolve: Evolve) -> None:
    project(mutator=SECOND_TIME_LUCKY)
    Path("c.yaml").write_text(f"population_size: 1\n{written}\n")
    result = CliRunner().invoke(
        cli,
        [
            "evolve",
            "helper.yaml",
            "a.scenario.yaml",
            "--out",
            "out",
            "--config",
            "c.yaml",
            "--generations",
            "3",
        ],
    )
    assert result.exit_code == 0, result.output
    assert [each["generation"] for each in genomes()] == [0, 1, 2]
    assert (evolution()["winner"], evolution()["config"]["elite_size"]) == ("g2", 0)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("mutaton_rate: 0.5", "c.yaml:1:1", "did you mean 'mutation_rate'?"),
        ("mutation_rate: 7", "c.yaml:1:16", "found the number 7"),
        ("elite_size: 0", "c.yaml:1:13", "must be greater than or equal to 1"),
        ("elite_size: 4", "c.yaml:1:13", "elite_size must be smaller than population_size"),
        ("strategy: genetc", "c.yaml:1:11", "did you mean 'genetic'?"),
        ("fitness_function: speed", "c.yaml:1:19", "known: task_completion_rate, pass_rate"),
        ("selection_method: tournamnt", "c.yaml:1:19", "did you mean 'tournament'?"),
        ("mutation_types: [prompt]", "c.yaml:1:18", "expected one of prompt_variation"),
        ("test_scenarios: []", "c.yaml:1:1", "name scenario files after the manifest instead"),
        ("llm: {mutatr: [No.]}", "c.yaml:1:7", "did you mean 'mutator'?"),
        ("llm: {mutator: [{rply: No.}]}", "c.yaml:1:18", "did you mean 'reply'?"),
    ],
)
def test_an_invalid_configuration_is_an_error_with_its_place(
    text: str, place: str, message: str, evolve: Evolve
) -> None:
    project(mutator=SECOND_TIME_LUCKY)
    Path("c.yaml").write_text(f"{text}\n")
    result = evolve("--config", "c.yaml")
    assert result.exit_code == 2
    assert f"{place}: error: " in result.output
    assert message in result.output
    assert not Path("out").exists()


def test_scenarios_of_another_manifest_are_refused(evolve: Evolve) -> None:
    project()
    Path("other.yaml").write_text(MANIFEST)
    result = CliRunner().invoke(cli, ["evolve", "other.yaml", "a.scenario.yaml"])
    assert result.exit_code == 2
    assert "none of 20 scenarios runs other.yaml" in result.output
    assert "they run helper.yaml" in result.output
    alone = CliRunner().invoke(cli, ["evolve", "other.yaml"])
    assert alone.exit_code == 2
    assert "other.yaml has no scenarios of its own" in alone.output
    assert "name scenarios that run it: harness evolve other.yaml SCENARIOS" in alone.output


def test_there_is_nothing_to_vary_in_an_app_without_prompts(evolve: Evolve) -> None:
    Path("app.py").write_text("def run(state):\n    return {}\n")
    Path("langgraph.json").write_text('{"graphs": {"one": "./app.py:run"}}')
    for manifest in ("app.py:run", "langgraph.json"):
        Path("app.scenario.yaml").write_text(
            f"harness: 1\nmanifest: {manifest}\nscenarios: [{{name: x, input: {{}}}}]\n"
        )
        result = CliRunner().invoke(cli, ["evolve", manifest, "app.scenario.yaml"])
        assert result.exit_code == 2
        assert f"error: there is nothing to vary in {manifest} [nothing-to-vary]\n" in result.stderr


def test_a_path_that_is_not_a_manifest_is_an_error(evolve: Evolve) -> None:
    project()
    Path("empty").mkdir()
    for name, said in [
        (
            "empty",
            "error: empty: this is a folder, not a file [not-a-file]\n    MANIFEST is the file of an agent",
        ),
        ("a.scenario.yaml", "a.scenario.yaml is a scenario file, not a manifest"),
    ]:
        result = CliRunner().invoke(cli, ["evolve", name])
        assert result.exit_code == 2
        assert said in result.output


def test_a_folder_that_cannot_be_created_is_an_error_that_names_the_option(evolve: Evolve) -> None:
    project(mutator=SECOND_TIME_LUCKY)
    Path("file").touch()
    ended = evolve("--out", "file/below")
    assert ended.exit_code == 2
    assert "file is a file, not a folder [report-folder]" in ended.output
    assert "name a folder that can be written: --out DIR" in ended.output


def test_a_damaged_line_of_the_log_is_an_error_with_its_place(evolve: Evolve) -> None:
    project(mutator=SECOND_TIME_LUCKY, questions=6)
    evolve()
    log = Path("out/genomes.jsonl")
    count = len(genomes())
    log.write_text(log.read_text() + '{"id": "g9"}\n')
    result = evolve()
    assert result.exit_code == 2
    assert f"out/genomes.jsonl:{count + 1}:1: error: this line cannot be read" in result.output
    assert "--fresh" in result.output


def test_the_configuration_may_hold_the_model_and_stubs_of_the_mutator(evolve: Evolve) -> None:
    project(questions=6)
    stubs = "[{model: quill-2, reply: 'Answer the question about {{topic}} with a WAND.', times: any}]"
    Path("c.yaml").write_text(f"mutator: quill-2\nllm: {{mutator: {stubs}}}\nselection_method: roulette\n")
    assert evolve("--config", "c.yaml").exit_code == 0
    assert evolution()["winner"] is not None
    assert evolution()["config"]["mutator"] == "quill-2"


def test_a_mutator_without_an_answer_ends_the_search(evolve: Evolve) -> None:
    project(mutator="mutator: ['Answer {{{{topic}}}}.']", questions=6)
    result = evolve()
    assert result.exit_code == 3
    assert "gave no answer" in result.output
    assert "`times: any`" in result.output
    Path("c.yaml").write_text("mutator: quill-2\n")
    project(questions=6)
    unrecorded = evolve("--config", "c.yaml", "--fresh")
    assert unrecorded.exit_code == 3
    assert "--record-mode once asks the model" in unrecorded.output


def test_a_budget_in_dollars_needs_prices(evolve: Evolve) -> None:
    project(mutator=SECOND_TIME_LUCKY, questions=6)
    text = Path("a.scenario.yaml").read_text()
    used = "reply: Nine., usage: {input_tokens: 1000000, output_tokens: 0}"
    Path("a.scenario.yaml").write_text(text.replace("reply: Nine.", used))
    Path("helper.yaml").write_text(MANIFEST.replace("gpt-4o-mini", "quill-2"))
    unknown = evolve("--budget", "$1.50", "--holdout", "0")
    assert unknown.exit_code == 2
    assert "the price of quill-2 is not known" in unknown.output
    Path("pyproject.toml").write_text("[tool.harness.prices]\nquill-2 = {input = 0.1, output = 0}\n")
    limited = evolve("--budget", "$1.50", "--holdout", "0", "--fresh")
    assert limited.exit_code == 0, limited.output
    assert (evolution()["stopped"], evolution()["spent"]["cost"]) == ("budget", pytest.approx(1.2))
