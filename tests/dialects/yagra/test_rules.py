"""The rules for workflows: a valid one, and changes that break one rule each.

spec: "Validation Rules".
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.yagra.loader import Loader
from tests.dialects.yagra.valid import EDGES, PROMPTS, WORKFLOW, changed


def test_the_valid_workflow_has_no_problems(loader: Loader) -> None:
    graph = loader.graph(WORKFLOW, PROMPTS)
    assert [node.name for node in graph.nodes] == ["sort", "press", "name", "file", "bin"]
    assert graph.warnings == ()


# the rule: the change that breaks it; the code, a part of the message, the place it points to, the hint
FAULTS = {
    # 2, 3, 4, 8: ids
    "ids are unique": (
        (EDGES, "  - {id: press, handler: press_again}\n" + EDGES),
        "duplicate-id",
        "a second node with the id 'press' (first in line 12)",
        "press",
        "",
    ),
    "the words of the graph are no ids": (
        (EDGES, "  - {id: __end__, handler: press}\n" + EDGES),
        "reserved-name",
        "'__end__' is not a name for a node",
        "__end__",
        "",
    ),
    "start_at is a node": (
        ("start_at: sort", "start_at: srot"),
        "unknown-node",
        "start_at must be the id of a node, and there is no node 'srot'",
        "srot",
        "did you mean 'sort'?",
    ),
    "a distant id is not suggested": (
        ("start_at: sort", "start_at: kiln"),
        "unknown-node",
        "there is no node 'kiln'",
        "kiln",
        "known: sort, press, name, file, bin",
    ),
    "end_at are nodes": (
        ("end_at: [file", "end_at: [flie"),
        "unknown-node",
        "end_at must be the id of a node, and there is no node 'flie'",
        "flie",
        "did you mean 'file'?",
    ),
    "interrupt_before are nodes": (
        ("interrupt_before: [file]", "interrupt_before: [fil]"),
        "unknown-node",
        "interrupt_before must be the id of a node, and there is no node 'fil'",
        "fil",
        "did you mean 'file'?",
    ),
    "interrupt_after are nodes": (
        ("[press]", "[prss]"),
        "unknown-node",
        "interrupt_after must be the id of a node, and there is no node 'prss'",
        "prss",
        "did you mean 'press'?",
    ),
    "sources are nodes": (
        ("source: name", "source: nme"),
        "unknown-node",
        "the source of an edge must be the id of a node, and there is no node 'nme'",
        "nme",
        "did you mean 'name'?",
    ),
    "targets are nodes": (
        ("target: name", "target: nme"),
        "unknown-node",
        "the target of an edge must be the id of a node, and there is no node 'nme'",
        "nme",
        "did you mean 'name'?",
    ),
    "the end is not written": (
        ("source: name, target: file", "source: name, target: __end__"),
        "unknown-node",
        "there is no node '__end__'",
        "__end__",
        "known: sort, press, name, file, bin",
    ),
    "the end is not written, as LangGraph calls it": (
        ("source: name, target: file", "source: name, target: END"),
        "unknown-node",
        "there is no node 'END'",
        "END",
        "START and END are not written: start_at and end_at name the first node and the last ones",
    ),
    "fallbacks are nodes": (
        ("fallback: bin", "fallback: bim"),
        "unknown-node",
        "the fallback of node 'press' must be the id of a node, and there is no node 'bim'",
        "bim",
        "did you mean 'bin'?",
    ),
    "a fallback is another node": (
        ("fallback: bin", "fallback: press"),
        "own-fallback",
        "the fallback of node 'press' is the node itself",
        "press",
        "",
    ),
    # 6: edges
    "fan-outs stand alone": (
        (EDGES, EDGES + "  - {source: press, target: file, fan_out: {items_key: sheets, item_key: sheet}}\n"),
        "edge-kind",
        "a second fan_out edge from 'press': a node has one at most",
        "{items_key: sheets, item_key: sheet}",
        "",
    ),
    "a label leads one way": (
        ("condition: torn", "condition: whole"),
        "duplicate-branch",
        "a second edge from 'sort' with the condition 'whole'",
        "whole",
        "",
    ),
    "nothing leads away from an end": (
        (EDGES, EDGES + "  - {source: bin, target: file}\n"),
        "end-node",
        "an edge leads away from 'bin', which is in end_at",
        "bin",
        "remove the edge, or the node from end_at",
    ),
    "structured answers are no labels": (
        ("handler: sort_leaf", "handler: structured_llm"),
        "no-label",
        "conditional edges leave node 'sort', and its handler structured_llm never gives a label",
        "structured_llm",
        "use llm, or a handler of your own that returns __next__",
    ),
    "streams are no labels": (
        ("handler: sort_leaf", "handler: streaming_llm"),
        "no-label",
        "conditional edges leave node 'sort', and its handler streaming_llm never gives a label",
        "streaming_llm",
        "use llm, or a handler of your own that returns __next__",
    ),
    # 7: reducers
    "lists and messages are reduced": (
        ("type: list, reducer", "type: dict, reducer"),
        "reducer-type",
        "field 'sheets' of type dict has a reducer: expected type list or messages",
        "add",
        "",
    ),
    # 5: references
    "prompt files are there": (
        ("names.yaml", "nams.yaml"),
        "missing-file",
        "file 'prompts/nams.yaml' does not exist",
        '"prompts/nams.yaml#latin"',
        "the folder project/flows/prompts does not exist",
    ),
    "paths with dots are not looked up above": (
        ('"prompts/', '"./prompts/'),
        "missing-file",
        "file './prompts/names.yaml' does not exist",
        '"./prompts/names.yaml#latin"',
        "the folder project/flows/prompts does not exist",
    ),
    "prompt keys are there": (
        ("#latin", "#latn"),
        "unknown-prompt",
        "there is no prompt 'latn' in ",
        '"prompts/names.yaml#latn"',
        "did you mean 'latin'?",
    ),
    "nested keys are there": (
        ("#latin", "#latin.usr"),
        "unknown-prompt",
        "there is no prompt 'latin.usr' in ",
        '"prompts/names.yaml#latin.usr"',
        "did you mean 'user'?",
    ),
    "text has no keys": (
        ("#latin", "#plain.user"),
        "unknown-prompt",
        "there is no prompt 'plain.user' in ",
        '"prompts/names.yaml#plain.user"',
        "",
    ),
    "a reference names a key behind #": (
        ("#latin", "#"),
        "prompt-reference",
        "prompt_ref 'prompts/names.yaml#' names no key",
        '"prompts/names.yaml#"',
        "expected file, file#key or file#key.key, each with @version where it is pinned",
    ),
    "a reference names a file": (
        ("prompts/names.yaml#latin", "#latin"),
        "prompt-reference",
        "prompt_ref '#latin' names no file",
        '"#latin"',
        "expected file, file#key or file#key.key, each with @version where it is pinned",
    ),
    "a reference is text": (
        ('"prompts/names.yaml#latin"', "7"),
        "wrong-type",
        "prompt_ref: expected text, found the number 7",
        "7",
        "",
    ),
    "prompts are outside": (
        ("prompt_ref:", "prompt: {user: Hi}, prompt_ref:"),
        "unsupported",
        "a prompt inside the workflow is not supported",
        "prompt",
        "put it into a file of its own and refer to it: prompt_ref: prompts/mine.yaml#key",
    ),
    "prompts are outside the params of the workflow": (
        ("params: {paper", "params: {prompt: {user: Hi}, paper"),
        "unsupported",
        "a prompt inside the workflow is not supported",
        "prompt",
        "put it into a file of its own and refer to it: prompt_ref: prompts/mine.yaml#key",
    ),
    "models are inside": (
        ("output_key: leaf", "output_key: leaf, model_ref: models.yaml#big"),
        "unsupported",
        "model_ref is not supported",
        "model_ref",
        "describe the model in place: model: {provider: …, name: …}",
    ),
    "params are a mapping": (
        ("handler: discard", "handler: discard, params: [a]"),
        "wrong-type",
        "params: expected a mapping, found a list",
        "[a]",
        "",
    ),
    "a subgraph has a file": (
        ("handler: discard", "handler: subgraph"),
        "no-workflow-ref",
        "the subgraph node 'bin' needs 'workflow_ref' in its params",
        "{id: bin, handler: subgraph}",
        "",
    ),
    "the file of a subgraph has its name": (
        ("handler: discard", "handler: subgraph, params: {workflow: parts/a.yaml}"),
        "no-workflow-ref",
        "the subgraph node 'bin' needs 'workflow_ref' in its params",
        "{workflow: parts/a.yaml}",
        "'workflow' is not known: did you mean 'workflow_ref'?",
    ),
    "the file of a subgraph is there": (
        ("handler: discard", "handler: subgraph, params: {workflow_ref: parts/a.yaml}"),
        "missing-file",
        "subgraph 'bin': file 'parts/a.yaml' does not exist",
        "parts/a.yaml",
        "the folder project/flows/parts does not exist",
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_broken_rule_is_reported_with_its_location(loader: Loader, fault: tuple[Any, ...]) -> None:
    loader.assert_problem(*fault)


@pytest.mark.parametrize(
    ("edge", "kinds"),
    [
        ("{source: sort, target: file}", ("unconditional", "conditional")),
        (
            "{source: sort, target: file, fan_out: {items_key: sheets, item_key: sheet}}",
            ("fan_out", "conditional"),
        ),
        ("{source: press, target: file}", ("unconditional", "fan_out")),
    ],
)
def test_each_edge_of_a_mixed_kind_is_reported(loader: Loader, edge: Any, kinds: Any) -> None:
    problems = loader.problems(changed((EDGES, f"{EDGES}  - {edge}\n")), PROMPTS)
    new, *old = problems
    assert loader.place(new) == edge
    assert {problem.code for problem in problems} == {"edge-kind"}
    assert new.message.startswith(f"this edge is {kinds[0]}, and other edges")
    assert all(problem.message.startswith(f"this edge is {kinds[1]}, and other edges") for problem in old)


def test_an_unresolved_reference_hides_other_problems(loader: Loader) -> None:
    text = changed(
        ("#latin", "#latn"), ("handler: discard", "handlr: discard"), ("start_at: sort", "start_at: x")
    )
    assert [problem.code for problem in loader.problems(text, PROMPTS)] == ["unknown-prompt"]


def test_all_broken_rules_are_reported_at_once_before_problems_of_subgraphs(loader: Loader) -> None:
    text = changed(
        ("start_at: sort", "start_at: x"),
        ("condition: torn", "condition: whole"),
        ("handler: sort_leaf", "handler: structured_llm"),
        ("handler: discard", "handler: subgraph"),
    )
    codes = [problem.code for problem in loader.problems(text, PROMPTS)]
    assert codes == ["unknown-node", "no-label", "duplicate-branch"]


def test_unusual_workflows_that_are_allowed(loader: Loader) -> None:
    text = changed(
        ("nodes:\n", "nodes:\n  - {id: island, handler: x, params: null}\n"),
        (EDGES, EDGES + "  - {source: name, target: file}\n"),
    )
    graph = loader.graph(text, PROMPTS)
    assert [edge.target for edge in graph.edges_from("name")] == ["file"]
    assert [warning.code for warning in graph.warnings] == ["unreachable-node"]
