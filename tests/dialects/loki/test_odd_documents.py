"""Odd documents: each is refused with a location, or runs. Nothing else may happen."""

from __future__ import annotations

import pytest

from tests.dialects.loki.loader import Loader


def graph(node: str, rest: str = "") -> str:
    """Return a graph whose first node is `node`."""
    return f"start: a\n{rest}nodes:\n  a: {node}\n  b: {{type: end}}\n"


ASK = "type: approval, question: q, on_other: b"

# the document; what is said of it, and the line and column
REFUSED = {
    "an empty file": ("", "the file is empty", (1, 1)),
    "a list": ("- a\n", "expected a mapping, found a list", (1, 1)),
    "no nodes": ("start: a\nnodes: {}\n", "there is no node 'a'", (1, 8)),
    "a list of nodes": ("start: a\nnodes: []\n", "nodes: expected a mapping, found an empty list", (2, 8)),
    "nodes that are null": ("start: a\nnodes:\n", "nodes: expected a mapping, found nothing", (2, 7)),
    "a node that is null": ("start: a\nnodes:\n  a:\n", "a: expected a mapping, found nothing", (3, 5)),
    "a type that is null": (
        graph("{type: null}"),
        "type: expected one of agent, script, approval, input, llm, rag, map, end, found nothing (null)",
        (3, 13),
    ),
    "a type that is a number": (graph("{type: 1}"), "map, end, found the number 1", (3, 13)),
    "a type that is a list": (graph("{type: [end]}"), "map, end, found a list", (3, 13)),
    "a node given twice": (graph("{type: end}") + "  a: {type: end}\n", "key 'a' is given twice", (5, 3)),
    "a temperature that is no number": (
        graph("{type: end}", "temperature: .nan\n"),
        "temperature: expected a finite number, found the number nan",
        (2, 14),
    ),
    "a top_p without end": (
        graph("{type: llm, prompt: p, next: b, top_p: -.inf}"),
        "top_p: expected a finite number",
        (3, 45),
    ),
    "a number in a schema that JSON does not have": (
        graph("{type: llm, prompt: p, next: b, output_schema: {maximum: .inf}}"),
        "maximum: a number that JSON does not have",
        (3, 63),
    ),
    "an id that is a number": (graph("{id: 1, type: end}"), "id: expected text, found the number 1", (3, 11)),
    "a key that is a number": (
        "start: a\nnodes: {1: {type: end}}\n",
        "this key is read as a number, not as text",
        (2, 9),
    ),
    "a route that is a boolean": (
        graph(f"{{{ASK}, options: ['true'], routes: {{true: b}}}}"),
        "this key is read as a boolean",
        (3, 77),
    ),
    "routes that are a list": (
        graph(f"{{{ASK}, options: [b], routes: [b]}}"),
        "routes: expected a mapping, found a list",
        (3, 71),
    ),
    "a list of fallback nodes": (
        graph("{type: llm, prompt: q, next: b, fallback: [b]}"),
        "fallback: expected text, found a list",
        (3, 48),
    ),
    "an anchor inside itself": (
        "start: a\nnodes: &n {a: *n}\n",
        "'*n' is used inside '&n' itself",
        (2, 15),
    ),
    "a version that is null": (
        graph("{type: end}", "version:\n"),
        "version: expected 1.0, found nothing (null)",
        (2, 9),
    ),
    "a quote that is not closed": (
        'start: a\nnodes: {a: {type: end, output: "x\n',
        'this " is never closed',
        (2, 32),
    ),
    "a name of the engine": (
        "start: __end__\nnodes: {__end__: {type: end}}\n",
        "'__end__' is not a name for a node",
        (2, 9),
    ),
    "an agent that no folder can have": (
        graph('{type: agent, prompt: p, next: b, agent: "x\\0y"}'),
        "there is no agent",
        (3, 47),
    ),
    "an agent with a name that is too long": (
        graph(f"{{type: agent, prompt: p, next: b, agent: {'x' * 5000}}}"),
        "there is no agent",
        (3, 47),
    ),
    "a rag node that is no name of a file": (
        "start: ../a\nnodes: {../a: {type: rag, documents: [x], next: b}, b: {type: end}}\n",
        "which no file can have",
        (2, 9),
    ),
    "a rag node with a name that is too long": (
        f"start: {'x' * 300}\nnodes: {{{'x' * 300}: {{type: rag, documents: [x], next: b}}, b: {{type: end}}}}\n",
        "which no file can have",
        (2, 9),
    ),
    "a rag node with the name of a manifest": (
        "start: graph\nnodes: {graph: {type: rag, documents: [x], next: b}, b: {type: end}}\n",
        "has the name of the node, and graph.yaml is a manifest",
        (2, 9),
    ),
    "a rag node with the name of the other manifest": (
        "start: config\nnodes: {config: {type: rag, documents: [x], next: b}, b: {type: end}}\n",
        "has the name of the node, and config.yaml is a manifest",
        (2, 9),
    ),
    "a seed that is no number": (
        graph("{type: end}", "initial_state: {x: [1, .nan]}\n"),
        "a number that JSON does not have",
        (2, 24),
    ),
    "a time-out without end": (
        graph("{type: end}", "settings: {timeout: .inf}\n"),
        "timeout: expected a finite number",
        (2, 21),
    ),
    "seeds too deep": (
        graph("{type: end}", f"initial_state: {'[' * 3000}{']' * 3000}\n"),
        "nested more than 100 levels deep",
        (2, 115),
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_an_odd_document_is_refused_with_a_location(which: str, loader: Loader) -> None:
    text, message, place = REFUSED[which]
    problem = loader.problems(text)[0]
    assert message in problem.message
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == place


def test_bytes_that_are_not_text_are_refused(loader: Loader) -> None:
    loader.write({"agents/desk/graph.yaml": ""})
    (loader.folder / "agents/desk/graph.yaml").write_bytes(b"\x89PNG\r\n\x1a\n\xff\x00")
    assert "not a text file" in loader.reloaded()[0].message


@pytest.mark.parametrize("length", [0, 1, 40, 70, 80])
def test_a_truncated_file_is_refused(length: int, loader: Loader) -> None:
    text = graph("{type: input, question: q, next: b}", "settings: {timeout: 5}\n")
    assert loader.problems(text[:length])


# fields of which an empty value is one, anchors, and ids with letters of any kind
SOUND = {
    "empty fields": graph("{type: llm, prompt: p, tools: , state_updates: , next: b}", "settings:\n"),
    "an anchor": "start: a\nnodes: {a: &n {type: end}, b: *n}\n",
    "a merge key": "start: a\nnodes: {b: &n {type: end}, a: {<<: *n, output: hi}}\n",
    "an empty id": graph('{id: "", type: end}'),
    "ids of any letters": (
        "start: 'a:b/c'\nnodes: {'a:b/c': {type: input, question: q, next: '*'}, '*': {type: end}}\n"
    ),
    "global tools that no file can be": graph(
        "{type: end}", f'global_tools: ["{"x" * 300}.sh", "a\\0.sh", "", "."]\n'
    ),
    "no option": graph(f"{{{ASK}, options: [], routes: {{}}}}"),
    "whole numbers for others": graph("{type: llm, prompt: p, temperature: 1, timeout: 5, next: b}"),
}


@pytest.mark.parametrize("which", SOUND)
def test_an_odd_document_is_accepted(which: str, loader: Loader) -> None:
    folder_of_global_tools = {"functions/tools/a.sh": ""}
    assert loader.graph(SOUND[which], folder_of_global_tools).nodes


def test_a_long_chain_and_a_long_cycle(loader: Loader) -> None:
    def chain(target: str) -> str:
        nodes = "".join(f"  n{at}: {{type: input, question: q, next: n{at + 1}}}\n" for at in range(1000))
        last = f"  n1000: {{type: input, question: q, next: {target}}}\n  z: {{type: end}}\n"
        return f"start: n0\nnodes:\n{nodes}{last}"

    assert len(loader.graph(chain("z")).nodes) == 1002
    (problem,) = loader.problems(chain("n0"))
    assert problem.code == "cycle"
    assert problem.message.endswith("n999 → n1000 → n0") or "n1000 → n0 → n1" in problem.message
