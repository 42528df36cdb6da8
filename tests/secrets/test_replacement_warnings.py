"""A value that is replaced but may be harmless has a warning that says how to show it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


def run(project: Project) -> tuple[Done, dict[str, Any]]:
    done = project.harness("run", "tell.scenario.yaml", "--report", "out")
    assert done.code == 0, done.all
    return done, json.loads((project.folder / "out/results.jsonl").read_text())


def test_a_replaced_value_that_may_be_harmless_is_a_warning(project: Project) -> None:
    done, result = run(project)
    warning = (
        "the value of PLANET is shown as <secret:PLANET>, since any variable may hold a secret; "
        'if it is not a secret: public_env = ["PLANET"] in [tool.harness]'
    )
    assert (result["state"], result["warnings"]) == ({"told": "an important <secret:PLANET>"}, [warning])
    assert 'public_env = ["PLANET"]' in " ".join(done.all.split())


def test_a_public_variable_is_shown_without_a_warning(project: Project) -> None:
    project.write("pyproject.toml", '[tool.harness]\npublic_env = ["PLANET"]\n')
    _, result = run(project)
    assert (result["state"], result["warnings"]) == ({"told": "an important little earth"}, [])


def test_a_variable_with_a_secret_name_causes_no_warning(project: Project) -> None:
    project.write("tellers.py", TOOLS.replace("PLANET", "MY_TOKEN"))
    _, result = run(project)
    assert (result["state"], result["warnings"]) == ({"told": "an important <secret:MY_TOKEN>"}, [])


ORDERS = """\
import os

import httpx


def tell(state, params):
    httpx.get("http://shop.example/" + os.environ["MY_TOKEN"] + "/orders")
    return {}
"""


def test_a_secret_in_the_url_of_a_request_is_not_in_the_results(project: Project) -> None:
    project.write("tellers.py", ORDERS)
    project.write(
        "tell.scenario.yaml", SCENARIO.replace("input: {}", "http: [{url: '*', json: 1}], input: {}")
    )
    done, result = run(project)
    (call,) = [call for call in result["calls"] if call["kind"] == "http"]
    assert call["name"] == "http://shop.example/%3Csecret%3AMY_TOKEN%3E/orders"
    assert "tok-q7Rt0Lm2xP" not in (project.folder / "out/results.jsonl").read_text() + done.all


@pytest.mark.parametrize("command", ["validate", "show", "prompts"])
def test_commands_that_run_nothing_show_no_secret(project: Project, command: str) -> None:
    for name in ("tell.yaml", "tell.scenario.yaml"):
        project.write(name, (NODE if name == "tell.yaml" else SCENARIO).replace("tell", "tok-q7Rt0Lm2xP"))
    file = "tell.scenario.yaml" if command == "validate" else "tell.yaml"
    assert "tok-q7Rt0Lm2xP" not in project.harness(command, file).all
