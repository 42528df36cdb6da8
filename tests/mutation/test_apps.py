"""A LangGraph app is mutated on its compiled graph. Source: docs/mutate.md."""

from __future__ import annotations

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
