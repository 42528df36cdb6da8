"""The fields of each component type, and the required ones. spec: the sections named in the models."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.dialects.agentspec.document import TYPES as MODELS
from harness.dialects.agentspec.document import later_field
from tests.dialects.agentspec import configurations
from tests.dialects.agentspec.loader import Loader

MODEL = {"component_type": "OpenAiConfig", "name": "model", "model_id": "m"}
CLIENT = {"component_type": "OciClientConfigWithInstancePrincipal", "name": "oci", "service_endpoint": "e"}
PIPE = {"component_type": "StdioTransport", "name": "pipe", "command": "c"}
TOOL = {"component_type": "ServerTool", "name": "tool"}
AGENT = {"component_type": "Agent", "name": "agent", "llm_config": MODEL, "system_prompt": "x"}
START, END = {"component_type": "StartNode", "name": "s"}, {"component_type": "EndNode", "name": "e"}
FLOW = {
    "component_type": "Flow",
    "name": "flow",
    "start_node": {"$component_ref": "s"},
    "nodes": [{"$component_ref": "s"}, {"$component_ref": "e"}],
    "control_flow_connections": [
        {
            "component_type": "ControlFlowEdge",
            "name": "s_to_e",
            "from_node": {"$component_ref": "s"},
            "to_node": {"$component_ref": "e"},
        }
    ],
}
STRINGS, VALUES = {"a": "b"}, {"a": [1, {"b": None}]}

# type: the fields it must have, with values that are good; the fields it may have, with values other than the default
TYPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Agent": ({"llm_config": MODEL, "system_prompt": "x"}, {"tools": [TOOL]}),
    "OciAgent": ({"agent_endpoint_id": "x", "client_config": CLIENT}, {}),
    "OpenAiAgent": ({"llm_config": MODEL}, {"remote_agent_id": "x"}),
    "OpenAiCompatibleConfig": ({"model_id": "x", "url": "x"}, {"default_generation_parameters": VALUES}),
    "VllmConfig": ({"model_id": "x", "url": "x"}, {"default_generation_parameters": {"max_tokens": 3}}),
    "OllamaConfig": ({"model_id": "x", "url": "x"}, {"default_generation_parameters": {"temperature": 0.5}}),
    "OpenAiConfig": ({"model_id": "x"}, {"default_generation_parameters": {"top_p": 1}}),
    "OciGenAiConfig": (
        {"model_id": "x", "compartment_id": "x", "client_config": CLIENT},
        {"default_generation_parameters": {}, "serving_mode": "DEDICATED", "provider": "META"},
    ),
    "OciClientConfigWithSecurityToken": (
        {"service_endpoint": "x", "auth_profile": "x", "auth_file_location": "x"},
        {"auth_type": "SECURITY_TOKEN"},
    ),
    "OciClientConfigWithApiKey": (
        {"service_endpoint": "x", "auth_profile": "x", "auth_file_location": "x"},
        {"auth_type": "API_KEY"},
    ),
    "OciClientConfigWithInstancePrincipal": (
        {"service_endpoint": "x"},
        {"auth_type": "INSTANCE_PRINCIPAL"},
    ),
    "OciClientConfigWithResourcePrincipal": (
        {"service_endpoint": "x"},
        {"auth_type": "RESOURCE_PRINCIPAL"},
    ),
    "ServerTool": ({}, {}),
    "ClientTool": ({}, {}),
    "RemoteTool": (
        {"url": "x", "http_method": "GET"},
        {"api_spec_uri": "x", "data": VALUES, "query_params": VALUES, "headers": VALUES},
    ),
    "MCPTool": ({"client_transport": PIPE}, {}),
    "StdioTransport": (
        {"command": "x"},
        {"args": ["x"], "env": STRINGS, "cwd": "x", "session_parameters": {"read_timeout_seconds": 5}},
    ),
    "SSETransport": ({"url": "x"}, {"headers": STRINGS, "session_parameters": VALUES}),
    "StreamableHTTPTransport": ({"url": "x"}, {"headers": STRINGS, "session_parameters": VALUES}),
    "SSEmTLSTransport": (
        {"url": "x", "key_file": "x", "cert_file": "x", "ca_file": "x"},
        {"headers": STRINGS, "session_parameters": VALUES},
    ),
    "StreamableHTTPmTLSTransport": (
        {"url": "x", "key_file": "x", "cert_file": "x", "ca_file": "x"},
        {"headers": STRINGS, "session_parameters": VALUES},
    ),
    "Flow": (
        {key: FLOW[key] for key in ("start_node", "nodes", "control_flow_connections")},
        {"data_flow_connections": []},
    ),
    "ControlFlowEdge": ({"from_node": START, "to_node": END}, {"from_branch": "next"}),
    "DataFlowEdge": (
        {"source_node": START, "source_output": "x", "destination_node": END, "destination_input": "x"},
        {},
    ),
    "StartNode": ({}, {}),
    "EndNode": ({}, {"branch_name": "x"}),
    "LlmNode": ({"llm_config": MODEL, "prompt_template": "x"}, {}),
    "ApiNode": (
        {"url": "x", "http_method": "GET"},
        {"api_spec_uri": "x", "data": VALUES, "query_params": VALUES, "headers": VALUES},
    ),
    "AgentNode": ({"agent": AGENT}, {}),
    "FlowNode": ({"subflow": FLOW}, {}),
    "MapNode": ({"subflow": FLOW}, {"reducers": {"x": "append"}}),
    "BranchingNode": ({"mapping": STRINGS}, {}),
    "ToolNode": ({"tool": TOOL}, {}),
    "InputMessageNode": ({}, {"message": "x"}),
    "OutputMessageNode": ({"message": "x"}, {}),
}

WITHOUT_IO = ("Config", "Principal", "Token", "ApiKey", "Transport", "Edge")
"""The suffixes of component types without inputs and outputs."""

NULLABLE = {
    "description",
    "metadata",
    "inputs",
    "outputs",
    "branches",
    "default_generation_parameters",
    "provider",
    "remote_agent_id",
    "api_spec_uri",
    "env",
    "cwd",
    "headers of a transport",
    "data_flow_connections",
    "from_branch",
    "reducers",
    "message of an InputMessageNode",
}


def required_of(component_type: Any) -> Any:
    """Return the required fields of a component type."""
    return {"name": "it", **TYPES[component_type][0]}


def optional_of(component_type: Any) -> Any:
    """Return the optional fields of a component type, its own and the common ones."""
    found = {"id": "x", "description": "x", "metadata": {"x": 1}, **TYPES[component_type][1]}
    if not component_type.endswith(WITHOUT_IO):
        found |= {"inputs": [{"title": "x"}], "outputs": [{"title": "x"}]}
    if component_type.endswith("Node"):
        found["branches"] = ["x"]
    return found


def may_be_null(component_type: Any, field: Any) -> Any:
    known = {
        "headers": component_type.endswith("Transport"),
        "session_parameters": True,
        "branch_name": True,
        "message": component_type == "InputMessageNode",
    }
    return known.get(field, field in NULLABLE)


@pytest.fixture
def faults(loader: Loader) -> Any:
    """Return a function that gives the problems of a single component."""

    def faults_(component_type: Any, fields: Any) -> Any:
        parts = {"component_type": component_type, **fields}
        unused = {
            **AGENT,
            "agentspec_version": "25.4.2",
            "$referenced_components": {"it": parts, "s": START, "e": END},
        }
        graph = loader.graph(json.dumps(unused), json=True)
        return [
            (item.code, item.message.removesuffix(" (in 'it', which nothing uses)").removeprefix("'it': "))
            for item in graph.warnings
        ]

    return faults_


@pytest.mark.parametrize("component_type", TYPES)
def test_the_fields_of_a_type_are_accepted(faults: Any, component_type: Any) -> None:
    required = required_of(component_type)
    assert faults(component_type, required) == []
    assert faults(component_type, required | optional_of(component_type)) == []


@pytest.mark.parametrize("component_type", TYPES)
def test_other_fields_are_refused(faults: Any, component_type: Any) -> None:
    every = {key for required, optional in TYPES.values() for key in required | optional} | {
        "inputs",
        "branches",
    }
    required = required_of(component_type)
    for key in every - required.keys() - optional_of(component_type).keys():
        [(code, message)] = faults(component_type, required | {key: "x"})
        if later_field(MODELS[component_type], key):
            assert code in ("later-version", "unsupported")
            continue
        assert code == "unknown-key"
        assert message.startswith(f"unknown key '{key}' in a")


@pytest.mark.parametrize("component_type", TYPES)
def test_required_fields(faults: Any, component_type: Any) -> None:
    required = required_of(component_type)
    for key in required:
        [(code, message)] = faults(
            component_type, {other: required[other] for other in required if other != key}
        )
        assert code == "missing-key"
        assert f"missing key '{key}' in a" in message


@pytest.mark.parametrize("component_type", TYPES)
def test_only_some_fields_may_be_null(faults: Any, component_type: Any) -> None:
    required = required_of(component_type)
    for key in required.keys() | optional_of(component_type).keys():
        found = faults(component_type, required | {key: None})
        assert (found == []) == may_be_null(component_type, key), (key, found)


WRONG = {
    "a number for text": (
        "LlmNode",
        {"prompt_template": 5},
        "wrong-type",
        "prompt_template: expected text, found the number 5",
    ),
    "text for a number": (
        "OpenAiConfig",
        {"default_generation_parameters": {"max_tokens": "many"}},
        "wrong-type",
        "max_tokens: expected a whole number, found text 'many'",
    ),
    "a whole number written with decimals": (
        "OpenAiConfig",
        {"default_generation_parameters": {"max_tokens": 10.0}},
        None,
        None,
    ),
    "a number that is not whole": (
        "OpenAiConfig",
        {"default_generation_parameters": {"max_tokens": 10.5}},
        "wrong-type",
        "max_tokens: expected a whole number, found the number 10.5",
    ),
    "a list for a mapping": (
        "BranchingNode",
        {"mapping": ["a"]},
        "wrong-type",
        "mapping: expected a mapping, found a list",
    ),
    "a mapping to a number": (
        "BranchingNode",
        {"mapping": {"a": 1}},
        "wrong-type",
        "a: expected text, found the number 1",
    ),
    "a way of reducing that is unknown": (
        "MapNode",
        {"reducers": {"x": "mean"}},
        "bad-value",
        "x: expected one of append, sum, average, max, min, found text 'mean'",
    ),
    "another way to authenticate": (
        "OciClientConfigWithApiKey",
        {"auth_type": "SECURITY_TOKEN"},
        "bad-value",
        "auth_type: expected API_KEY, found text 'SECURITY_TOKEN'",
    ),
    "a tool for a model": (
        "LlmNode",
        {"llm_config": TOOL},
        "wrong-component",
        "expected an LLM configuration, found the ServerTool 'tool'",
    ),
    "a tool for a node": (
        "ControlFlowEdge",
        {"to_node": TOOL},
        "wrong-component",
        "expected a node, found the ServerTool 'tool'",
    ),
    "an agent for a flow": (
        "FlowNode",
        {"subflow": AGENT},
        "wrong-component",
        "expected a Flow, found the Agent 'agent'",
    ),
    "a Flow is an agentic component": ("AgentNode", {"agent": FLOW}, None, None),
    "a node for an edge": (
        "Flow",
        {"control_flow_connections": [START]},
        "wrong-component",
        "expected a ControlFlowEdge, found the StartNode 's'",
    ),
    "any model where the schema says OpenAiConfig": (
        "OpenAiAgent",
        {"llm_config": {"component_type": "VllmConfig", "name": "v", "model_id": "x", "url": "x"}},
        "wrong-component",
        "expected an OpenAiConfig, found the VllmConfig 'v'",
    ),
    "one tool for a list of them": (
        "Agent",
        {"tools": TOOL},
        "wrong-type",
        "tools: expected a list, found a ServerTool",
    ),
    "a list for one model": (
        "LlmNode",
        {"llm_config": [MODEL]},
        "wrong-component",
        "expected an LLM configuration, found a list",
    ),
    "text for a model": (
        "LlmNode",
        {"llm_config": "gpt"},
        "wrong-component",
        "expected a component, with a component_type, or a $component_ref; found text 'gpt'",
    ),
    "a component_type that is no text": (
        "LlmNode",
        {"llm_config": {"component_type": 5}},
        "wrong-type",
        "component_type: expected text, found the number 5",
    ),
    "a component_type that is misspelt": (
        "LlmNode",
        {"llm_config": {**MODEL, "component_type": "OpenAIConfig"}},
        "unknown-component-type",
        "unknown component type 'OpenAIConfig'",
    ),
    "a type of a later version": (
        "LlmNode",
        {"llm_config": {**MODEL, "component_type": "LlmConfig"}},
        "later-version",
        "'model': LlmConfig: new in 26.1.2, and this configuration says 25.4.2",
    ),
}


@pytest.mark.parametrize(("component_type", "fields", "code", "message"), WRONG.values(), ids=WRONG)
def test_wrong_values_of_fields(
    faults: Any, component_type: Any, fields: Any, code: Any, message: Any
) -> None:
    expected = [] if code is None else [(code, message)]
    assert faults(component_type, required_of(component_type) | fields) == expected


def test_every_problem_is_reported_with_its_location(loader: Loader) -> None:
    text = """\
agentspec_version: 25.4.1
component_type: Agent
name: agent
sytem_prompt: x
llm_config: {component_type: OpenAIConfig, name: model, model_id: 5}
tools:
- {component_type: ServerTool, name: 7}
- {component_type: ServerTool, name: t, inputs: [{type: string}]}
"""
    found = [(item.code, item.message, loader.place(item), item.hint) for item in loader.problems(text)]
    assert found == [
        ("missing-key", "'agent': missing key 'system_prompt' in an Agent", "agentspec_version: 25.4.1", ""),
        (
            "unknown-key",
            "'agent': unknown key 'sytem_prompt' in an Agent",
            "sytem_prompt",
            "did you mean 'system_prompt'?",
        ),
        (
            "unknown-component-type",
            "unknown component type 'OpenAIConfig'",
            "OpenAIConfig",
            "did you mean 'OpenAiConfig'?",
        ),
        ("wrong-type", "name: expected text, found the number 7", "7", "quote it to make it text"),
        ("property-title", "'t': a property needs a 'title', its name", "{type: string}", ""),
    ]


@pytest.mark.parametrize(
    ("component_type", "hint"),
    [
        ("OpenAIConfig", "did you mean 'OpenAiConfig'?"),
        ("StartNodes", "did you mean 'StartNode'?"),
        (
            "TeleportNode",
            "known: StartNode, EndNode, LlmNode, ApiNode, AgentNode, FlowNode, MapNode, BranchingNode, ToolNode, "
            "InputMessageNode, OutputMessageNode",
        ),
        ("HttpTool", "known: ServerTool, ClientTool, RemoteTool, MCPTool"),
    ],
)
def test_the_hint_for_an_unknown_type_is_a_similar_one_or_all_of_its_kind(
    loader: Loader, component_type: Any, hint: Any
) -> None:
    text = f"agentspec_version: 25.4.1\ncomponent_type: {component_type}\nname: x\n"
    assert loader.problem(text).hint == hint


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("{$ref: tool}", "write {$component_ref: tool}"),
        ("{type: ServerTool, name: t}", "write component_type: ServerTool"),
        ("{type: [ServerTool], name: t}", ""),
    ],
)
def test_the_hint_for_older_notation_is_the_current_one(loader: Loader, written: Any, hint: Any) -> None:
    problem = loader.problem(configurations.agent(tools=f"[{written}]"))
    assert (problem.code, problem.hint) == ("wrong-component", hint)


def test_two_tools_with_the_same_name_are_a_warning(loader: Loader) -> None:
    """Models call tools by name."""
    tools = [configurations.tool("find", "one"), configurations.tool("find", "two")]
    [warning] = loader.graph(configurations.agent(tools=f"[{', '.join(tools)}]")).warnings
    assert (warning.code, warning.severity) == ("duplicate-name", "warning")
    assert (
        warning.message == "Agent 'guide': two of its tools are called 'find'; only the first can be called"
    )
    assert loader.place(warning).endswith("id: two}")


@pytest.mark.parametrize(
    "written",
    [
        "{title: a, type: [string, null], default: null}",
        "{title: a, type: array, items: {type: [string, null]}, default: [null]}",
    ],
)
def test_null_in_a_list_of_types_is_the_type_null(loader: Loader, written: Any) -> None:
    """spec: "an output of type `number` can connect to an input of type `[number, null]`"."""
    found = loader.agent(configurations.agent(outputs=f"[{written}]")).outputs["a"]
    assert "string or null" in str(found.type) or "(string or null)" in str(found.type)
    assert found.default in (None, [None])


def test_null_by_itself_is_no_type(loader: Loader) -> None:
    problem = loader.problem(configurations.agent(outputs="[{title: a, type: null}]"))
    assert (problem.code, problem.hint) == ("bad-schema", "quote it to name the type: 'null'")


@pytest.mark.parametrize(
    ("written", "found", "hint"),
    [("2024-01-01", "a date", "quote it to make it text"), (".inf", "the number inf", "")],
)
def test_values_that_are_not_json_are_refused(loader: Loader, written: Any, found: Any, hint: Any) -> None:
    """YAML has values that cannot be sent to a model or an API."""
    problem = loader.problem(configurations.agent(outputs=f"[{{title: a, default: {written}}}]"))
    assert (problem.code, problem.message) == ("wrong-type", f"expected a value of JSON, found {found}")
    assert (loader.place(problem), problem.hint) == (written, hint)
