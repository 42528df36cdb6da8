"""The choice of the component of a configuration that is run."""

from __future__ import annotations

from typing import Any

import pytest

from harness.dialects.agentspec.dialect import agents, detect
from harness.source.document import parse
from tests.dialects.agentspec.configurations import (
    AGENT,
    MODEL,
    PARTS,
    TABLE,
    VERSION,
    codes,
    entry,
    ref,
)
from tests.dialects.agentspec.loader import Loader

INNER = f"{{component_type: Agent, id: inner_id, name: inner, system_prompt: Inside., llm_config: {ref('model')}}}"
OUTER = (
    VERSION
    + """\
component_type: Flow
id: outer_id
name: outer
start_node: {$component_ref: begin}
nodes: [{$component_ref: begin}, {$component_ref: ask}, {$component_ref: end}]
control_flow_connections:
- {component_type: ControlFlowEdge, name: a, from_node: {$component_ref: begin}, to_node: {$component_ref: ask}}
- {component_type: ControlFlowEdge, name: b, from_node: {$component_ref: ask}, to_node: {$component_ref: end}}
"""
    + TABLE
    + entry("begin", "{component_type: StartNode, name: begin}")
    + entry("end", "{component_type: EndNode, name: end}")
    + entry("ask", "{component_type: AgentNode, name: ask, agent: {$component_ref: key}}")
    + entry("key", INNER)
    + entry("model", MODEL)
)


@pytest.mark.parametrize(("wanted", "name"), [(None, "outer"), ("outer", "outer"), ("outer_id", "outer")])
def test_the_root_component_is_run(loader: Loader, wanted: Any, name: Any) -> None:
    assert loader.graph(OUTER, agent=wanted).name == name


@pytest.mark.parametrize("wanted", ["inner", "inner_id", "key"])
def test_another_component_is_run_by_its_name_id_or_key(loader: Loader, wanted: Any) -> None:
    assert loader.graph(OUTER, agent=wanted).name == "inner"


def test_an_unused_component_can_be_run(loader: Loader) -> None:
    spare = INNER.replace("inner", "spare")
    assert loader.graph(OUTER + entry("spare_key", spare), agent="spare").name == "spare"


def test_a_missing_agent(loader: Loader) -> None:
    problem = loader.problem(OUTER, agent="iner")
    assert (problem.code, problem.hint) == ("unknown-agent", "did you mean 'inner'?")
    assert problem.message == "no agent or flow 'iner' in the configuration"


@pytest.mark.parametrize("wanted", ["inner", "inner_id", "key"])
def test_a_malformed_agent(loader: Loader, wanted: Any) -> None:
    problem = loader.problem(OUTER.replace("system_prompt: Inside.", "system_prompt: 5"), agent=wanted)
    assert problem.message == "'inner': system_prompt: expected text, found the number 5"


def test_a_malformed_unused_agent(loader: Loader) -> None:
    problem = loader.problem(
        OUTER + entry("spare", "{component_type: Agent, name: spare, system_prompt: x}"), agent="spare"
    )
    assert (problem.code, problem.message) == ("missing-key", "'spare': missing key 'llm_config' in an Agent")
    assert problem.severity == "error"


def test_the_root_may_be_a_reference(loader: Loader) -> None:
    text = "$component_ref: key\n" + VERSION + TABLE + entry("key", INNER) + entry("model", MODEL)
    assert loader.graph(text).name == "inner"
    assert loader.problem(text.replace("ref: key", "ref: kei")).code == "unknown-reference"


def test_a_root_tool_cannot_be_run(loader: Loader) -> None:
    problem = loader.problem(VERSION + "component_type: ServerTool\nname: hammer\n")
    assert problem.code == "not-runnable"
    assert problem.message == "the ServerTool 'hammer' is neither an agent nor a flow, so it cannot be run"


def test_the_warnings_of_a_component_that_cannot_be_run_are_told_unless_it_has_errors(loader: Loader) -> None:
    text = VERSION + "component_type: ServerTool\nname: hammer\nrequires_confirmation: false\n"
    assert codes(loader.problems(text)) == ["not-runnable", "later-version"]
    wrong = text + "inputs: [{title: a, title: a}]\n".replace("title: a, title", "title: a}, {title")
    assert "later-version" not in codes(loader.problems(wrong))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (VERSION + AGENT, True),
        (AGENT, True),
        ("$component_ref: x\n", True),
        (VERSION + PARTS, False),
        (PARTS, False),
        ("[1]", False),
        ("component_type: [1]", False),
        ("manifest_version: 1\nagents: {}", False),
    ],
)
def test_documents_that_are_configurations(text: Any, expected: Any) -> None:
    assert detect(parse(text, file="x.yaml")) is expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (AGENT, ["guide"]),
        ("$component_ref: key\n" + TABLE + entry("key", INNER), ["inner"]),
        ("$component_ref: [1]\n", []),
        (PARTS, []),
        ("[1]", []),
    ],
)
def test_the_agents_of_a_document(text: Any, names: Any) -> None:
    assert agents(parse(text, file="x.yaml")) == names
