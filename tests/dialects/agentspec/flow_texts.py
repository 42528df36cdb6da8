"""A valid flow as text, and functions that change it."""

from __future__ import annotations

from typing import Any


def node(key: Any, component_type: Any, rest: Any = "") -> Any:
    return f"  {key}: {{component_type: {component_type}, name: {key}{rest and ', ' + rest}}}\n"


def control(source: Any, target: Any, branch: Any = "") -> Any:
    ends = f"from_node: {{$component_ref: {source}}}, to_node: {{$component_ref: {target}}}"
    by = f", from_branch: {branch}" if branch else ""
    return f"  - {{component_type: ControlFlowEdge, name: {source}_to_{target}, {ends}{by}}}\n"


def data(source: Any, output: Any, target: Any, title: Any) -> Any:
    start = f"source_node: {{$component_ref: {source}}}, source_output: {output}"
    end = f"destination_node: {{$component_ref: {target}}}, destination_input: {title}"
    return f"  - {{component_type: DataFlowEdge, name: {source}.{output}, {start}, {end}}}\n"


def listed(key: Any) -> Any:
    return f"  - {{$component_ref: {key}}}\n"


MODEL = "{component_type: OpenAiConfig, name: model, model_id: m}"
TOOL = (
    "{component_type: ServerTool, name: grader, inputs: [{title: essay, type: string}],"
    " outputs: [{title: marks, type: integer}]}"
)
BRANCHES = "mapping: {fine: good}"
PROMPT = "prompt_template: 'On {{topic}}'"
OUTPUTS = "outputs: [{title: text, type: string}, {title: score, type: number, default: 0}]"
PASSED = "outputs: [{title: text, type: string}, {title: score, type: number}]}"
FAILED = "branch_name: sadly, outputs: [{title: text, type: string}]"

EDGES = "control_flow_connections:\n"
VALUES = "data_flow_connections:\n"
TABLE = "$referenced_components:\n"

FLOW = "".join(
    [
        "agentspec_version: 25.4.1\n",
        "component_type: Flow\n",
        "name: school\n",
        "inputs: [{title: topic, type: string}]\n",
        OUTPUTS + "\n",
        "start_node: {$component_ref: begin}\n",
        "nodes:\n",
        *map(listed, ["begin", "write", "sort", "grade", "passed", "failed"]),
        EDGES,
        control("begin", "write"),
        control("write", "sort"),
        control("sort", "grade", "good"),
        control("sort", "failed", "default"),
        control("grade", "passed"),
        VALUES,
        data("begin", "topic", "write", "topic"),
        data("write", "generated_text", "sort", "branching_mapping_key"),
        data("write", "generated_text", "grade", "essay"),
        data("write", "generated_text", "passed", "text"),
        data("write", "generated_text", "failed", "text"),
        data("grade", "marks", "passed", "score"),
        TABLE,
        node("begin", "StartNode", "inputs: [{title: topic, type: string}]"),
        node("write", "LlmNode", f"{PROMPT}, llm_config: {MODEL}"),
        node("sort", "BranchingNode", BRANCHES),
        node("grade", "ToolNode", f"tool: {TOOL}"),
        node("passed", "EndNode", PASSED.removesuffix("}")),
        node("failed", "EndNode", FAILED),
    ]
)


def changed(changes: Any) -> Any:
    """Return the valid flow with texts in it replaced."""
    text = FLOW
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def after(old: Any, new: Any) -> Any:
    return (old, old + new)


def without(old: Any) -> Any:
    return (old, "")


def with_new(key: Any, component_type: Any, rest: Any, *edges: Any) -> Any:
    """Return the changes that add a node to the table, and each edge after the key of its list."""
    return [after(TABLE, node(key, component_type, rest)), *(after(place, edge) for place, edge in edges)]


# the rule: the changes that break it; the code, the end of the message, the beginning of the place it points to


def flow_of(component: Any) -> Any:
    """Return a flow with one node between start and end, with data flow by name."""
    return "".join(
        [
            "agentspec_version: 25.4.2\n",
            "component_type: Flow\n",
            "name: outer\n",
            "start_node: {$component_ref: begin}\n",
            "nodes:\n",
            *map(listed, ["begin", "it", "end"]),
            EDGES,
            control("begin", "it"),
            control("it", "end"),
            TABLE,
            "  it: {name: it, " + component + "}\n",
            node("begin", "StartNode", "inputs: [{title: a}, {title: b}, {title: iterated_a}]"),
            node("end", "EndNode"),
            "  inner:\n",
            "    component_type: Flow\n",
            "    name: inner\n",
            "    start_node: {$component_ref: in}\n",
            "    nodes: [{$component_ref: in}, {$component_ref: out}]\n",
            "    control_flow_connections:\n  ",
            control("in", "out"),
            node("in", "StartNode", "inputs: [{title: a, type: number}]"),
            node(
                "out", "EndNode", "outputs: [{title: a, type: number}, {title: b, default: '', type: string}]"
            ),
            node(
                "tool",
                "ServerTool",
                "inputs: [{title: a, type: array}], outputs: [{title: n, type: integer}]",
            ),
            node(
                "agent", "Agent", f"system_prompt: '{{{{a}}}}', outputs: [{{title: n}}], llm_config: {MODEL}"
            ),
        ]
    )


FLOW_NODE = "component_type: FlowNode, subflow: {$component_ref: inner}"
