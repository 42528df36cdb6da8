"""The rules for workflows: a sound one, and changes that break one rule each.

spec: "Validation Rules", "Top-Level Structure".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.dialects.yagra.loader import Loader

WORKFLOW = """\
version: "1.0"
start_at: sort
end_at: [file, bin]
interrupt_before: [file]
interrupt_after: [press]
params: {paper: thin}
state_schema:
  leaf: {type: str}
  sheets: {type: list, reducer: add}
nodes:
  - {id: sort, handler: sort_leaf, retry: {max_attempts: 2, base_delay_seconds: 1}, timeout_seconds: 9}
  - {id: press, handler: press_leaf, fallback: bin}
  - {id: name, handler: llm, params: {prompt_ref: "prompts/names.yaml#latin", output_key: leaf}}
  - {id: file, handler: file_leaf}
  - {id: bin, handler: discard}
edges:
  - {source: sort, target: press, condition: whole}
  - {source: sort, target: bin, condition: torn}
  - {source: press, target: name, fan_out: {items_key: sheets, item_key: sheet}}
  - {source: name, target: file}
"""
PROMPTS = {
    "prompts/names.yaml": """\
_meta: {version: 2}
latin: {system: You know plants., user: 'Name {leaf}'}
plain: Hello
"""
}
EDGES = "edges:\n"


def changed(*changes: tuple[str, str]) -> str:
    """The sound workflow with texts in it replaced."""
    text = WORKFLOW
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_the_sound_workflow_is_sound(loader: Loader) -> None:
    graph = loader.graph(WORKFLOW, PROMPTS)
    assert [node.name for node in graph.nodes] == ["sort", "press", "name", "file", "bin"]
    assert graph.warnings == ()


# the rule: the change that breaks it; the code, a part of the message, the place it points to, the hint
FAULTS = {
    # 1, the document
    "a version": (
        ('version: "1.0"\n', ""),
        "missing-key",
        "missing key 'version' in a workflow",
        "start_at: sort",
        "",
    ),
    "the version is text": (
        ('"1.0"', "1.0"),
        "wrong-type",
        "version: expected text, found the number 1.0",
        "1.0",
        "quote it to make it text",
    ),
    "a start": (
        ("start_at: sort\n", ""),
        "missing-key",
        "missing key 'start_at' in a workflow",
        'version: "1.0"',
        "",
    ),
    "an end at least": (("[file, bin]", "[]"), "bad-value", "end_at: ", "[]", ""),
    "no key of a workflow is unknown": (
        ("interrupt_after", "interupt_after"),
        "unknown-key",
        "unknown key 'interupt_after' in a workflow",
        "interupt_after",
        "did you mean 'interrupt_after'?",
    ),
    "no key of a node is unknown": (
        ("timeout_seconds", "timeout"),
        "unknown-key",
        "unknown key 'timeout' in a node",
        "timeout",
        "did you mean 'timeout_seconds'?",
    ),
    "ids are not empty": (("id: bin", 'id: ""'), "bad-value", "id: ", '""', ""),
    "ten attempts at most": (
        ("max_attempts: 2", "max_attempts: 11"),
        "bad-value",
        "max_attempts: must be less than or equal to 10",
        "11",
        "",
    ),
    "a minute of delay at most": (
        ("base_delay_seconds: 1", "base_delay_seconds: 61"),
        "bad-value",
        "base_delay_seconds: must be less than or equal to 60",
        "61",
        "",
    ),
    "a known back-off": (
        ("max_attempts: 2", "backoff: fixd"),
        "bad-value",
        "backoff: expected one of exponential, fixed",
        "fixd",
        "did you mean 'fixed'?",
    ),
    "timeouts are whole seconds": (
        ("timeout_seconds: 9", "timeout_seconds: 0.5"),
        "wrong-type",
        "timeout_seconds: expected a whole number",
        "0.5",
        "",
    ),
    "ten minutes at most": (
        ("timeout_seconds: 9", "timeout_seconds: 601"),
        "bad-value",
        "timeout_seconds: must be less than or equal to 600",
        "601",
        "",
    ),
    "a state type that is known": (
        ("{type: str}", "{type: string}"),
        "bad-value",
        "state type 'string' is not known: expected one of str, int, float, bool, list, dict, messages",
        "string",
        "did you mean 'str'?",
    ),
    "a reducer that is known": (
        ("reducer: add", "reducer: ad"),
        "bad-value",
        "reducer 'ad' is not known: expected add",
        "ad",
        "did you mean 'add'?",
    ),
    "an edge branches or maps": (
        ("condition: torn", "condition: torn, fan_out: {items_key: sheets, item_key: sheet}"),
        "edge-kind",
        "the edge 'sort' -> 'bin' has both 'condition' and 'fan_out'",
        "fan_out",
        "",
    ),
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
        "file 'prompts/nams.yaml' is not there",
        '"prompts/nams.yaml#latin"',
        "the folder project/flows/prompts does not exist",
    ),
    "paths with dots are not looked up above": (
        ('"prompts/', '"./prompts/'),
        "missing-file",
        "file './prompts/names.yaml' is not there",
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
    "the file of a subgraph is there": (
        ("handler: discard", "handler: subgraph, params: {workflow_ref: parts/a.yaml}"),
        "missing-file",
        "subgraph 'bin': file 'parts/a.yaml' is not there",
        "parts/a.yaml",
        "the folder project/flows/parts does not exist",
    ),
}


@pytest.mark.parametrize(("change", "code", "message", "place", "hint"), FAULTS.values(), ids=FAULTS)
def test_a_broken_rule_is_named_at_its_place(
    loader: Loader, tmp_path: Path, change: Any, code: Any, message: Any, place: Any, hint: Any
) -> None:
    (problem,) = loader.problems(changed(change), PROMPTS)
    assert problem.code == code
    assert message in problem.message
    assert (loader.place(problem), problem.hint.replace(f"{tmp_path}/", "")) == (place, hint)


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
def test_edges_from_one_node_are_of_one_kind_and_each_of_them_is_named(
    loader: Loader, edge: Any, kinds: Any
) -> None:
    problems = loader.problems(changed((EDGES, f"{EDGES}  - {edge}\n")), PROMPTS)
    new, *old = problems
    assert loader.place(new) == edge
    assert {problem.code for problem in problems} == {"edge-kind"}
    assert new.message.startswith(f"this edge is {kinds[0]}, and other edges")
    assert all(problem.message.startswith(f"this edge is {kinds[1]}, and other edges") for problem in old)


def test_a_reference_that_leads_nowhere_hides_the_other_faults(loader: Loader) -> None:
    text = changed(
        ("#latin", "#latn"), ("handler: discard", "handlr: discard"), ("start_at: sort", "start_at: x")
    )
    assert [problem.code for problem in loader.problems(text, PROMPTS)] == ["unknown-prompt"]


def test_all_faults_of_the_document_are_told_at_once_and_hide_the_rules(loader: Loader) -> None:
    text = changed(
        ("handler: discard", "handlr: discard"),
        ("{type: str}", "{type: strr}"),
        ("start_at: sort", "start_at: x"),
    )
    codes = [problem.code for problem in loader.problems(text, PROMPTS)]
    assert codes == ["bad-value", "missing-key", "unknown-key"]


def test_all_broken_rules_are_told_at_once_and_hide_the_faults_of_subgraphs(loader: Loader) -> None:
    text = changed(
        ("start_at: sort", "start_at: x"),
        ("condition: torn", "condition: whole"),
        ("handler: sort_leaf", "handler: structured_llm"),
        ("handler: discard", "handler: subgraph"),
    )
    codes = [problem.code for problem in loader.problems(text, PROMPTS)]
    assert codes == ["unknown-node", "no-label", "duplicate-branch"]


def test_what_is_odd_and_yet_allowed(loader: Loader) -> None:
    text = changed(
        ("nodes:\n", "nodes:\n  - {id: island, handler: x, params: null}\n"),
        (EDGES, EDGES + "  - {source: name, target: file}\n"),
    )
    graph = loader.graph(text, PROMPTS)
    assert [edge.target for edge in graph.edges_from("name")] == ["file"]
    assert graph.warnings == ()


# ---------------------------------------------------------------- prompts


def test_a_bare_path_is_looked_up_beside_the_workflow_before_the_folders_above(loader: Loader) -> None:
    near = {"flows/prompts/names.yaml": "latin: {user: near}"}
    loader.graph(WORKFLOW, {**PROMPTS, **near})
    (problem,) = loader.problems(changed(("#latin", "#plain")), near)
    assert "flows/prompts/names.yaml" in problem.message


def test_nothing_is_looked_up_where_nothing_may_be_read(loader: Loader) -> None:
    (loader.folder.parent / "names.yaml").write_text("latin: {user: outside}", encoding="utf-8")
    (problem,) = loader.problems(changed(("prompts/names", "names")))
    assert problem.code == "missing-file"


def test_a_path_that_leads_out_of_the_project_is_refused(loader: Loader) -> None:
    (problem,) = loader.problems(changed(("prompts/names.yaml", "../../names.yaml")))
    assert (problem.code, loader.place(problem)) == ("path-outside", '"../../names.yaml#latin"')


def test_a_faulty_prompt_file_is_named_with_the_place_in_it(loader: Loader) -> None:
    (problem,) = loader.problems(WORKFLOW, {"prompts/names.yaml": "latin: [a"})
    assert problem.code == "syntax"
    assert problem.span is not None
    assert problem.span.file.endswith("prompts/names.yaml")


# ---------------------------------------------------------------- subgraphs

PARENT = """\
version: "1.0"
start_at: grow
end_at: [grow]
nodes: [{id: grow, handler: subgraph, params: {workflow_ref: REF}}]
edges: []
"""


def parent(reference: str) -> str:
    return PARENT.replace("REF", reference)


def test_the_faults_of_a_subgraph_are_told_with_the_nodes_that_lead_there(loader: Loader) -> None:
    files = {
        "parts/a.yaml": parent("b.yaml"),
        "parts/b.yaml": changed(("start_at: sort", "start_at: srt")),
        **PROMPTS,
    }
    (problem,) = loader.problems(parent("../parts/a.yaml"), files)
    expected = (
        "subgraph 'grow': subgraph 'grow': start_at must be the id of a node, and there is no node 'srt'"
    )
    assert (problem.message, problem.hint) == (expected, "did you mean 'sort'?")
    assert problem.span is not None
    assert problem.span.file.endswith("parts/b.yaml")


def test_a_subgraph_is_not_looked_up_in_the_folders_above(loader: Loader) -> None:
    (problem,) = loader.problems(parent("parts/a.yaml"), {"parts/a.yaml": WORKFLOW})
    assert problem.code == "missing-file"


def test_subgraphs_that_contain_each_other_are_refused_with_the_circle(loader: Loader) -> None:
    (problem,) = loader.problems(
        parent("a.yaml"), {"flows/a.yaml": parent("b.yaml"), "flows/b.yaml": parent("a.yaml")}
    )
    assert problem.code == "circular-reference"
    circle = problem.message.split("contain each other: ")[1].split(" → ")
    assert [path.rsplit("/", 1)[1] for path in circle] == ["a.yaml", "b.yaml", "a.yaml"]
    assert loader.place(problem) == "a.yaml"


def test_a_workflow_that_contains_itself_is_refused(loader: Loader) -> None:
    (problem,) = loader.problems(parent("main.yaml"))
    assert problem.code == "circular-reference"


def test_one_subgraph_may_stand_in_many_places(loader: Loader) -> None:
    inner = 'version: "1"\nstart_at: a\nend_at: [a]\nnodes: [{id: a, handler: h}]\nedges: []\n'
    twice = parent("a.yaml").replace(
        "nodes: [", "nodes: [{id: two, handler: subgraph, params: {workflow_ref: a.yaml}}, "
    )
    assert loader.graph(twice, {"flows/a.yaml": inner}).warnings == ()


# ---------------------------------------------------------------- warnings

# what is odd: the changes that make it so; the code, the message, the place it points to
WARNINGS = {
    "a placeholder nobody sets": (
        [("output_key: leaf", "output_key: name"), ("leaf: {type: str}", "name: {type: str}")],
        "unknown-placeholder",
        "node 'name': nothing is known to set '{leaf}' of its prompt: "
        "it is neither in state_schema nor the output_key of a node",
        "{",
    ),
    "an output_key that is not kept": (
        [("output_key: leaf", "output_key: leav")],
        "undeclared-output",
        "node 'name': its output_key 'leav' is not in state_schema, so that what it writes is lost",
        "leav",
    ),
    "an output_key that is not said": (
        [(", output_key: leaf", "")],
        "undeclared-output",
        "node 'name': its output_key 'output' is not in state_schema, so that what it writes is lost",
        '{prompt_ref: "prompts/names.yaml#latin"}',
    ),
    "a version that is another": (
        [("#latin", "#latin@1")],
        "prompt-version",
        "prompt version '1' is asked for, and ",
        '"prompts/names.yaml#latin@1"',
    ),
}


@pytest.mark.parametrize(("changes", "code", "message", "place"), WARNINGS.values(), ids=WARNINGS)
def test_what_is_odd_is_warned_about(
    loader: Loader, changes: Any, code: Any, message: Any, place: Any
) -> None:
    (warning,) = loader.graph(changed(*changes), PROMPTS).warnings
    assert (warning.code, warning.severity) == (code, "warning")
    assert message in warning.message
    assert loader.place(warning) == place


def test_a_version_that_is_pinned_and_not_there_is_warned_about(loader: Loader) -> None:
    files = {"prompts/names.yaml": "latin: {user: Hi}"}
    (warning,) = loader.graph(changed(("#latin", "#latin@2")), files).warnings
    assert warning.message.endswith("has no _meta.version")


@pytest.mark.parametrize("reference", ["#latin@2", "#latin"])
def test_a_version_that_is_right_or_not_pinned_is_no_warning(loader: Loader, reference: Any) -> None:
    assert loader.graph(changed(("#latin", reference)), PROMPTS).warnings == ()


def test_what_is_odd_about_a_subgraph_is_told_with_its_node(loader: Loader) -> None:
    odd = changed(("#latin", "#latin@1"), ("output_key: leaf", "output_key: leav"))
    (lost, version) = loader.graph(parent("inner.yaml"), {"flows/inner.yaml": odd, **PROMPTS}).warnings
    assert lost.message.startswith(
        "subgraph 'grow': node 'name': its output_key 'leav' is not in state_schema"
    )
    assert version.message.startswith("subgraph 'grow': prompt version '1' is asked for")


def test_a_subgraph_without_a_schema_may_be_given_what_its_prompts_ask_for(loader: Loader) -> None:
    inner = (
        'version: "1"\nstart_at: a\nend_at: [a]\nedges: []\n'
        "nodes: [{id: a, handler: llm, params: {prompt_ref: prompts/names.yaml#latin}}]\n"
    )
    files = {"flows/inner.yaml": inner, **PROMPTS}
    assert [warning.code for warning in loader.graph(inner, files).warnings] == ["unknown-placeholder"]
    assert loader.graph(parent("inner.yaml"), files).warnings == ()


def test_doubled_braces_are_no_placeholder(loader: Loader) -> None:
    files = {"prompts/names.yaml": "latin: {user: 'Answer {{like}} {{{leaf}}}'}"}
    assert loader.graph(WORKFLOW, files).warnings == ()


def test_prompts_that_are_text_have_no_placeholders_to_check(loader: Loader) -> None:
    files = {"prompts/names.yaml": "latin: Hello {nobody}"}
    assert loader.graph(changed(("output_key: leaf", "output_key: nowhere")), files).warnings == ()
