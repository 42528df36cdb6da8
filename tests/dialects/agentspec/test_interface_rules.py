"""Declared inputs and outputs of components, compared with the inferred ones.

spec: "Validation of specified inputs/outputs", "Standard library of nodes".
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.agentspec.flow_texts import (
    BRANCHES,
    FAILED,
    FLOW_NODE,
    MODEL,
    changed,
    flow_of,
)
from tests.dialects.agentspec.loader import Loader


def llm(rest: Any) -> Any:
    return f"component_type: LlmNode, llm_config: {MODEL}, {rest}"


def api(rest: Any) -> Any:
    return f"component_type: ApiNode, url: 'http://x/{{{{a}}}}', http_method: GET, {rest}"


START = "component_type: StartNode"
TOOL_NODE = "component_type: ToolNode, tool: {$component_ref: tool}"
AGENT_NODE = "component_type: AgentNode, agent: {$component_ref: agent}"
MAP_NODE = "component_type: MapNode, subflow: {$component_ref: inner}"
ASK = "component_type: InputMessageNode"
SAY = "component_type: OutputMessageNode, message: '{{a}} {{a}}'"
BRANCH = "component_type: BranchingNode, mapping: {x: next}, branches: [next, default]"

LISTS = {
    "a placeholder is no input": (
        llm("prompt_template: '{{a}} {{b}}', inputs: [{title: a}]"),
        ("missing-property", "LlmNode 'it': 'b' is missing in its inputs", "[{title: a}]"),
    ),
    "an input is no placeholder": (
        llm("prompt_template: '{{a}}', inputs: [{title: a}, {title: b}]"),
        ("unknown-property", "LlmNode 'it': 'b' is not one of its inputs", "{title: b}"),
    ),
    "an input, where there are no placeholders": (
        llm("prompt_template: '{a}', inputs: [{title: a}]"),
        ("unknown-property", "LlmNode 'it': 'a' is not one of its inputs, as it has none", "{title: a}"),
    ),
    "a placeholder in a key of the data of an ApiNode": (
        api("data: {'{{b}}': [1]}, inputs: [{title: a}]"),
        ("missing-property", "ApiNode 'it': 'b' is missing in its inputs", "[{title: a}]"),
    ),
    "an input of an ApiNode is no placeholder": (
        api("inputs: [{title: a}, {title: b}]"),
        ("unknown-property", "ApiNode 'it': 'b' is not one of its inputs", "{title: b}"),
    ),
    "a ToolNode takes what its tool does not": (
        TOOL_NODE + ", inputs: [{title: a}, {title: b}]",
        ("unknown-property", "ToolNode 'it': 'b' is not one of its inputs", "{title: b}"),
    ),
    "a ToolNode gives what its tool does not": (
        TOOL_NODE + ", outputs: []",
        ("missing-property", "ToolNode 'it': 'n' is missing in its outputs", "[]"),
    ),
    "a ToolNode takes it in a type that is not the tool's": (
        TOOL_NODE + ", inputs: [{title: a, type: object}]",
        (
            "property-type",
            "ToolNode 'it': input 'a' is array, and cannot be declared as object",
            "{title: a, type: object}",
        ),
    ),
    "an AgentNode gives what its agent does not": (
        AGENT_NODE + ", outputs: [{title: n}, {title: m}]",
        ("unknown-property", "AgentNode 'it': 'm' is not one of its outputs", "{title: m}"),
    ),
    "a FlowNode takes what its flow does not": (
        FLOW_NODE + ", inputs: [{title: a}, {title: b}]",
        ("unknown-property", "FlowNode 'it': 'b' is not one of its inputs", "{title: b}"),
    ),
    "a MapNode takes the inputs of its flow without prefix": (
        MAP_NODE + ", outputs: [{title: collected_a}]",
        (
            "missing-property",
            "MapNode 'it': 'collected_b' is missing in its outputs",
            "[{title: collected_a}]",
        ),
    ),
    "a MapNode gives what has no reducer": (
        MAP_NODE + ", reducers: {a: sum}, outputs: [{title: collected_a}, {title: collected_b}]",
        ("unknown-property", "MapNode 'it': 'collected_b' is not one of its outputs", "{title: collected_b}"),
    ),
    "a MapNode reduces what its flow does not give": (
        MAP_NODE + ", reducers: {c: sum}",
        ("unknown-property", "MapNode 'it': reducer of 'c', which is not an output of Flow 'inner'", "sum"),
    ),
    "a MapNode sums texts": (
        MAP_NODE + ", reducers: {b: sum}",
        ("property-type", "MapNode 'it': sum of 'b', which is string", "sum"),
    ),
    "the user says something that is no text": (
        ASK + ", outputs: [{title: age, type: integer}]",
        (
            "property-type",
            "InputMessageNode 'it': the user's input is a string, and cannot be declared as integer",
            "{title: age, type: integer}",
        ),
    ),
    "the user says two things": (
        ASK + ", outputs: [{title: x, type: string}, {title: y, type: string}]",
        (
            "unknown-property",
            "InputMessageNode 'it': 'y' is not one of its outputs",
            "{title: y, type: string}",
        ),
    ),
    "a message gives something": (
        SAY + ", outputs: [{title: said}]",
        (
            "unknown-property",
            "OutputMessageNode 'it': 'said' is not one of its outputs, as it has none",
            "{title: said}",
        ),
    ),
    "a property is there twice": (
        llm("prompt_template: '{{a}}', inputs: [{title: a}, {title: a}]"),
        ("duplicate-property", "'it': a second property called 'a'", "{title: a}"),
    ),
}


@pytest.mark.parametrize(("component", "expected"), LISTS.values(), ids=LISTS)
def test_declared_properties_must_match_the_inferred_ones(
    loader: Loader, component: Any, expected: Any
) -> None:
    problem = loader.problem(flow_of(component))
    code, message, place = expected
    assert (problem.code, problem.message) == (code, message)
    assert loader.place(problem) == place


SPECIALISED = {
    "a placeholder of a narrower type": llm("prompt_template: '{{a}}', inputs: [{title: a, type: integer}]"),
    "one with a default": llm("prompt_template: '{{a}}', inputs: [{title: a, type: string, default: x}]"),
    "several outputs of an LlmNode": llm(
        "prompt_template: x, outputs: [{title: n, type: integer}, {title: m}]"
    ),
    "another name for the text of an LlmNode": llm(
        "prompt_template: x, outputs: [{title: story, type: string}]"
    ),
    "a ToolNode with a wider type": TOOL_NODE + ", inputs: [{title: a, type: [array, 'null']}]",
    "a ToolNode with a more precise type": TOOL_NODE
    + ", inputs: [{title: a, type: array, items: {type: string}}]",
    "an AgentNode as its agent": AGENT_NODE + ", inputs: [{title: a}], outputs: [{title: n}]",
    "an agent that chooses a branch": AGENT_NODE + ", branches: [next]",
    "a MapNode over a list": MAP_NODE + ", inputs: [{title: iterated_a, type: array, items: {type: number}}]",
    "a MapNode with reducers": MAP_NODE
    + ", reducers: {a: average}, outputs: [{title: collected_a, type: number}]",
    "the greatest of texts": MAP_NODE + ", reducers: {b: max}",
    "another name for what the user says": ASK + ", outputs: [{title: age, type: string}]",
    "a description": SAY + ", inputs: [{title: a, type: string, description: why}], outputs: []",
}


@pytest.mark.parametrize("component", SPECIALISED.values(), ids=SPECIALISED)
def test_declared_properties_may_be_more_precise(loader: Loader, component: Any) -> None:
    assert loader.graph(flow_of(component)).warnings == ()


def test_a_misspelt_keyword_of_json_schema_is_a_warning(loader: Loader) -> None:
    [warning] = loader.graph(flow_of(SAY + ", inputs: [{title: a, tpye: string, minLength: 1}]")).warnings
    assert (warning.code, warning.severity) == ("unknown-key", "warning")
    assert warning.message == "OutputMessageNode 'it': property 'a': 'tpye' is not a keyword of JSON Schema"
    assert (loader.place(warning), warning.hint) == ("string", "did you mean 'type'?")


@pytest.mark.parametrize(
    ("schema", "keyword", "meant"),
    [
        ("type: array, items: {tpye: string}", "tpye", "type"),
        ("type: object, properties: {crop: {type: array, itmes: {type: string}}}", "itmes", "items"),
        ("anyOf: [{type: 'null'}, {type: object, additionalPropertys: false}]", "additionalPropertys", None),
    ],
)
def test_a_misspelt_keyword_inside_a_property_is_a_warning(
    loader: Loader, schema: str, keyword: str, meant: str | None
) -> None:
    [warning] = loader.graph(flow_of(SAY + f", inputs: [{{title: a, {schema}}}]")).warnings
    assert (
        warning.message
        == f"OutputMessageNode 'it': property 'a': '{keyword}' is not a keyword of JSON Schema"
    )
    assert warning.hint == f"did you mean '{meant or 'additionalProperties'}'?"


@pytest.mark.parametrize(
    "schema",
    [
        "type: object, properties: {tpye: {type: string}, itmes: {type: string}}",
        "type: object, default: {tpye: x}, key_type: {type: string}",
        "type: string, example: wool",
    ],
)
def test_names_values_and_annotations_are_no_keywords(loader: Loader, schema: str) -> None:
    assert loader.graph(flow_of(SAY + f", inputs: [{{title: a, {schema}}}]")).warnings == ()


def test_the_input_of_a_branching_node_has_any_name(loader: Loader) -> None:
    text = changed(
        [
            (BRANCHES, BRANCHES + ", inputs: [{title: mood, type: string}]"),
            ("destination_input: branching_mapping_key", "destination_input: mood"),
        ]
    )
    assert loader.graph(text).warnings == ()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (
            (FAILED, FAILED + ", inputs: [{title: text, type: string}, {title: more}]"),
            "[{title: text, type: string}]",
        ),
        (
            (
                "StartNode, name: begin, ",
                "StartNode, name: begin, outputs: [{title: topic, type: integer}], ",
            ),
            "[{title: topic, type: integer}]",
        ),
        (("StartNode, name: begin, ", "StartNode, name: begin, outputs: [], "), "[]"),
    ],
)
def test_inputs_and_outputs_of_start_and_end_nodes_are_equal(loader: Loader, change: Any, place: Any) -> None:
    problem = next(item for item in loader.problems(changed([change])) if item.code == "unequal-lists")
    assert "its inputs and its outputs must be the same" in problem.message
    assert loader.place(problem) == place
