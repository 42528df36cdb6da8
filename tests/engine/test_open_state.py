"""A graph with an open state: one mapping of any keys, which a node or an input replaces as a whole."""

from typing import Any

import pytest

from harness.engine.conversation import Conversation, run_inside
from harness.graph import observe
from harness.graph.model import START, Dispatch, Edge, Update
from tests.engine.graphs import graph, send, simulate, writes


def open_graph(nodes: Any, edges: Any, **more: Any) -> Any:
    return graph(nodes, edges, open_state=True, **more)


def adds(**values: Any) -> Any:
    """A node that returns its state with more values."""

    async def run(state: Any, ctx: Any) -> Any:
        return Update({**state, **values})

    return run


def test_the_update_of_a_node_is_the_whole_new_state() -> None:
    built = open_graph({"a": adds(x=1), "b": writes(seen=dict)}, [(START, "a"), ("a", "b")])
    ending, trace = send(built, {"any key": "kept"})
    assert ending.state == {"seen": {"any key": "kept", "x": 1}}
    assert observe.path(trace.events) == ["a", "b"]


@pytest.mark.parametrize("value", [{}, {"q": 1}])
def test_the_input_is_the_state_a_run_starts_with(value: Any) -> None:
    assert send(open_graph({"a": writes(seen=dict)}, [(START, "a")]), value)[0].state == {"seen": value}


def test_each_input_is_the_whole_state() -> None:
    async def main(simulation: Any) -> Any:
        conversation = Conversation(open_graph({"a": adds(x=1)}, [(START, "a")]), simulation)
        await conversation.send({"q": 1})
        return await conversation.send({"r": 2})

    assert simulate(main).state == {"r": 2, "x": 1}


def test_the_router_sees_routing_values_over_the_state_which_does_not_keep_them() -> None:
    async def leaves(state: Any, ctx: Any) -> Any:
        return Update({"x": 1, "way": "kept"}, routing_values={"way": "right"})

    async def by_way(state: Any, run: Any) -> Any:
        seen.append(state)
        return [edge for edge in edges if edge.condition == state["way"]]

    seen: list[Any] = []
    edges = [Edge("a", "b", "kept"), Edge("a", "c", "right")]
    nodes = {"a": leaves, "b": adds(b=True), "c": adds(c=True)}
    built = open_graph(nodes, [(START, "a"), *edges], routers={"a": by_way})
    assert send(built)[0].state == {"x": 1, "way": "kept", "c": True}
    assert seen == [{"x": 1, "way": "right"}]


def test_a_router_sees_every_key() -> None:
    async def by_label(state: Any, run: Any) -> Any:
        return [edge for edge in edges if edge.condition == state["label"]]

    edges = [Edge("a", "b", "left"), Edge("a", "c", "right")]
    built = open_graph(
        {"a": adds(label="right"), "b": adds(), "c": adds()}, [(START, "a"), *edges], routers={"a": by_label}
    )
    assert observe.path(send(built)[1].events) == ["a", "c"]


def test_nodes_of_one_superstep_cannot_both_write() -> None:
    built = open_graph({"a": adds(x=1), "b": adds(y=2)}, [(START, "a"), (START, "b")])
    ending, trace = send(built, {"q": 1})
    assert (ending.status, type(ending.error).__name__) == ("failed", "InvalidUpdateError")
    assert ending.state == {"q": 1}
    assert observe.path(trace.events) == [["a", "b"]]


def scatters(items: Any) -> Any:
    async def scatter(state: Any, run: Any) -> Any:
        return [Dispatch(edge, {"item": item}) for item in items]

    edge = Edge("a", "work")
    return open_graph({"a": adds(), "work": adds()}, [(START, "a"), edge], routers={"a": scatter})


def test_the_state_of_one_dispatched_visit_replaces_that_of_the_graph_and_two_collide() -> None:
    assert send(scatters([1]), {"q": 1})[0].state == {"item": 1}
    assert send(scatters([1, 2]), {"q": 1})[0].status == "failed"


def test_a_node_may_pause_with_a_partial_update() -> None:
    async def leaves(state: Any, ctx: Any) -> Any:
        return Update({**state, "said": await ctx.pause("well?", partial_update={"draft": 1})})

    async def main(simulation: Any) -> Any:
        conversation = Conversation(open_graph({"a": leaves}, [(START, "a")]), simulation)
        return [await conversation.send({"q": 1}), await conversation.resume("yes")]

    paused, ending = simulate(main)
    assert (paused.state, ending.state) == ({"draft": 1}, {"q": 1, "said": "yes"})


def test_graphs_with_and_without_open_state_nest() -> None:
    inner = open_graph({"a": adds(x=1)}, [(START, "a")])

    async def runs(state: Any, ctx: Any) -> Any:
        return Update((await run_inside(ctx, inner, dict(state))).state)

    assert send(open_graph({"outer": runs}, [(START, "outer")]), {"q": 1})[0].state == {"q": 1, "x": 1}
