"""Branches and edges of a sherma manifest that are never taken, or always: located warnings."""

from pathlib import Path

import pytest

from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest

MANIFEST = """\
manifest_version: 1
agents:
  desk:
    state: {fields: [{name: n, type: int, default: 0}]}
    graph:
      entry_point: one
      nodes:
        - {name: one, type: set_state, args: {values: {n: "1"}}}
        - {name: two, type: set_state, args: {values: {n: "2"}}}
        - {name: three, type: set_state, args: {values: {n: "3"}}}
      edges:
"""
TO_THREE = "{source: two, target: three}"


def told(tmp_path: Path, *edges: str) -> list[str]:
    path = tmp_path / "m.yaml"
    path.write_text(MANIFEST + "".join(f"        - {edge}\n" for edge in edges))
    found = load_graph(LoadRequest((path,), agent="desk", folders=(tmp_path,)), "sherma").warnings
    return [
        f"{each.span.line}:{each.span.column} {each.message} [{each.code}]" for each in found if each.span
    ]


@pytest.mark.parametrize(
    ("branches", "expected"),
    [
        (
            "{condition: state.n > 1, target: two}, {condition: ' state.n > 1', target: three}",
            "12:87 the branch to 'three' is never taken: its condition is that of an earlier one, in line 12",
        ),
        (
            "{condition: 'true', target: two}, {condition: state.n > 1, target: three}",
            "12:82 the branch to 'three' is never taken: the condition in line 12 always holds",
        ),
        (
            "{condition: 1 > 2, target: three}, {condition: state.n > 1, target: two}",
            "12:48 the branch to 'three' is never taken: its condition never holds",
        ),
    ],
)
def test_a_branch_that_is_never_taken(tmp_path: Path, branches: str, expected: str) -> None:
    edge = f"{{source: one, branches: [{branches}]}}"
    assert told(tmp_path, edge, TO_THREE) == [f"{expected} [dead-branch]"]


def test_a_default_behind_a_branch_that_always_holds(tmp_path: Path) -> None:
    edge = "{source: one, branches: [{condition: 'true', target: two}], default: three}"
    assert told(tmp_path, edge, TO_THREE) == [
        "12:80 'default' is never taken: the condition in line 12 always holds [dead-branch]"
    ]


def test_an_edge_beside_one_with_branches_is_always_followed(tmp_path: Path) -> None:
    branching = "{source: one, branches: [{condition: state.n > 1, target: two}]}"
    assert told(tmp_path, branching, "{source: one, target: three}", TO_THREE) == [
        "13:11 this edge to 'three' is followed whatever branch of 'one' is taken [second-edge]"
    ]


def test_an_edge_that_is_written_twice(tmp_path: Path) -> None:
    edge = "{source: one, target: two}"
    assert told(tmp_path, edge, edge, TO_THREE) == [
        "13:11 a second edge from 'one' to 'two' changes nothing [second-edge]"
    ]


def test_nodes_in_parallel_and_branches_that_differ(tmp_path: Path) -> None:
    assert told(tmp_path, "{source: one, target: two}", "{source: one, target: three}") == []
    branches = "{condition: state.n > 1, target: two}, {condition: state.n > 0, target: three}"
    last = "{condition: 'true', target: three}"
    assert told(tmp_path, f"{{source: one, branches: [{branches}, {last}]}}") == []
