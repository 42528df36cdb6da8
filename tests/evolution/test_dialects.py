"""`harness evolve` in every dialect: the winner works both as a variants file and as a patch of the manifest."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from tests.manifests import HELPER


class Agent(NamedTuple):
    """An agent with one model call: its files, manifest first, the calling node, its prompt and expected output."""

    files: dict[str, str]
    node: str
    prompt: str
    output: str = "$contains: Hello"


AGENTS = {
    "sherma": Agent(
        {
            "agent.yaml": """\
manifest_version: 1
prompts:
  - id: answer   # kept
    version: "1.0.0"
    instructions: |
      Answer briefly.

      Do not say: "no".
"""
            + HELPER
        },
        "answer",
        "answer",
    ),
    "agentspec": Agent(
        {
            "agent.yaml": """\
component_type: Agent
agentspec_version: 25.4.1
id: helper
name: helper
llm_config:
  component_type: OpenAiConfig
  id: fast
  name: fast
  model_id: gpt-4o-mini
  default_generation_parameters: {temperature: 0.5}
system_prompt: 'Answer: briefly, isn''t it'
outputs: []
"""
        },
        "helper",
        "helper.system_prompt",
    ),
    "yagra": Agent(
        {
            "agent.yaml": """\
version: "1.0"
start_at: answer
end_at: [answer]
state_schema: {reply: {type: str}}
nodes:
  - id: answer
    handler: llm
    params:
      prompt_ref: prompts.yaml#answer
      model: {provider: openai, name: gpt-4o-mini, kwargs: {temperature: 0.5}}
      output_key: reply
edges: []
""",
            "prompts.yaml": 'answer: {system: "Answer briefly.", user: "Question: {q}"}\n',
        },
        "answer",
        "prompts.yaml#answer.system",
        "reply: {$contains: Hello}",
    ),
    "loki": Agent(
        {
            "graph.yaml": """\
name: helper
description: Answers.
version: "1.0"
model: openai:gpt-4o-mini
start: answer
nodes:
  answer:
    id: answer
    type: llm
    instructions: Answer briefly.
    prompt: "Question: {{initial_prompt}}"
    state_updates: {reply: "{{output}}"}
    next: done
  done: {id: done, type: end, output: "{{reply}}"}
"""
        },
        "answer",
        "answer.instructions",
    ),
    "leafmesh": Agent(
        {
            "mesh.yaml": """\
name: helper
entry_points: [{name: ask, target: helper}]
agents:
  helper:
    agent_type: llm
    prompt: "Answer briefly."
    yields: {reply: string}
evolution:
  population_size: 3
  generations: 2
"""
        },
        "helper",
        "helper.prompt",
        "reply: {$contains: Hello}",
    ),
}
SCENARIOS = """\
harness: 1
manifest: {manifest}
{entry}
defaults:
  allow_unused: true
  llm:
    {node}:
      - {{when: '{when}', {hello}}}
      - {{when: 'true', {nine}}}
    mutator: [{{reply: "{rewritten}", times: any}}]
scenarios:
  - name: ask
    cases: [{cases}]
    input: {input}
    expect: {{output: {{{output}}}}}
"""


def reply(dialect: str, text: str) -> str:
    return f"json: {{reply: {text}}}" if dialect == "leafmesh" else f"reply: {text}"


WAND = 'request.messages.exists(m, m.content.contains("WAND"))'


def project(dialect: str, when: str = WAND, rewritten: str = "Use the WAND: # now") -> Agent:
    agent = AGENTS[dialect]
    Path("pyproject.toml").touch()
    for name, text in agent.files.items():
        Path(name).write_text(text)
    given = {"yagra": '{q: "${case.q}"}', "agentspec": '{message: "${case.q}"}'}.get(dialect, '"${case.q}"')
    Path("a.scenario.yaml").write_text(
        SCENARIOS.format(
            manifest=next(iter(agent.files)),
            entry="entry_point: ask" if dialect == "leafmesh" else "",
            node=agent.node,
            when=when,
            hello=reply(dialect, "Hello."),
            nine=reply(dialect, "Nine."),
            rewritten=rewritten,
            cases=", ".join(f"{{q: q{number}}}" for number in range(9)),
            input=given,
            output=agent.output,
        )
    )
    return agent


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli, arguments)


@pytest.mark.parametrize("dialect", AGENTS)
@pytest.mark.parametrize("rewritten", ["Use the WAND: # now", "First.\\n\\n  Then: the WAND.\\n"])
def test_the_winner_passes_as_a_variant_and_as_a_patch(
    dialect: str, rewritten: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent = project(dialect, rewritten=rewritten)
    manifest = next(iter(agent.files))
    small = [] if dialect == "leafmesh" else ["--population", "3", "--generations", "2"]
    Path("c.yaml").write_text("mutation_types: [prompt_variation]\n")
    result = run("evolve", manifest, "a.scenario.yaml", "--config", "c.yaml", "--out", "out", *small)
    assert result.exit_code == 0, result.output
    document = json.loads(Path("out/evolution.json").read_text())
    assert document["config"]["population_size"] == 3
    assert document["winner"], result.output
    assert run("run", "a.scenario.yaml").exit_code == 1
    scored = run("score", "a.scenario.yaml", "--variants", "out/winner.yaml", "--require", "evolved")
    assert scored.exit_code == 0, scored.output
    subprocess.run(["git", "apply", "--check", "out/winner.patch"], check=True)
    subprocess.run(["patch", "-s", "-p1", "-i", "out/winner.patch"], check=True)
    assert run("run", "a.scenario.yaml").exit_code == 0
    text = json.loads(run("prompts", manifest, "--json").output)
    genome = json.loads(Path("out/genomes.jsonl").read_text().splitlines()[int(document["winner"][1:])])
    assert {each["id"]: each["text"] for each in text}.items() >= genome["prompts"].items()
    assert all("# kept" in Path(name).read_text() for name, text in agent.files.items() if "# kept" in text)


@pytest.mark.parametrize("dialect", ["agentspec", "yagra", "loki", "leafmesh"])
def test_a_temperature_is_found_and_written_into_the_manifest(
    dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cooler = "double(request.params.temperature) != 0.5" if dialect in ("agentspec", "yagra") else ""
    agent = project(
        dialect, when=cooler or "has(request.params.temperature) && double(request.params.temperature) > 0.2"
    )
    Path("c.yaml").write_text(
        "mutation_types: [temperature_adjustment]\npopulation_size: 6\ngenerations: 4\n"
    )
    result = run("evolve", next(iter(agent.files)), "a.scenario.yaml", "--config", "c.yaml", "--out", "out")
    assert result.exit_code == 0, result.output
    assert "temperature of " in result.output
    subprocess.run(["patch", "-s", "-p1", "-i", "out/winner.patch"], check=True)
    assert run("run", "a.scenario.yaml").exit_code == 0
    assert "temperature" in Path(next(iter(agent.files))).read_text()


TOOLS = {
    "agentspec": (
        "outputs: []\n",
        "outputs: []\ntools:\n"
        "- {component_type: ServerTool, name: look, id: look, inputs: [], outputs: []}\n"
        "# the other\n"
        "- component_type: ServerTool\n  name: ask\n  id: ask\n  inputs: []\n  outputs: []\n",
    ),
    "leafmesh": ("    yields:", "    tools: [look, ask]   # both\n    yields:"),
}


@pytest.mark.parametrize("dialect", TOOLS)
def test_a_list_of_tools_is_found_and_written_into_the_manifest(
    dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent = project(dialect, when="size(request.tools) == 1")
    manifest = next(iter(agent.files))
    Path(manifest).write_text(agent.files[manifest].replace(*TOOLS[dialect]))
    Path("c.yaml").write_text("mutation_types: [tool_selection]\npopulation_size: 4\ngenerations: 2\n")
    result = run("evolve", manifest, "a.scenario.yaml", "--config", "c.yaml", "--out", "out")
    assert result.exit_code == 0, result.output
    assert "tools of helper: look, ask →" in result.output, result.output
    subprocess.run(["patch", "-s", "-p1", "-i", "out/winner.patch"], check=True)
    assert run("run", "a.scenario.yaml").exit_code == 0
