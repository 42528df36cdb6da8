"""The rules for nodes that run side by side: a valid graph, and changes that break one rule each."""

from __future__ import annotations

import pytest

from harness.errors import ManifestError
from tests.dialects.loki.loader import Loader

GRAPH = """\
name: survey
version: "1.0"
model: openai:gpt-4o
enabled_skills: [charts]
reducers: {notes: append}
start: fork
nodes:
  fork: {type: llm, prompt: go, enabled_skills: [charts], next: [left, right]}
  left: {type: llm, prompt: l, state_updates: {notes: "{{output}}"}, next: each}
  right: {type: llm, prompt: r, state_updates: {notes: "{{output}}"}, next: each}
  each: {type: map, over: "{{notes}}", as: note, branch: look, collect_into: found, next: done}
  look: {type: llm, prompt: "{{note}}"}
  done: {type: end, output: "{{found}}"}
"""


def test_the_valid_graph_has_no_problems(loader: Loader) -> None:
    graph = loader.graph(GRAPH, {})
    assert graph.warnings == ()
    assert [node.name for node in graph.nodes] == ["fork", "left", "right", "each", "done"]
    assert {(edge.source, edge.target) for edge in graph.edges} >= {("fork", "left"), ("fork", "right")}


BROKEN = {
    "a reducer": (
        ("{notes: append}", "{}"),
        "missing-reducer",
        "'left' and 'right' run side by side after 'fork', and both write 'notes'",
    ),
    "the name of a reducer": (("append", "apend"), "bad-value", "notes: expected one of append"),
    "nobody is asked beside others": (
        (
            'right: {type: llm, prompt: r, state_updates: {notes: "{{output}}"}',
            "right: {type: input, question: r",
        ),
        "bad-branch",
        "the input node 'right' cannot run beside others, after node 'fork'",
    ),
    "a branch": (("branch: look", "branch: lok"), "unknown-node", "there is no node 'lok'"),
    "the type of a branch": (
        ('look: {type: llm, prompt: "{{note}}"}', "look: {type: end}"),
        "bad-branch",
        "the branch of node 'each' is of type end",
    ),
    "a branch has no next": (
        ('prompt: "{{note}}"', 'prompt: "{{note}}", next: done'),
        "bad-branch",
        "node 'look' is the branch of 'each', and cannot have next",
    ),
    "a branch has no updates": (
        ('prompt: "{{note}}"', 'prompt: "{{note}}", state_updates: {a: b}'),
        "bad-branch",
        "cannot have state_updates",
    ),
    "a branch has no schema": (
        ('prompt: "{{note}}"', 'prompt: "{{note}}", output_schema: {type: object}'),
        "bad-branch",
        "cannot have output_schema",
    ),
    "only the map runs the branch": (
        ("r, state_updates", "r, fallback: look, state_updates"),
        "bad-branch",
        "fallback of node 'right' leads to 'look', which only the map node 'each' runs",
    ),
    "skills are those of the graph": (
        ("go, enabled_skills: [charts]", "go, enabled_skills: [chart]"),
        "unknown-skill",
        "node 'fork': 'chart' is none of the enabled_skills of the graph",
    ),
    "each of several targets exists": (
        ("[left, right]", "[left, rigt]"),
        "unknown-node",
        "there is no node 'rigt'",
    ),
}


@pytest.mark.parametrize(("change", "code", "message"), BROKEN.values(), ids=BROKEN)
def test_a_rule(loader: Loader, change: tuple[str, str], code: str, message: str) -> None:
    assert GRAPH.count(change[0]) == 1
    with pytest.raises(ManifestError) as refused:
        loader.graph(GRAPH.replace(*change), {})
    told = [(problem.code, problem.message) for problem in refused.value.problems]
    assert any(each == code and message in text for each, text in told), told
