"""What is replaced though it may be harmless is told with a warning that says how to have it shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.recording.safety import Done, Project

TOOLS = """\
import os


def tell(state, params):
    return {"told": "an important " + os.environ["PLANET"]}
"""
NODE = """\
version: "1.0"
start_at: tell
end_at: [tell]
nodes: [{id: tell, handler: tell}]
edges: []
"""
SCENARIO = """\
harness: 1
scenarios:
  - {name: tell, manifest: tell.yaml, handlers: {tell: tellers.tell}, input: {}, expect: {path: [tell]}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, {"PLANET": "little earth", "MY_TOKEN": "tok-q7Rt0Lm2xP"})
    for name, text in {"tellers.py": TOOLS, "tell.yaml": NODE, "tell.scenario.yaml": SCENARIO}.items():
        project.write(name, text)
    return project


def run(project: Project) -> tuple[Done, dict[str, object]]:
    done = project.harness("run", "tell.scenario.yaml", "--report", "out")
    assert done.code == 0, done.all
    return done, json.loads((project.folder / "out/results.jsonl").read_text())


def test_a_value_that_may_be_harmless_is_told(project: Project) -> None:
    done, result = run(project)
    warning = (
        "the value of PLANET is shown as <secret:PLANET>, since any variable may hold a secret; "
        'if it is none: public_env = ["PLANET"] in [tool.harness]'
    )
    assert (result["state"], result["warnings"]) == ({"told": "an important <secret:PLANET>"}, [warning])
    assert 'public_env = ["PLANET"]' in " ".join(done.all.split())


def test_a_public_one_is_shown(project: Project) -> None:
    project.write("pyproject.toml", '[tool.harness]\npublic_env = ["PLANET"]\n')
    _, result = run(project)
    assert (result["state"], result["warnings"]) == ({"told": "an important little earth"}, [])


def test_one_that_is_secret_by_its_name_is_no_warning(project: Project) -> None:
    project.write("tellers.py", TOOLS.replace("PLANET", "MY_TOKEN"))
    _, result = run(project)
    assert (result["state"], result["warnings"]) == ({"told": "an important <secret:MY_TOKEN>"}, [])


@pytest.mark.parametrize("command", ["validate", "show", "prompts"])
def test_commands_that_run_nothing_show_no_secret(project: Project, command: str) -> None:
    for name in ("tell.yaml", "tell.scenario.yaml"):
        project.write(name, (NODE if name == "tell.yaml" else SCENARIO).replace("tell", "tok-q7Rt0Lm2xP"))
    file = "tell.scenario.yaml" if command == "validate" else "tell.yaml"
    assert "tok-q7Rt0Lm2xP" not in project.harness(command, file).all
