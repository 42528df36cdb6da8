"""Braces that look like a template and are never filled are located warnings.

spec: "State and Template Syntax", "state_updates".
"""

from __future__ import annotations

from time import process_time

import pytest

from tests.dialects.loki.loader import Loader

GRAPH = """\
start: read
initial_state: {place: Holm, crew: [{name: Ada}]}
nodes:
  read:
    type: llm
    prompt: |
      Read {{crew[0].name}}
        at {{place}}: PROMPT
    output_schema: {type: object, properties: {depth: {type: integer}}}
    state_updates: {said: "{{output.depth}} READ"}
    next: ask
  ask:
    type: approval
    question: "{{depth}} m, {{said}}?"
    options: ["yes", OPTION]
    routes: {"yes": write, OPTION: write}
    on_other: write
    state_updates: {choice_of: "{{choice}} ASK"}
  write:
    type: llm
    prompt: "{{initial_prompt}} {{choice_of}}"
    state_updates: {text: "{{output}} WRITE"}
    next: recall
  recall:
    type: rag
    documents: [papers]
    embedding_model: e
    chunk_size: 9
    chunk_overlap: 1
    state_updates: {found: "{{output.context}}{{output.sources[0]}} RECALL"}
    next: done
  done: {type: end, output: "{{found}} DONE"}
"""
FILES = {"agents/desk/papers/mill.md": "It closed.", "agents/desk/s.py": "print('{}')"}

# the place; what is written there; the code, a part of the message, the hint
DOUBTS = {
    "blanks": ("PROMPT", "{{ place }}", "no-template", "is text, not a template", "write {{place}}"),
    "a filter": ("PROMPT", "{{ place | upper }}", "no-template", "is text", "write {{place}}"),
    "another letter": ("DONE", "{{my-key}}", "no-template", "a to z, digits and _ . [ ]", ""),
    "two dots": ("PROMPT", "{{a..b}}", "no-path", "is not a path, so it is never set", ""),
    "no index": ("WRITE", "{{crew[]}}", "no-path", "users[0].name", ""),
    "an index that is a word": ("DONE", "{{crew[first]}}", "no-path", "is not a path", ""),
    "one brace": (
        "PROMPT",
        "{place}",
        "no-template",
        "is text: a template has two braces",
        "write {{place}}",
    ),
    "one brace around a variable": (
        "READ",
        "{output.depth}",
        "no-template",
        "two braces",
        "write {{output.depth}}",
    ),
    "a misspelt key": (
        "PROMPT",
        "{{plce}}",
        "unset-key",
        "nothing in the graph sets 'plce'",
        "did you mean 'place'?",
    ),
    "a misspelt key of a schema": ("DONE", "{{depht}}", "unset-key", "'depht'", "did you mean 'depth'?"),
    "a misspelt variable": ("WRITE", "{{ouput}}", "unset-key", "'ouput'", "did you mean 'output'?"),
    "the variable of another node": (
        "WRITE",
        "{{input}}",
        "unset-key",
        "state_updates of input nodes have it",
        "this node has {{output}}",
    ),
    "a variable outside of state_updates": (
        "DONE",
        "{{output}}",
        "unset-key",
        "state_updates of agent, llm and rag nodes have it",
        "",
    ),
    "a part of a text": (
        "WRITE",
        "{{output.depth}}",
        "unset-key",
        "text, which has no keys",
        "an output_schema makes parts of it",
    ),
    "a part of an answer": ("ASK", "{{choice[0]}}", "unset-key", "text, which has no keys", ""),
    "a misspelt part": ("READ", "{{output.dept}}", "unset-key", "no 'dept'", "did you mean 'depth'?"),
    "a part that no retrieval has": (
        "RECALL",
        "{{output.contexts}}",
        "unset-key",
        "has context and sources",
        "did you mean 'context'?",
    ),
    "a template in an option": (
        "OPTION]",
        '"{{place}}"]',
        "no-template",
        "{{place}} is not filled in here",
        "",
    ),
    "a template in a seed": (
        "Holm",
        '"{{initial_prompt}}"',
        "no-template",
        "is not filled in here: templates are filled in only in instructions, prompt,",
        "",
    ),
}


def changed(place: str, written: str) -> str:
    assert GRAPH.count(place) == 1
    text = GRAPH.replace(place, written)
    return text.replace("OPTION:", '"{{place}}":') if place == "OPTION]" else text


def test_templates_that_are_filled_are_no_warnings(loader: Loader) -> None:
    assert loader.graph(GRAPH, FILES).warnings == ()


@pytest.mark.parametrize("which", DOUBTS)
def test_a_doubtful_template_is_located(which: str, loader: Loader) -> None:
    place, written, code, message, hint = DOUBTS[which]
    (problem,) = loader.graph(changed(place, written), FILES).warnings
    assert (problem.code, problem.hint, problem.severity) == (code, hint, "warning")
    assert message in problem.message
    assert loader.place(problem).strip('"') == written.strip('"]')


@pytest.mark.parametrize(
    "written",
    [
        "{{}}",
        "{{#if x}}",
        '{{"a": 1}}',
        "{{a, b}}",
        "{town}",
        "${place}",
        '{"place": 1}',
        "{{place}",
        "{{of_the_input}}",
        "{{n.1}}",
    ],
)
def test_other_braces_and_keys_that_may_come_with_the_input_are_no_warnings(
    written: str, loader: Loader
) -> None:
    assert loader.graph(changed("PROMPT", written), FILES).warnings == ()


def test_a_script_may_set_any_key(loader: Loader) -> None:
    text = changed("DONE", "{{output}} {{plce}}").replace(
        "next: recall", "next: count\n  count: {type: script, script: s.py, next: recall}"
    )
    assert loader.graph(text, FILES).warnings == ()


def test_many_unset_keys_are_assumed_to_come_with_the_input(loader: Loader) -> None:
    keys = [f"{{{{place{at}}}}}" for at in range(30)]
    warnings = loader.graph(changed("PROMPT", " ".join(keys)), FILES).warnings
    assert len(warnings) == 20


def test_a_large_graph_with_unset_keys_loads_quickly(loader: Loader) -> None:
    def node(at: int) -> str:
        read, stored = f"prompt: '{{{{given_{at}_a}}}}'", f"state_updates: {{made_{at}_b: x}}"
        return f"  n{at}: {{type: llm, {read}, {stored}, next: n{at + 1}}}\n"

    text = f"start: n0\nnodes:\n{''.join(map(node, range(2000)))}  n2000: {{type: end}}\n"
    began = process_time()
    assert loader.graph(text).warnings == ()
    assert process_time() - began < 10
