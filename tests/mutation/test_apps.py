"""A LangGraph app is mutated on its compiled graph. Source: docs/mutate.md."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.mutation.conftest import Mutate

APP = """\
from typing import Literal, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    letter: str
    kind: str
    log: str


def sort(state):
    return {"kind": "bill" if "pay" in state["letter"] else "note"}


def desk(state) -> Literal["bill", "note"]:
    return state["kind"]


builder = StateGraph(State)
builder.add_node(sort)
builder.add_node("bill", lambda state: {"log": "billed"})
builder.add_node("note", lambda state: {"log": "noted"})
builder.add_edge(START, "sort")
builder.add_conditional_edges("sort", desk)
graph = builder.compile()
"""
SUITE = """\
harness: 1
manifest: app.py:graph
scenarios:
  - {name: bill, input: {letter: please pay}, expect: {path: [sort, bill]}}
"""


def test_nodes_are_skipped_and_targets_of_conditional_edges_exchanged(mutate: Mutate) -> None:
    Path("app.py").write_text(APP)
    Path("desk.scenario.yaml").write_text(SUITE)
    found = mutate("--operator", "node", "--operator", "route")["by_id"]
    swapped = found["route:app.py:graph:sort/bill:swapped"]
    assert (swapped["outcome"], swapped["check"]) == ("killed", "path")
    assert (
        swapped["diff"]
        == "  node sort\n- leads to bill, or to note\n+ leads to note instead of bill, and the reverse\n"
    )
    skipped = found["node:app.py:graph:bill:skipped"]
    assert (skipped["outcome"], skipped["suggestion"]) == ("survived", "output: {log: billed}")
    assert found["node:app.py:graph:note:skipped"]["outcome"] == "no_coverage"


def test_a_node_is_at_the_function_that_it_runs(mutate: Mutate) -> None:
    Path("app.py").write_text(APP)
    Path("desk.scenario.yaml").write_text(SUITE)
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for args in (["init", "-q"], ["add", "-A"], [*settings, "commit", "-qm", "one"]):
        subprocess.run(["git", *args], check=True)
    Path("app.py").write_text(APP.replace('state["letter"]', 'state["letter"].lower()'))
    found = mutate("--changed", "--operator", "node")["by_id"]
    assert {id_: each["where"] for id_, each in found.items()} == {
        "node:app.py:graph:sort:skipped": "app.py:12"
    }


NESTED = """\
from typing import Literal, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    letter: str
    log: str


def sort(state) -> Literal["bill", "__end__"]:
    return "bill" if "pay" in state["letter"] else END


inner = StateGraph(State)
inner.add_node("read", lambda state: {"log": "read"})
inner.add_node("bill", lambda state: {"log": "billed"})
inner.add_edge(START, "read")
inner.add_conditional_edges("read", sort)
builder = StateGraph(State)
builder.add_node("desk", inner.compile())
builder.add_edge(START, "desk")
graph = builder.compile()
"""


def test_nodes_and_edges_of_a_nested_graph_are_mutated_by_their_path(mutate: Mutate) -> None:
    Path("app.py").write_text(NESTED)
    Path("desk.scenario.yaml").write_text(SUITE.replace("path: [sort, bill]", "path: [desk]"))
    found = mutate("--operator", "node", "--operator", "route")["by_id"]
    swapped = found["route:app.py:graph:desk/read/desk:swapped"]
    assert (swapped["outcome"], swapped["suggestion"]) == ("survived", "output: {log: billed}")
    skipped = found["node:app.py:graph:desk/bill:skipped"]
    assert (skipped["outcome"], skipped["suggestion"]) == ("survived", "output: {log: billed}")
