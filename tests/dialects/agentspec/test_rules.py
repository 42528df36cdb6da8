"""The rules between components: a sound flow, changes that break one of them each, and changes that do not.

spec: "Validation of specified inputs/outputs", "Flow", "Relationships / Edges", "Standard library of nodes".
"""

from __future__ import annotations

from typing import Any

import pytest


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
    """The sound flow with texts in it replaced."""
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
    """One more node in the table, and edges behind the keys of their lists."""
    return [after(TABLE, node(key, component_type, rest)), *(after(place, edge) for place, edge in edges)]


# the rule: the changes that break it; the code, the end of the message, the beginning of the place it points to
CONTROL = {
    "the StartNode is among the nodes": (
        [without(listed("begin"))],
        "start-node",
        "its start_node, the StartNode 'begin', is not in its nodes",
        "- {$component_ref: write}",
    ),
    "there is one StartNode": (
        [
            after("nodes:\n", listed("other")),
            *with_new("other", "StartNode", "", (EDGES, control("other", "write"))),
        ],
        "start-node",
        "a flow has one StartNode, and 'other' is another",
        "{$component_ref: other}",
    ),
    "the StartNode is listed once": (
        [after(listed("failed"), listed("begin"))],
        "start-node",
        "a flow has one StartNode, and 'begin' is another",
        "{$component_ref: begin}",
    ),
    "nothing leads to the StartNode": (
        [(BRANCHES, "mapping: {fine: good, poor: again}"), after(EDGES, control("sort", "begin", "again"))],
        "start-node",
        "ControlFlowEdge 'sort_to_begin' leads to the StartNode 'begin', where nothing may lead",
        "{$component_ref: begin}",
    ),
    "there is an EndNode": (
        [
            without(listed("passed")),
            without(listed("failed")),
            without(control("sort", "failed", "default")),
            (control("grade", "passed"), control("grade", "write")),
            without(data("write", "generated_text", "passed", "text")),
            without(data("write", "generated_text", "failed", "text")),
            without(data("grade", "marks", "passed", "score")),
            (OUTPUTS, "outputs: []"),
        ],
        "no-end-node",
        "there is no EndNode among its nodes",
        "- {$component_ref: begin}",
    ),
    "nothing leads away from an EndNode": (
        [after(EDGES, control("passed", "write"))],
        "end-node",
        "ControlFlowEdge 'passed_to_write' leads away from the EndNode 'passed', where the flow ends",
        "{$component_ref: passed}",
    ),
    "a control edge leads to every EndNode": (
        [without(control("sort", "failed", "default"))],
        "unreached-node",
        "no control edge leads to the EndNode 'failed'",
        "{$component_ref: failed}",
    ),
    "the StartNode has a way on": (
        [without(control("begin", "write"))],
        "open-branch",
        "no control edge leaves the StartNode 'begin' by its branch 'next'",
        "{$component_ref: begin}",
    ),
    "one edge leaves by a branch": (
        [after(EDGES, control("grade", "failed"))],
        "second-edge",
        "a second edge from branch 'next' of the ToolNode 'grade'; 'grade_to_failed' is the first",
        "{component_type: ControlFlowEdge, name: grade_to_passed",
    ),
    "an edge without from_branch leaves by the branch next": (
        [after(EDGES, control("grade", "failed", "next"))],
        "second-edge",
        "a second edge from branch 'next' of the ToolNode 'grade'; 'grade_to_failed' is the first",
        "{component_type: ControlFlowEdge, name: grade_to_passed",
    ),
    "an edge leaves by a branch of its node": (
        [("from_branch: good", "from_branch: god")],
        "unknown-branch",
        "ControlFlowEdge 'sort_to_grade': the BranchingNode 'sort' has no branch 'god'",
        "god",
    ),
    "a BranchingNode has no branch next": (
        [(", from_branch: good", "")],
        "unknown-branch",
        "ControlFlowEdge 'sort_to_grade': the BranchingNode 'sort' has no branch 'next'",
        "{$component_ref: sort}",
    ),
    "branches are those its configuration leads to": (
        [(BRANCHES, BRANCHES + ", branches: [good, default, other]")],
        "unknown-branch",
        "BranchingNode 'sort' has no branch 'other'",
        "other",
    ),
    "branches are all there": (
        [(BRANCHES, BRANCHES + ", branches: [good]")],
        "missing-branch",
        "BranchingNode 'sort': 'default' missing in its branches",
        "[good]",
    ),
    "branches are there once": (
        [(BRANCHES, BRANCHES + ", branches: [good, default, good]")],
        "duplicate-branch",
        "BranchingNode 'sort': branch 'good' is there twice",
        "good",
    ),
    "an EndNode has no branches": (
        [(FAILED, FAILED + ", branches: [next]")],
        "unknown-branch",
        "EndNode 'failed' has no branch 'next', as it has none",
        "next",
    ),
    "control edges join nodes of the flow": (
        [without(listed("grade"))],
        "unknown-node",
        "ControlFlowEdge 'sort_to_grade': the ToolNode 'grade' is not in the nodes of Flow 'school'",
        "{$component_ref: grade}",
    ),
    "data edges join nodes of the flow": (
        with_new("far", "EndNode", "inputs: [{title: x}]", (VALUES, data("begin", "topic", "far", "x"))),
        "unknown-node",
        "DataFlowEdge 'begin.topic': the EndNode 'far' is not in the nodes of Flow 'school'",
        "{$component_ref: far}",
    ),
}

DATA = {
    "a data edge comes from an output": (
        [after(VALUES, data("begin", "topics", "write", "topic"))],
        "unknown-property",
        "DataFlowEdge 'begin.topics': the StartNode 'begin' has no output 'topics'",
        "topics",
    ),
    "a data edge leads to an input": (
        [after(VALUES, data("begin", "topic", "grade", "essays"))],
        "unknown-property",
        "DataFlowEdge 'begin.topic': the ToolNode 'grade' has no input 'essays'",
        "essays",
    ),
    "a BranchingNode has no outputs": (
        [after(VALUES, data("sort", "branch", "grade", "essay"))],
        "unknown-property",
        "DataFlowEdge 'sort.branch': the BranchingNode 'sort' has no output 'branch', as it has none",
        "branch",
    ),
    "an output fits the input it goes to": (
        [after(VALUES, data("write", "generated_text", "passed", "score"))],
        "property-type",
        "DataFlowEdge 'write.generated_text': output 'generated_text' of the LlmNode 'write' is string, "
        "which cannot become input 'score' of the EndNode 'passed', number",
        "score",
    ),
    "EndNodes agree on the types of outputs": (
        [
            (FAILED, FAILED.replace("string", "[string, 'null']")),
            (OUTPUTS, OUTPUTS.replace("string", "string, default: ''")),
        ],
        "property-type",
        "output 'text' is string in the EndNode 'passed', and string or null in the EndNode 'failed'",
        "[{title: text, type: [string, 'null']}]",
    ),
    "a flow gives what an EndNode gives": (
        [(OUTPUTS, OUTPUTS.replace("]", ", {title: skore, type: number}]"))],
        "output-of-no-end",
        "Flow 'school': no EndNode has an output 'skore'",
        "{title: skore, type: number}",
    ),
    "a flow gives it as the EndNode does": (
        [(OUTPUTS, OUTPUTS.replace("string", "integer"))],
        "property-type",
        "Flow 'school': output 'text' is string in the EndNode 'passed', not integer",
        "{title: text, type: integer}",
    ),
    "a flow's output that an EndNode lacks has a default": (
        [(OUTPUTS, OUTPUTS.replace(", default: 0", ""))],
        "missing-default",
        "Flow 'school': output 'score' needs a default, as the EndNode 'failed' lacks it",
        "{title: score, type: number}",
    ),
}


@pytest.mark.parametrize(
    ("changes", "code", "message", "place"), [*CONTROL.values(), *DATA.values()], ids=[*CONTROL, *DATA]
)
def test_a_rule_of_flows(loader: Any, changes: Any, code: Any, message: Any, place: Any) -> None:
    problem = loader.problem(changed(changes))
    assert problem.code == code
    assert problem.message.endswith(message)
    assert loader.place(problem).startswith(place)


def test_the_start_node_is_a_start_node(loader: Any) -> None:
    text = changed([("start_node: {$component_ref: begin}", "start_node: {$component_ref: write}")])
    problem = next(item for item in loader.problems(text) if "start_node" in item.message)
    assert problem.code == "start-node"
    assert problem.message == "Flow 'school': its start_node must be a StartNode, not the LlmNode 'write'"
    assert loader.place(problem) == "{$component_ref: write}"


ACCEPTED = {
    "several branches lead to one node": [
        (control("sort", "failed", "default"), control("sort", "grade", "default")),
        (BRANCHES, "mapping: {fine: good, poor: bad}"),
        after(EDGES, control("sort", "failed", "bad")),
    ],
    "several values of a mapping are one branch": [(BRANCHES, "mapping: {fine: good, great: good}")],
    "a mapping has a branch called default": [(BRANCHES, "mapping: {fine: good, poor: default}")],
    "from_branch is null, or next": [
        (control("begin", "write"), control("begin", "write", "null")),
        (control("write", "sort"), control("write", "sort", "next")),
    ],
    "branches are written, in any order": [(BRANCHES, BRANCHES + ", branches: [default, good]")],
    "branches are null": [(BRANCHES, BRANCHES + ", branches: null")],
    "branches are empty": [(BRANCHES, BRANCHES + ", branches: []")],
    "a node leads to itself": [
        (BRANCHES, "mapping: {fine: good, poor: again}"),
        after(EDGES, control("sort", "sort", "again")),
    ],
    "an input has several sources": [after(VALUES, data("begin", "topic", "passed", "text"))],
    "an input has a default, and no source": [
        without(data("grade", "marks", "passed", "score")),
        (PASSED, PASSED.replace("number}", "number, default: 1}")),
    ],
    "an output goes nowhere": [
        (PASSED, "outputs: [{title: text, type: string}]}"),
        without(data("grade", "marks", "passed", "score")),
        (OUTPUTS, "outputs: [{title: text, type: string}]"),
    ],
    "an integer becomes a string": [after(VALUES, data("grade", "marks", "passed", "text"))],
    "a flow gives less than its EndNodes": [(OUTPUTS, "outputs: []")],
    "a flow's outputs are not written": [without(OUTPUTS + "\n")],
    "a flow's inputs are not written": [("inputs: [{title: topic, type: string}]\noutputs", "outputs")],
    "a default stands for an output one EndNode lacks, which another has in a type it can become": [
        (OUTPUTS, OUTPUTS.replace("type: number", "type: string").replace("default: 0", "default: none"))
    ],
    "EndNodes differ in defaults and descriptions": [
        (FAILED, FAILED.replace("string", "string, default: none, description: why"))
    ],
    "two edges are called the same": [("name: grade_to_passed", "name: begin_to_write")],
    "two EndNodes leave by the same branch": [("branch_name: sadly, ", "branch_name: next, ")],
}


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED)
def test_what_flows_may_do(loader: Any, changes: Any) -> None:
    assert loader.graph(changed(changes)).warnings == ()


WARNED = {
    "an input that has neither a source nor a default is missed when its node runs": (
        [without(data("write", "generated_text", "grade", "essay"))],
        "no-source",
        "{component_type: ToolNode, name: grade,",
    ),
    "a node may be where the flow ends": (
        [
            without(control("grade", "passed")),
            after(EDGES, control("sort", "passed", "more")),
            (BRANCHES, "mapping: {fine: good, poor: more}"),
        ],
        "open-branch",
        "{$component_ref: grade}",
    ),
    "an output no EndNode has may have a default": (
        [(OUTPUTS, OUTPUTS.replace("]", ", {title: skore, type: number, default: 0}]"))],
        "output-of-no-end",
        "{title: skore, type: number, default: 0}",
    ),
    "one of several branches may be left open": (
        [(BRANCHES, "mapping: {fine: good, poor: again}")],
        "open-branch",
        "{$component_ref: sort}",
    ),
    "the default branch of a BranchingNode may be left open": (
        [("from_branch: default", "from_branch: bad"), (BRANCHES, "mapping: {fine: good, poor: bad}")],
        "open-branch",
        "{$component_ref: sort}",
    ),
    "a node that is not an EndNode may be out of reach": (
        [
            after("nodes:\n", listed("lost")),
            *with_new("lost", "OutputMessageNode", "message: hello", (EDGES, control("lost", "failed"))),
        ],
        "unreached-node",
        "{$component_ref: lost}",
    ),
    "nodes of one name are told apart by their ids": (
        [("ToolNode, name: grade,", "ToolNode, name: write,")],
        "duplicate-name",
        "write",
    ),
}


@pytest.mark.parametrize(("changes", "code", "place"), WARNED.values(), ids=WARNED)
def test_what_is_worth_a_warning(loader: Any, changes: Any, code: Any, place: Any) -> None:
    [warning] = loader.graph(changed(changes)).warnings
    assert (warning.code, warning.severity) == (code, "warning")
    assert loader.place(warning).startswith(place)


# ------------------------------------------------------------------ inputs and outputs of a component


def flow_of(component: Any) -> Any:
    """A flow of one node, to which values flow by name."""
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


def llm(rest: Any) -> Any:
    return f"component_type: LlmNode, llm_config: {MODEL}, {rest}"


def api(rest: Any) -> Any:
    return f"component_type: ApiNode, url: 'http://x/{{{{a}}}}', http_method: GET, {rest}"


START = "component_type: StartNode"
TOOL_NODE = "component_type: ToolNode, tool: {$component_ref: tool}"
AGENT_NODE = "component_type: AgentNode, agent: {$component_ref: agent}"
FLOW_NODE = "component_type: FlowNode, subflow: {$component_ref: inner}"
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
        ("unknown-property", "LlmNode 'it': 'b' is none of its inputs", "{title: b}"),
    ),
    "an input, where there are no placeholders": (
        llm("prompt_template: '{a}', inputs: [{title: a}]"),
        ("unknown-property", "LlmNode 'it': 'a' is none of its inputs, as it has none", "{title: a}"),
    ),
    "a placeholder in a key of the data of an ApiNode": (
        api("data: {'{{b}}': [1]}, inputs: [{title: a}]"),
        ("missing-property", "ApiNode 'it': 'b' is missing in its inputs", "[{title: a}]"),
    ),
    "an input of an ApiNode is no placeholder": (
        api("inputs: [{title: a}, {title: b}]"),
        ("unknown-property", "ApiNode 'it': 'b' is none of its inputs", "{title: b}"),
    ),
    "a ToolNode takes what its tool does not": (
        TOOL_NODE + ", inputs: [{title: a}, {title: b}]",
        ("unknown-property", "ToolNode 'it': 'b' is none of its inputs", "{title: b}"),
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
        ("unknown-property", "AgentNode 'it': 'm' is none of its outputs", "{title: m}"),
    ),
    "a FlowNode takes what its flow does not": (
        FLOW_NODE + ", inputs: [{title: a}, {title: b}]",
        ("unknown-property", "FlowNode 'it': 'b' is none of its inputs", "{title: b}"),
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
        ("unknown-property", "MapNode 'it': 'collected_b' is none of its outputs", "{title: collected_b}"),
    ),
    "a MapNode reduces what its flow does not give": (
        MAP_NODE + ", reducers: {c: sum}",
        ("unknown-property", "MapNode 'it': reducer of 'c', which is no output of Flow 'inner'", "sum"),
    ),
    "a MapNode sums texts": (
        MAP_NODE + ", reducers: {b: sum}",
        ("property-type", "MapNode 'it': sum of 'b', which is string", "sum"),
    ),
    "the user says something that is no text": (
        ASK + ", outputs: [{title: age, type: integer}]",
        (
            "property-type",
            "InputMessageNode 'it': what the user says is string, and cannot be declared as integer",
            "{title: age, type: integer}",
        ),
    ),
    "the user says two things": (
        ASK + ", outputs: [{title: x, type: string}, {title: y, type: string}]",
        ("unknown-property", "InputMessageNode 'it': 'y' is none of its outputs", "{title: y, type: string}"),
    ),
    "a message gives something": (
        SAY + ", outputs: [{title: said}]",
        (
            "unknown-property",
            "OutputMessageNode 'it': 'said' is none of its outputs, as it has none",
            "{title: said}",
        ),
    ),
    "a property is there twice": (
        llm("prompt_template: '{{a}}', inputs: [{title: a}, {title: a}]"),
        ("duplicate-property", "'it': a second property called 'a'", "{title: a}"),
    ),
}


@pytest.mark.parametrize(("component", "expected"), LISTS.values(), ids=LISTS)
def test_lists_are_those_its_configuration_leads_to(loader: Any, component: Any, expected: Any) -> None:
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
def test_lists_may_say_more(loader: Any, component: Any) -> None:
    assert loader.graph(flow_of(component)).warnings == ()


def test_the_input_of_a_branching_node_has_any_name(loader: Any) -> None:
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
    ],
)
def test_start_and_end_nodes_give_what_they_take(loader: Any, change: Any, place: Any) -> None:
    problem = next(item for item in loader.problems(changed([change])) if item.code == "unequal-lists")
    assert "its inputs and its outputs must be the same" in problem.message
    assert loader.place(problem) == place


def test_values_flow_by_name_where_there_is_no_list_of_data_edges(loader: Any) -> None:
    text = changed([(FLOW[FLOW.index(VALUES) : FLOW.index(TABLE)], "")])
    codes = {(problem.code, problem.message.split(" has")[0]) for problem in loader.graph(text).warnings}
    assert codes == {
        ("no-source", "Flow 'school': input 'branching_mapping_key' of the BranchingNode 'sort'"),
        ("no-source", "Flow 'school': input 'essay' of the ToolNode 'grade'"),
        ("no-source", "Flow 'school': input 'text' of the EndNode 'passed'"),
        ("no-source", "Flow 'school': input 'score' of the EndNode 'passed'"),
        ("no-source", "Flow 'school': input 'text' of the EndNode 'failed'"),
    }


def test_an_empty_list_of_data_edges_is_no_data_flow(loader: Any) -> None:
    text = changed([(FLOW[FLOW.index(VALUES) : FLOW.index(TABLE)], "data_flow_connections: []\n")])
    assert ("no-source", "topic") in {
        (item.code, item.message.split("'")[3]) for item in loader.graph(text).warnings
    }


NO_SOURCE = {
    "its placeholder": (
        [without(data("begin", "topic", "write", "topic"))],
        "{{topic}}",
        "connect an output to it, or give it a default",
    ),
    "its placeholder in a later line": (
        [
            without(data("begin", "topic", "write", "topic")),
            (node("write", "LlmNode", f"{PROMPT}, llm_config: {MODEL}"), ""),
            after(
                TABLE,
                "  write:\n    component_type: LlmNode\n    name: write\n    prompt_template: |\n"
                f"      Write.\n      On {{{{ topic }}}}, please.\n    llm_config: {MODEL}\n",
            ),
        ],
        "{{ topic }}",
        "connect an output to it, or give it a default",
    ),
    "a text that is referred to": (
        [
            without(data("begin", "topic", "write", "topic")),
            (PROMPT, "prompt_template: {$component_ref: prompt}"),
            after(TABLE, "  prompt: 'On {{topic}}'\n"),
        ],
        "{$component_ref: prompt}",
        "connect an output to it, or give it a default",
    ),
    "what is written of it": (
        [without(data("begin", "topic", "write", "topic")), (PROMPT, PROMPT + ", inputs: [{title: topic}]")],
        "{title: topic}",
        "connect an output to it, or give it a default",
    ),
    "its node": (
        [without(data("write", "generated_text", "grade", "essay"))],
        "{component_type: ToolNode, name: grade,",
        "connect an output to it, or give it a default",
    ),
    "its node, with an output that is nearly called so": (
        [
            (data("begin", "topic", "write", "topic"), data("begin", "topics", "write", "topic")),
            ("name: begin, inputs: [{title: topic,", "name: begin, inputs: [{title: topics,"),
            ("\ninputs: [{title: topic,", "\ninputs: [{title: topics,"),
            (VALUES + data("begin", "topics", "write", "topic"), VALUES),
        ],
        "{{topic}}",
        "did you mean 'topics'? Otherwise connect an output to it, or give it a default",
    ),
}


@pytest.mark.parametrize(("changes", "place", "hint"), NO_SOURCE.values(), ids=NO_SOURCE)
def test_an_input_without_a_source_is_told_of_where_it_is_asked_for(
    loader: Any, changes: Any, place: Any, hint: Any
) -> None:
    [warning] = loader.graph(changed(changes)).warnings
    assert (warning.code, warning.hint) == ("no-source", hint)
    assert loader.place(warning).startswith(place)


def test_hints_do_not_depend_on_the_order_of_hashes(loader: Any) -> None:
    """Of names that are not near, the hint lists all, in the order they are written in."""
    branches = "{a: east, b: south, c: west, d: north}"
    text = flow_of(f"component_type: BranchingNode, mapping: {branches}, branches: [zzz]")
    hint = next(item.hint for item in loader.problems(text) if item.code == "unknown-branch")
    assert hint == "known: east, south, west, north, default"
    outputs = [f"{{title: {name}, default: 1}}" for name in ("east", "south", "west", "north")]
    text = changed([(OUTPUTS, "outputs: [{title: zzz}]"), (PASSED, f"outputs: [{', '.join(outputs)}]}}")])
    hint = next(item.hint for item in loader.problems(text) if item.code == "output-of-no-end")
    assert hint == "known: east, south, west, north, text"


def test_rules_hold_in_flows_inside(loader: Any) -> None:
    text = flow_of(FLOW_NODE).replace(
        control("in", "out"), control("in", "out") + "  " + control("in", "out", "away")
    )
    problem = loader.problem(text)
    assert (problem.code, loader.place(problem)) == ("unknown-branch", "away")


def test_all_problems_are_told_in_the_order_of_the_file(loader: Any) -> None:
    text = changed(
        [
            ("from_branch: good", "from_branch: god"),
            (OUTPUTS, OUTPUTS.replace(", default: 0", "")),
            after(VALUES, data("begin", "topics", "write", "topic")),
        ]
    )
    assert [item.code for item in loader.problems(text)] == [
        "missing-default",
        "unknown-branch",
        "unknown-property",
    ]
