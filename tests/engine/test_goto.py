"""`Update.goto`: a node that names the next node itself."""

from typing import Any

import pytest

from harness.graph import observe
from harness.graph.model import END, START, Edge, Update
from tests.engine.graphs import ADDED, graph, send, writes


def goes(target: Any) -> Any:
    async def run(state: Any, ctx: Any) -> Any:
        return Update({"log": ["a"]}, goto=target)

    return run


def built(target: Any, *more: Any, anywhere: Any = ("a",)) -> Any:
    nodes = {"a": goes(target), "b": writes(log=["b"]), "c": writes(log=["c"]), "d": writes(log=["d"])}
    edges = [(START, "a"), ("a", "b"), ("b", "c"), *more]
    return graph(nodes, edges, [ADDED], goto_anywhere=frozenset(anywhere))


@pytest.mark.parametrize(
    ("target", "ran"), [(None, "abc"), ("b", "abc"), ("c", "ac"), ("d", "ad"), (END, "a")]
)
def test_a_node_may_go_to_any_node_if_the_graph_allows_it(target: Any, ran: str) -> None:
    assert send(built(target))[0].state["log"] == list(ran)


def test_the_edge_taken_is_a_route_and_the_one_branch_of_the_node() -> None:
    _, trace = send(built("d"))
    assert observe.routes(trace.events) == [[START, "a"], ["a", "d"], ["d", END]]
    assert observe.coverage(trace.events)["branches"] == ["a -> * [goto any]"]


def test_possible_coverage_has_one_branch_for_all_targets_and_no_edge() -> None:
    shape = observe.possible_coverage(built("d"))
    assert shape["branches"] == ["a -> * [goto any]"]
    assert ["a", "d"] not in shape["edges"]


def test_a_fallback_to_the_node_is_taken_as_such() -> None:
    _, trace = send(built("d", Edge("a", "d", on_error=True)))
    assert observe.coverage(trace.events)["branches"] == ["a -> d [on error]"]


def test_the_router_is_not_asked() -> None:
    async def never(state: Any, run: Any) -> Any:
        raise AssertionError

    nodes = {"a": goes("b"), "b": writes(log=["b"])}
    routed = graph(nodes, [(START, "a")], [ADDED], routers={"a": never}, goto_anywhere=frozenset({"a"}))
    assert send(routed)[0].state["log"] == ["a", "b"]


@pytest.mark.parametrize(
    ("target", "anywhere", "more"),
    [("nowhere", ("a",), ()), ("c", (), (Edge("a", "d", on_error=True),))],
    ids=["no such node", "not its fallback"],
)
def test_another_target_fails_the_run_at_the_node(target: Any, anywhere: Any, more: Any) -> None:
    ending, _ = send(built(target, *more, anywhere=anywhere))
    assert (type(ending.error).__name__, ending.node) == ("UnknownTarget", "a")
    assert f"node 'a' cannot go on to '{target}'" in str(ending.error)
