"""Reachability in a graph."""

from harness.dialects.kit.rules import reachable

EDGES = [("a", "b"), ("b", "a"), ("b", "c"), ("d", "c"), ("e", "e")]


def test_the_start_and_its_successors_are_reachable_also_in_cycles() -> None:
    assert reachable("a", EDGES) == {"a", "b", "c"}
    assert reachable("d", EDGES) == {"d", "c"}


def test_a_node_without_edges_reaches_itself() -> None:
    assert reachable("c", EDGES) == {"c"}
    assert reachable("nowhere", []) == {"nowhere"}
