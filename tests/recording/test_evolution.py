"""A search whose genomes and mutator are recorded repeats from the recordings, without keys.

Source: docs/evolution.md.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from tests.recording.project import KEY, Project

MESH = """\
name: helper
entry_points: [{name: ask, target: helper}]
agents:
  helper: {agent_type: llm, prompt: Answer briefly., yields: {reply: string}}
evolution:
  enabled: false
  population_size: 2
  generations: 2
  mutation_types: [prompt_variation]
  test_scenarios:
    - {name: when, entry_point: ask, input: "When?", expected_outcome: {reply: Hello}}
    - {name: where, entry_point: ask, input: "Where?", expected_outcome: {reply: Hello}, weight: 2.0}
    - {name: who, entry_point: ask, input: "Who?", expected_outcome: {reply: Hello}}
"""
SERVED = """
llm:
  - {when: 'request.messages[0].content.contains("You improve a prompt")', reply: Use the WAND., times: any}
  - {when: 'request.messages[0].content.contains("WAND")', json: {reply: Hello}, times: any}
  - {json: {reply: Nine}, times: any}
"""


def test_the_test_scenarios_of_a_mesh_are_searched_with_recorded_and_replayed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("mesh.yaml", MESH)
    project.write("c.yaml", "mutator: gpt-4o-mini\n")
    command = ["evolve", "mesh.yaml", "--config", "c.yaml", "--out"]
    with project.serving(SERVED) as server, monkeypatch.context() as patch:
        for name, value in project.environment.items():
            patch.setenv(name, value)
        recording = [*command, "first", "--record-mode", "once"]
        refused = CliRunner().invoke(cli, recording)
        assert (refused.exit_code, server.requests) == (2, [])
        assert "models may be called: at most 12 runs of 3 scenarios with 4 genomes" in refused.output
        assert "--yes goes on without a question" in refused.output
        assert not Path("first").exists()
        recorded = CliRunner().invoke(cli, [*recording, "--yes"])
    assert recorded.exit_code == 0, recorded.output
    assert "mesh.yaml:6:12: warning: enabled: false changes nothing here" in recorded.output
    document = json.loads(project.read("first/evolution.json"))
    assert (document["config"]["population_size"], document["winner"]) == (2, "g1")
    assert any(name.startswith("evolution/mesh/") for name in project.recorded_files())
    replayed = CliRunner().invoke(cli, [*command, "second"])
    assert replayed.exit_code == 0, replayed.output
    for name in ("genomes.jsonl", "mutations.jsonl", "evolution.json", "winner.yaml", "winner.patch"):
        assert project.read(f"first/{name}") == project.read(f"second/{name}")
        assert KEY not in project.read(f"first/{name}")
    assert not any(KEY.encode() in data for data in project.recorded_files().values())
