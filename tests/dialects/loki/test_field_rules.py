"""Fields that will fail when their node runs are warnings at load. `test_rules` has more of them.

spec: "Routing requirements per node type", "input", "Knowledge base lifecycle".
"""

from __future__ import annotations

import pytest

from tests.dialects.loki.loader import Loader

END = "  done: {type: end}\n"
FILES = {"agents/desk/papers/mill.md": "It closed.", "agents/desk/weigh.sh": ""}


def ask(fields: str) -> str:
    return f"{{type: input, question: q, next: done, {fields}}}"


def recall(fields: str, document: str = "papers") -> str:
    update = 'state_updates: {found: "{{output}}"}'
    return f"{{type: rag, documents: [{document}], next: done, {update}, embedding_model: e, {fields}}}"


SIZES = "chunk_size: 9, chunk_overlap: 1"

# the node; the code, a part of the message, the place
FAULTS = {
    "an input without next": ("{type: input, question: q}", "no-next", "node 'a' has no `next`", "a"),
    "an llm without next": (
        "{type: llm, prompt: p, fallback: done}",
        "no-next",
        "cannot go on after it",
        "a",
    ),
    "a length without end": (
        ask(f"validation: len(input) > {'9' * 5000}"),
        "bad-validation",
        "cannot be read",
        f"len(input) > {'9' * 5000}",
    ),
    "a default that its validation would refuse": (
        ask("validation: len(input) > 3, default: N4"),
        "bad-validation",
        "the default of node 'a' does not fit `len(input) > 3`, and is not checked against it",
        "N4",
    ),
    "a document with a name too long": (recall(SIZES, "x" * 5000), "unreadable-file", "too long", "x" * 5000),
    "an overlap larger than a chunk": (
        recall("chunk_size: 9, chunk_overlap: 10"),
        "knowledge-base",
        "chunk_overlap, 10, is larger than chunk_size, 9",
        "10",
    ),
}


def graph(node: str) -> str:
    return f"start: a\nnodes:\n  a: {node}\n{END}"


@pytest.mark.parametrize("which", FAULTS)
def test_fields_that_will_fail_are_located(which: str, loader: Loader) -> None:
    node, code, message, place = FAULTS[which]
    expected = {code, "unreachable", "unreachable-end"}  # an end that nothing leads to is a warning, too
    warnings = loader.graph(graph(node), FILES).warnings
    assert {warning.code for warning in warnings} <= expected
    (problem,) = (warning for warning in warnings if warning.code == code)
    assert (problem.code, problem.severity, loader.place(problem)) == (code, "warning", place)
    assert message in problem.message


SOUND = {
    "a script that names the next node itself": "{type: script, script: weigh.sh, fallback: done}",
    "a default that is filled in": ask("validation: len(input) > 3, default: '{{initial_prompt}}'"),
    "a default that fits": ask("validation: len(input) >= 2, default: N4"),
    "a chunk that is all overlap": recall("chunk_size: 9, chunk_overlap: 9"),
}


@pytest.mark.parametrize("which", SOUND)
def test_fields_that_may_work_are_no_warnings(which: str, loader: Loader) -> None:
    assert loader.graph(graph(SOUND[which]), FILES).warnings == ()


def test_documents_of_a_built_base_are_not_checked(loader: Loader) -> None:
    files = {**FILES, "agents/desk/a.yaml": "embedding_model: e\n"}
    assert loader.graph(graph(recall("chunk_size: 9, chunk_overlap: 10", "gone")), files).warnings == ()


def test_an_unreachable_node_needs_no_next(loader: Loader) -> None:
    text = graph("{type: input, question: q, next: done}") + "  lost: {type: llm, prompt: p}\n"
    assert [warning.code for warning in loader.graph(text).warnings] == ["unreachable"]
    text = text.replace("a: {type: input, question: q,", "a: {type: script, script: weigh.sh,")
    assert [warning.code for warning in loader.graph(text, FILES).warnings] == ["unreachable", "no-next"]


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        (graph(ask("fallback: done")), "fallback", "it is a key of a script node and an llm node"),
        (graph(ask("documents: [papers]")), "documents", "it is a key of a rag node"),
        ("timeout: 60\n" + graph(ask("")), "timeout", "a key of the settings, an agent node, a script node,"),
        ("instructions: Be kind.\n" + graph(ask("")), "instructions", "it is a key of an llm node"),
        ("descripton: Asks.\n" + graph(ask("")), "descripton", "did you mean 'description'?"),
    ],
)
def test_the_hint_for_a_misplaced_key_names_the_sections_that_have_it(
    text: str, place: str, hint: str, loader: Loader
) -> None:
    (problem,) = loader.graph(text).warnings
    assert (problem.code, loader.place(problem)) == ("unknown-key", place)
    assert hint in problem.hint
