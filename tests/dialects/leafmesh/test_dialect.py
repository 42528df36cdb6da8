"""The dialect's functions that do not load a mesh: locate, detect, agents, prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.dialects.leafmesh import dialect
from harness.dialects.leafmesh.document import Mesh
from harness.dialects.load import load_graph, load_prompts
from harness.dialects.registry import dialect_of
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError
from harness.scenario.load import load_file
from harness.scenario.model import load_request
from harness.settings import Settings
from harness.source.document import parse

FLOW = "redis: {port: ${PORT:6379}}\nentry_points: [{name: go, target: a}]\nagents: {a: {prompt: x}}\n"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["configs/config.yaml", "config.yaml"], "configs/config.yaml"),
        (["config.yaml"], "config.yaml"),
        (["configs/mesh.yaml"], None),
    ],
)
def test_the_mesh_of_a_project(tmp_path: Path, files: list[str], found: str | None) -> None:
    (tmp_path / "configs").mkdir()
    for file in files:
        (tmp_path / file).write_text(FLOW)
    assert list(dialect.locate(tmp_path)) == ([tmp_path / found] if found else [])
    assert list(dialect.locate(tmp_path / "mesh.yaml")) == [tmp_path / "mesh.yaml"]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (FLOW, True),
        ("agents: {a: {can_call: []}}", True),
        ("agents: {a: {agent_type: llm}}", True),
        ("agents: {a: {prompt: x}}\nmesh: {}", True),
        ("agents: {helper: {model: gpt-4o, prompt: Help., tools: [calculator]}}", True),
        ("agents: {a: {prompt: x}}", True),
        ("agents: {a: {type: llm}}", True),
        ("agents: {a: {agent_class: Clerk}}", True),
        ("agents: {a: {model: m, tools: [t]}}\nmanager: {enabled: false}", True),
        ("agents: {a: {knowledge: {serviceName: docs, enabled: true, groupName: g}}}", True),
        ("agents: {a: {prompt: x}}\nentry_point: []", True),
        ("agents: {a: {prompt: x}}\nsteps: []", False),
        ("agents: {a: {model: m}}", False),
        ("agents: {a: {role: r, goal: g, backstory: b, model: m, tools: [t]}}", False),
        ("agents: {root: {model: m, instruction: i, toolsets: []}}\nversion: '2'", False),
        ("agents: {queue: default}", False),
        ("services: {agents: {image: i, prompt: x, type: llm}}", False),
        ("researcher: {role: r, goal: g, backstory: b, tools: [t]}", False),
        ("agents: {a: {graph: {}, yields: {}}}", False),
        ("manifest_version: 1\nagents: {a: {yields: {}}}", False),
        ("agents: [a]\nentry_points: []", False),
        ("agents: {}\nentry_points: []", True),
        ("- a", False),
        ("a", False),
        ("entry_points: []", False),
    ],
)
def test_detection(text: str, is_one: bool) -> None:
    assert dialect.detect(parse(text, file="f", yaml=dialect.yaml)) is is_one


def test_the_keys_of_a_mesh_are_those_of_its_document() -> None:
    assert set(Mesh.model_fields) == dialect.KEYS


def test_a_mesh_is_detected_whatever_brackets_its_variables_stand_in(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(FLOW)
    assert dialect_of(path).name == "leafmesh"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("entry_points: [{name: b}, {name: a}, {name: b}, {target: c}, 5]\nagents: {x: {}}", ["b", "a"]),
        ("agents: {x: {}, y: 5}", ["x", "y"]),
        ("agents: 5\nentry_points: 6", []),
        ("- a", []),
    ],
)
def test_agents(text: str, names: list[str]) -> None:
    assert dialect.agents(parse(text, file="f", yaml=dialect.yaml)) == names


def test_prompts_are_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("""\
manager: {prompt: Judge well., model: ${MODEL:m}}
agents:
  a: {prompt: "Hi ${WHO:you}.", context_parts: {care: Be kind., own: "${X}"}, narration: Sometimes b.}
  b: {agent_type: programmatic}
""")
    found = load_prompts(LoadRequest((path,)), "leafmesh")
    assert [(prompt.id, prompt.kind, prompt.text, prompt.where.line) for prompt in found] == [
        ("manager.prompt", "prompt", "Judge well.", 1),
        ("a.prompt", "prompt", "Hi ${WHO:you}.", 3),
        ("a.context_parts.care", "context_parts", "Be kind.", 3),
        ("a.context_parts.own", "context_parts", "${X}", 3),
        ("a.narration", "narration", "Sometimes b.", 3),
    ]


def test_prompts_of_an_invalid_mesh(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("agents: [a]")
    with pytest.raises(ManifestError, match="agents: expected a mapping, found a list"):
        load_prompts(LoadRequest((path,)), "leafmesh")


@pytest.mark.parametrize(
    ("head", "own", "message", "place"),
    [
        ("", ", entry_point: out", "there is no entry point or agent 'out'", (4, 36)),
        ("", ", agent: out", "there is no entry point or agent 'out'", (4, 30)),
        ("agent: out", "", "there is no entry point or agent 'out'", (3, 8)),
        ("defaults: {entry_point: out}", "", "there is no entry point or agent 'out'", (3, 25)),
        ("", "", "this mesh has 2 entry points, and none is named", (2, 11)),
    ],
)
def test_an_entry_that_is_not_there_is_told_where_it_is_asked_for(
    tmp_path: Path, head: str, own: str, message: str, place: tuple[int, int]
) -> None:
    (tmp_path / "m.yaml").write_text(FLOW.replace("[{", "[{name: come, target: a}, {"))
    path = tmp_path / "s.scenario.yaml"
    path.write_text(f"harness: 1\nmanifest: m.yaml\n{head}\nscenarios: [{{name: s{own}}}]\n")
    (scenario,) = load_file(path).scenarios
    with pytest.raises(ManifestError) as refused:
        load_graph(load_request(scenario, Settings()), "leafmesh")
    (problem,) = refused.value.problems
    assert problem.span is not None
    assert problem.message == message
    assert (Path(problem.span.file).name, problem.span.line, problem.span.column) == (path.name, *place)
