"""The nodes of a graph that can be reached from others."""

from harness.dialects.kit.reachable import reachable

EDGES = [("a", "b"), ("b", "a"), ("b", "c"), ("d", "c"), ("e", "e")]


def test_the_start_and_everything_behind_it_is_reached_also_in_circles() -> None:
    assert reachable("a", EDGES) == {"a", "b", "c"}
    assert reachable("d", EDGES) == {"d", "c"}


def test_a_node_without_edges_reaches_itself() -> None:
    assert reachable("c", EDGES) == {"c"}
    assert reachable("nowhere", []) == {"nowhere"}
