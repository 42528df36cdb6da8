"""Warnings of writes that the state drops or cannot take."""

from __future__ import annotations

import pytest

from tests.dialects.yagra.loader import Loader

WORKFLOW = """\
version: "1.0"
start_at: split
end_at: [join]
state_schema:
  parts: {type: list}
  sums: {type: list, reducer: add}
  talk: {type: messages}
nodes:
  - {id: split, handler: split, fallback: judge}
  - {id: sum_up, handler: sum_up}
  - {id: judge, handler: judge}
  - {id: join, handler: join}
edges:
  - {source: split, target: sum_up, fan_out: {items_key: parts, item_key: part}}
  - {source: sum_up, target: join}
  - {source: judge, target: join}
"""
SCHEMA = WORKFLOW[WORKFLOW.index("state_schema") : WORKFLOW.index("nodes")]
ASKS = "params: {prompt_ref: p.yaml#part, model: {provider: openai, name: gpt-4o-mini}, output_key: sums}"
FORK = """\
  - {source: split, target: sum_up}
  - {source: split, target: judge}
"""
MAPPED = "  - {source: split, target: sum_up, fan_out: {items_key: parts, item_key: part}}\n"
FILES = {
    "flows/p.yaml": "part: {user: '{part}'}\n",
    "flows/inner.yaml": (
        'version: "1"\nstart_at: a\nend_at: [a]\nnodes: [{id: a, handler: x}]\nedges: []\n'
        "state_schema: {sums: {type: list, reducer: add}}\n"
    ),
}


def changed(*changes: tuple[str, str]) -> str:
    text = WORKFLOW
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_writes_that_fit_are_no_warnings(loader: Loader) -> None:
    assert loader.graph(WORKFLOW).warnings == ()


@pytest.mark.parametrize("handler", ["llm", "streaming_llm", "structured_llm"])
def test_a_built_in_handler_writes_no_list_that_could_be_appended(loader: Loader, handler: str) -> None:
    schema = ", schema_yaml: 'a: int'}" if handler == "structured_llm" else "}"
    asks = f"handler: {handler}, {ASKS.removesuffix('}')}{schema}"
    (warning,) = loader.graph(changed(("handler: sum_up", asks)), FILES).warnings
    assert (warning.code, loader.place(warning)) == ("not-a-list", "sums")
    assert warning.message == f"node 'sum_up': 'sums' appends lists (reducer: add), and {handler} writes none"


def test_a_custom_handler_may_write_a_list(loader: Loader) -> None:
    assert loader.graph(changed(("handler: sum_up", f"handler: sum_up, {ASKS}")), FILES).warnings == ()


def test_messages_accept_text(loader: Loader) -> None:
    asks = f"handler: llm, {ASKS.replace('sums', 'talk')}"
    assert loader.graph(changed(("handler: sum_up", asks)), FILES).warnings == ()


def test_an_item_key_that_is_declared_collides(loader: Loader) -> None:
    (warning,) = loader.graph(
        changed(("parts: {type: list}", "parts: {type: list}\n  part: {type: str}"))
    ).warnings
    assert (warning.code, loader.place(warning)) == ("collision", "part")
    assert warning.message == "'part' is in state_schema, and each item of 'sum_up' writes it: they collide"
    assert warning.hint == "leave it out of state_schema: the node is given its item all the same"


def test_an_item_key_that_is_appended_does_not(loader: Loader) -> None:
    appended = "parts: {type: list}\n  part: {type: list, reducer: add}"
    assert loader.graph(changed(("parts: {type: list}", appended))).warnings == ()


def test_an_item_key_that_a_subgraph_does_not_give_back_does_not(loader: Loader) -> None:
    text = changed(
        ("parts: {type: list}", "parts: {type: list}\n  part: {type: str}"),
        ("handler: sum_up", "handler: subgraph, params: {workflow_ref: inner.yaml}"),
    )
    assert loader.graph(text, FILES).warnings == ()


def test_a_mapped_model_node_collides_on_a_key_without_a_reducer(loader: Loader) -> None:
    asks = f"handler: llm, {ASKS.replace('sums', 'said')}"
    text = changed(
        ("parts: {type: list}", "parts: {type: list}\n  said: {type: str}"), ("handler: sum_up", asks)
    )
    (warning,) = loader.graph(text, FILES).warnings
    assert (warning.code, loader.place(warning)) == ("collision", "said")
    assert warning.message == "'said' has no reducer, and each item of 'sum_up' writes it: they collide"


def test_mapped_calls_collide_without_a_state_schema(loader: Loader) -> None:
    (warning,) = loader.graph(changed((SCHEMA, ""))).warnings
    assert (warning.code, loader.place(warning)) == ("collision", "{items_key: parts, item_key: part}")
    assert warning.message == "'sum_up' runs for several items, which collide without a state_schema"


def test_parallel_nodes_collide_without_a_state_schema(loader: Loader) -> None:
    (warning,) = loader.graph(changed((SCHEMA, ""), (MAPPED, FORK))).warnings
    assert (warning.code, loader.place(warning)) == ("collision", "{source: split, target: judge}")
    assert warning.message == "the nodes after 'split' run in parallel, and collide without a state_schema"


def test_parallel_nodes_do_not_collide_with_a_state_schema(loader: Loader) -> None:
    assert loader.graph(changed((MAPPED, FORK))).warnings == ()


def test_an_edge_that_is_written_twice_leads_to_one_node(loader: Loader) -> None:
    twice = "  - {source: split, target: sum_up}\n" * 2
    assert loader.graph(changed((SCHEMA, ""), (MAPPED, twice))).warnings == ()
