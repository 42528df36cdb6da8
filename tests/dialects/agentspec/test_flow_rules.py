"""The rules for flows: a valid flow, changes that break one rule each, and changes that break none.

spec: "Flow", "Relationships / Edges".
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.agentspec.flow_texts import (
    BRANCHES,
    EDGES,
    FAILED,
    FLOW_NODE,
    OUTPUTS,
    PASSED,
    VALUES,
    after,
    changed,
    control,
    data,
    flow_of,
    listed,
    with_new,
    without,
)
from tests.dialects.agentspec.loader import Loader

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
        "a flow has one StartNode, and 'other' is a second one",
        "{$component_ref: other}",
    ),
    "the StartNode is listed once": (
        [after(listed("failed"), listed("begin"))],
        "start-node",
        "a flow has one StartNode, and 'begin' is a second one",
        "{$component_ref: begin}",
    ),
    "nothing leads to the StartNode": (
        [(BRANCHES, "mapping: {fine: good, poor: again}"), after(EDGES, control("sort", "begin", "again"))],
        "start-node",
        "ControlFlowEdge 'sort_to_begin' leads to the StartNode 'begin', but no edge may lead to a StartNode",
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
        "ControlFlowEdge 'passed_to_write' leads away from the EndNode 'passed', but no edge may leave an EndNode",
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
        "BranchingNode 'sort': branch 'good' is listed twice",
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
        "which cannot be converted to input 'score' of the EndNode 'passed', number",
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
def test_a_rule_of_flows(loader: Loader, changes: Any, code: Any, message: Any, place: Any) -> None:
    problem = loader.problem(changed(changes))
    assert problem.code == code
    assert problem.message.endswith(message)
    assert loader.place(problem).startswith(place)


def test_the_start_node_is_a_start_node(loader: Loader) -> None:
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
def test_flows_without_problems(loader: Loader, changes: Any) -> None:
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
    "the StartNode takes nothing from a data edge": (
        [after(VALUES, data("grade", "marks", "begin", "topic"))],
        "start-node",
        "{$component_ref: begin}",
    ),
    "an EndNode gives nothing to a data edge": (
        [after(VALUES, data("passed", "text", "grade", "essay"))],
        "end-node",
        "{$component_ref: passed}",
    ),
}


@pytest.mark.parametrize(("changes", "code", "place"), WARNED.values(), ids=WARNED)
def test_probable_mistakes_in_a_flow_are_warnings(
    loader: Loader, changes: Any, code: Any, place: Any
) -> None:
    [warning] = loader.graph(changed(changes)).warnings
    assert (warning.code, warning.severity) == (code, "warning")
    assert loader.place(warning).startswith(place)


TEXT_BY_NAME = ("[{title: a}, {title: b}, ", "[{title: a, type: string}, {title: b}, ")
GRADER = "component_type: ToolNode, tool: {$component_ref: tool}, inputs: [{title: a, type: array}]"


def test_an_output_by_name_fits_its_input(loader: Loader) -> None:
    problem = loader.problem(flow_of(GRADER).replace(*TEXT_BY_NAME))
    assert problem.code == "property-type"
    assert problem.message == (
        "Flow 'outer': by name, output 'a' of the StartNode 'begin' is string, "
        "which cannot be converted to that input of the ToolNode 'it', array"
    )
    assert loader.place(problem) == "{title: a, type: array}"


def test_by_name_it_is_enough_that_one_of_several_outputs_fits(loader: Loader) -> None:
    lists = "inputs: [{title: a, type: array}], outputs: [{title: a, type: array}]"
    tool = f"{{component_type: ServerTool, name: sort, {lists}}}"
    repeated = f"component_type: ToolNode, tool: {tool}"
    assert loader.graph(flow_of(repeated).replace(*TEXT_BY_NAME)).warnings == ()


def test_hints_do_not_depend_on_the_order_of_hashes(loader: Loader) -> None:
    """If no name is similar, the hint lists all names in the order of the file."""
    branches = "{a: east, b: south, c: west, d: north}"
    text = flow_of(f"component_type: BranchingNode, mapping: {branches}, branches: [zzz]")
    hint = next(item.hint for item in loader.problems(text) if item.code == "unknown-branch")
    assert hint == "known: east, south, west, north, default"
    outputs = [f"{{title: {name}, default: 1}}" for name in ("east", "south", "west", "north")]
    text = changed([(OUTPUTS, "outputs: [{title: zzz}]"), (PASSED, f"outputs: [{', '.join(outputs)}]}}")])
    hint = next(item.hint for item in loader.problems(text) if item.code == "output-of-no-end")
    assert hint == "known: east, south, west, north, text"


def test_rules_apply_to_nested_flows(loader: Loader) -> None:
    text = flow_of(FLOW_NODE).replace(
        control("in", "out"), control("in", "out") + "  " + control("in", "out", "away")
    )
    problem = loader.problem(text)
    assert (problem.code, loader.place(problem)) == ("unknown-branch", "away")


def test_all_problems_are_reported_in_the_order_of_the_file(loader: Loader) -> None:
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
