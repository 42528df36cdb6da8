"""Warnings of probable mistakes in workflows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.yagra.loader import Loader
from tests.dialects.yagra.valid import PROMPTS, WORKFLOW, changed, parent

# what is odd: the changes that make it so; the code, the message, the place it points to
WARNINGS = {
    "a placeholder nobody sets": (
        [("output_key: leaf", "output_key: name"), ("leaf: {type: messages}", "name: {type: messages}")],
        "unknown-placeholder",
        "node 'name': nothing is known to set '{leaf}' of its prompt: "
        "it is neither in state_schema nor the output_key of a node",
        "{",
    ),
    "an output_key that is not kept": (
        [("output_key: leaf", "output_key: leav")],
        "undeclared-output",
        "node 'name': its output_key 'leav' is not in state_schema, so its output is lost",
        "leav",
    ),
    "an output_key that is not said": (
        [(", output_key: leaf", "")],
        "undeclared-output",
        "node 'name': its output_key 'output' is not in state_schema, so its output is lost",
        '{prompt_ref: "prompts/names.yaml#latin"}',
    ),
    "a node that nobody leads to": (
        [("- {id: bin,", "- {id: spare, handler: discard}\n  - {id: bin,")],
        "unreachable-node",
        "node 'spare' can never run: nothing leads to it",
        "spare",
    ),
    "a version that is another": (
        [("#latin", "#latin@1")],
        "prompt-version",
        "prompt version '1' is asked for, and ",
        '"prompts/names.yaml#latin@1"',
    ),
}


@pytest.mark.parametrize(("changes", "code", "message", "place"), WARNINGS.values(), ids=WARNINGS)
def test_probable_mistakes_are_warnings(
    loader: Loader, changes: Any, code: Any, message: Any, place: Any
) -> None:
    (warning,) = loader.graph(changed(*changes), PROMPTS).warnings
    assert (warning.code, warning.severity) == (code, "warning")
    assert message in warning.message
    assert loader.place(warning) == place


def test_a_pinned_version_that_does_not_match_is_a_warning(loader: Loader) -> None:
    files = {"prompts/names.yaml": "latin: {user: Hi}"}
    (warning,) = loader.graph(changed(("#latin", "#latin@2")), files).warnings
    assert warning.message.endswith("has no _meta.version")


@pytest.mark.parametrize("reference", ["#latin@2", "#latin"])
def test_a_matching_or_unpinned_version_is_no_warning(loader: Loader, reference: Any) -> None:
    assert loader.graph(changed(("#latin", reference)), PROMPTS).warnings == ()


def test_warnings_of_a_subgraph_name_its_node(loader: Loader) -> None:
    odd = changed(("#latin", "#latin@1"), ("output_key: leaf", "output_key: leav"))
    (lost, version) = loader.graph(parent("inner.yaml"), {"flows/inner.yaml": odd, **PROMPTS}).warnings
    assert lost.message.startswith(
        "subgraph 'grow': node 'name': its output_key 'leav' is not in state_schema"
    )
    assert version.message.startswith("subgraph 'grow': prompt version '1' is asked for")


def test_placeholders_of_a_subgraph_without_a_schema_may_come_from_outside(loader: Loader) -> None:
    inner = (
        'version: "1"\nstart_at: a\nend_at: [a]\nedges: []\n'
        "nodes: [{id: a, handler: llm, params: {prompt_ref: prompts/names.yaml#latin}}]\n"
        "params: {model: {provider: openai, name: gpt-4o-mini}}\n"
    )
    files = {"flows/inner.yaml": inner, **PROMPTS}
    assert [warning.code for warning in loader.graph(inner, files).warnings] == ["unknown-placeholder"]
    assert loader.graph(parent("inner.yaml"), files).warnings == ()


def test_doubled_braces_are_no_placeholder(loader: Loader) -> None:
    files = {"prompts/names.yaml": "latin: {user: 'Answer {{like}} {{{leaf}}}'}"}
    assert loader.graph(WORKFLOW, files).warnings == ()


def test_doubled_braces_around_a_key_of_the_state_are_a_warning(loader: Loader) -> None:
    files = {"prompts/names.yaml": "latin: {user: 'Answer {{leaf}} {{ other }}'}"}
    (doubled,) = loader.graph(WORKFLOW, files).warnings
    assert (doubled.message, doubled.hint) == (
        "node 'name': '{{leaf}}' of its prompt is not filled in: doubled braces are text",
        "write {leaf}",
    )
    assert doubled.span is not None
    assert doubled.span.column == 23


def test_prompts_that_are_text_have_no_placeholders_to_check(loader: Loader) -> None:
    files = {"prompts/names.yaml": "latin: Hello {nobody}"}
    text = changed(("output_key: leaf", "output_key: nowhere"), ("handler: llm", "handler: name_leaf"))
    assert loader.graph(text, files).warnings == ()


def flow(*nodes: str, edges: str = "", more: str = "") -> str:
    """Return a workflow that starts at its first node `a`."""
    written = "".join(f"  - {node}\n" for node in nodes)
    shared = "params: {model: {provider: openai, name: gpt-4o-mini}}\n"
    return f'version: "1"\nstart_at: a\nend_at: [z]\n{shared}{more}nodes:\n{written}edges: [{edges}]\n'


Z = "{id: z, handler: rest}"
SCHEMA = "state_schema: {topics: {type: list}, notes: {type: messages}}\n"
MAPPED = "{source: a, target: z, fan_out: {items_key: topics, item_key: topic}}"
TEXTS = {
    "flows/p.yaml": "topic: {user: 'About {topic}'}\nnotes: {user: '{notes}'}\nerror: {user: '{__error__}'}\n"
}


def odd(loader: Loader, text: str, files: dict[str, str] | None = None) -> list[str]:
    """Return the warnings of placeholders and keys; some of the workflows are not connected."""
    found = loader.graph(text, {**TEXTS, **(files or {})}).warnings
    return [warning.message for warning in found if warning.code != "unreachable-node"]


def test_a_mapped_node_gets_its_item(loader: Loader) -> None:
    mapped = "{id: z, handler: llm, params: {prompt_ref: p.yaml#topic, output_key: notes}}"
    assert odd(loader, flow("{id: a, handler: x}", mapped, edges=MAPPED, more=SCHEMA)) == []


def test_a_mapped_node_gets_no_other_keys(loader: Loader) -> None:
    mapped = "{id: z, handler: llm, params: {prompt_ref: p.yaml#notes, output_key: notes}}"
    assert odd(loader, flow("{id: a, handler: x}", mapped, edges=MAPPED, more=SCHEMA)) == [
        "node 'z': nothing is known to set '{notes}' of its prompt: "
        "the node runs for each item, and is given topic alone"
    ]


def test_a_mapped_node_with_another_incoming_edge_may_get_all_keys(loader: Loader) -> None:
    nodes = (
        "{id: a, handler: x}",
        "{id: b, handler: y}",
        "{id: z, handler: llm, params: {prompt_ref: p.yaml#notes, output_key: notes}}",
    )
    edges = f"{MAPPED}, {{source: b, target: z}}"
    assert odd(loader, flow(*nodes, edges=edges, more=SCHEMA)) == []


def test_a_fallback_gets_the_error(loader: Loader) -> None:
    sorry = "{id: z, handler: llm, params: {prompt_ref: p.yaml#error, output_key: notes}}"
    assert odd(loader, flow("{id: a, handler: x, fallback: z}", sorry, more=SCHEMA)) == []
    assert len(odd(loader, flow("{id: a, handler: x}", sorry, more=SCHEMA))) == 1


def test_a_label_needs_no_key_in_the_schema(loader: Loader) -> None:
    asks = "{id: a, handler: llm, params: {prompt_ref: p.yaml#notes}}"
    chosen = "{source: a, target: z, condition: go}"
    assert odd(loader, flow(asks, Z, edges=chosen, more=SCHEMA)) == []
    assert len(odd(loader, flow(asks, Z, edges="{source: a, target: z}", more=SCHEMA))) == 1


def test_a_custom_handler_writes_an_output_key_only_if_it_is_in_its_params(loader: Loader) -> None:
    own = "{id: a, handler: mine, params: {prompt_ref: p.yaml#notes}}"
    said = "{id: a, handler: mine, params: {prompt_ref: p.yaml#notes, output_key: ntoes}}"
    assert odd(loader, flow(own, Z, more=SCHEMA)) == []
    assert odd(loader, flow(said, Z, more=SCHEMA)) == [
        "node 'a': its output_key 'ntoes' is not in state_schema, so its output is lost"
    ]


def test_a_subgraph_may_set_the_key_of_a_placeholder(loader: Loader) -> None:
    outer = flow(
        "{id: a, handler: subgraph, params: {workflow_ref: inner.yaml}}",
        "{id: z, handler: llm, params: {prompt_ref: p.yaml#notes}}",
    )
    inner = flow("{id: a, handler: x}", Z)
    assert odd(loader, outer, {"flows/inner.yaml": inner}) == []
    declared = flow("{id: a, handler: x}", Z, more=SCHEMA)
    assert odd(loader, outer, {"flows/inner.yaml": declared}) == []
    others = flow("{id: a, handler: x}", Z, more="state_schema: {topics: {type: list}}\n")
    assert len(odd(loader, outer, {"flows/inner.yaml": others})) == 1


def test_a_time_that_yaml_reads_as_a_number_is_a_warning(loader: Loader) -> None:
    text = changed(("paper: thin", 'paper: 12:30, day: ["7:00", 1:2.5, 7, 1.5]'))
    first, second = loader.graph(text, PROMPTS).warnings
    assert (first.code, loader.place(first)) == ("sexagesimal", "12:30")
    assert first.message == "12:30 is read as the number 750, to the base of 60 (YAML 1.1)"
    assert loader.place(second) == "1:2.5"
