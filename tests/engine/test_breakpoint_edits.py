"""Edits of the state at a breakpoint, which may change the route of the run."""

from typing import Any

from langgraph.errors import InvalidUpdateError

from harness.graph import observe
from harness.graph.model import END, START, Dispatch, Edge, Lifecycle, Update
from tests.engine.breakpoints import Talk, chain, fork, logs, mapping, pauses
from tests.engine.graphs import ADDED, COUNT, graph, writes


def test_an_edit_is_merged_into_the_channels() -> None:
    talk = Talk(chain(**pauses(before="b")), {"log": ["edit"], "n": 5, "ghost": 1})
    assert talk.last.state == {"log": ["a", "edit", "b"], "n": 5}
    assert talk.paths == [["a"], ["b"]]
    assert talk.routes == [[START, "a"], ["a", "b"], ["b", END]]


def test_an_edit_before_the_first_node_is_merged_too() -> None:
    talk = Talk(chain(**pauses(before="a")), {"log": ["edit"]}, value={"log": ["in"]})
    assert talk.last.state["log"] == ["in", "edit", "a", "b"]


def test_an_edit_of_an_open_state_is_the_whole_state() -> None:
    nodes = {"a": writes(x=1), "b": writes(seen=dict)}
    built = graph(nodes, [(START, "a"), ("a", "b")], open_state=True, **pauses(before="b"))
    assert Talk(built, {"y": 2}).last.state == {"seen": {"y": 2}}
    assert Talk(built, {}).last.state == {"seen": {"x": 1}}


def test_the_dialect_converts_an_edit() -> None:
    async def edit(value: Any, run: Any) -> Any:
        return {"log": [value["said"]]}

    built = chain(lifecycle=Lifecycle(update_state=edit), **pauses(before="b"))
    assert Talk(built, {"said": "hi"}).last.state["log"] == ["a", "hi", "b"]


def test_a_value_that_is_no_mapping_is_refused_and_the_run_stays_paused() -> None:
    talk = Talk(chain(**pauses(before="b")), "yes", {})
    assert talk.statuses == ["interrupted", "failed", "completed"]
    error = talk.endings[1].error
    assert error.code == "not-an-edit"
    assert str(error) == (
        "the run is at a breakpoint (b), where nothing is asked: expected {} to go on, or a mapping that updates the "
        "state, found 'yes'"
    )


def switch(**more: Any) -> Any:
    """A graph in which `a` is followed by the node that the label names: `b` unless an edit changes it."""

    async def by_label(state: Any, run: Any) -> Any:
        run.warn(f"asked with {state['label']}")
        return [edge for edge in edges if edge.condition == state["label"]]

    async def labels(state: Any, ctx: Any) -> Any:
        return Update({"log": ["a"]}, routing_values={"label": "b"})

    edges = [Edge("a", "b", "b"), Edge("a", "c", "c")]
    nodes = {**logs("bcd"), "a": labels}
    more = {"pause_after": frozenset("a"), "channels": [ADDED], **more}
    return graph(nodes, [(START, "a"), *edges, ("b", "d"), ("c", "d")], routers={"a": by_label}, **more)


def test_an_edit_asks_the_router_of_the_last_node_again() -> None:
    talk = Talk(switch(), {"label": "c"})
    assert talk.paths == [["a"], ["c", "d"]]
    assert [observe.warnings(turn) for turn in talk.turns] == [["asked with b"], ["asked with c"]]


def test_a_new_route_replaces_the_old_one_in_the_trace() -> None:
    talk = Talk(switch(), {"label": "c"})
    assert [observe.routes(turn) for turn in talk.turns] == [
        [[START, "a"], ["a", "b"]],
        [["a", "c"], ["c", "d"], ["d", END]],
    ]
    assert talk.routes == [[START, "a"], ["a", "c"], ["c", "d"], ["d", END]]
    assert observe.coverage(talk.trace.events)["branches"] == ["a -> c [c]"]


def test_a_route_that_is_chosen_again_is_recorded_once() -> None:
    talk = Talk(switch(), {"label": "b"})
    assert [observe.routes(turn) for turn in talk.turns] == [
        [[START, "a"], ["a", "b"]],
        [["b", "d"], ["d", END]],
    ]
    assert talk.paths == [["a"], ["b", "d"]]


def test_without_an_edit_no_router_is_asked() -> None:
    assert observe.warnings(Talk(switch(), {}).turns[1]) == []


def test_a_router_that_fails_on_an_edit_fails_the_turn_at_its_node_and_the_run_stays_paused() -> None:
    talk = Talk(switch(), {"log": ["edit"]}, "yes", {})
    assert [(ending.status, ending.node, type(ending.error).__name__) for ending in talk.endings[1:3]] == [
        ("failed", "a", "KeyError"),
        ("failed", None, "NotAnEdit"),
    ]
    assert talk.logs == [["a"], ["a"], ["a"], ["a", "b", "d"]]


def test_an_edit_may_lead_to_another_node_with_a_pause_which_it_passes() -> None:
    talk = Talk(switch(pause_before=frozenset("c")), {"label": "c"})
    assert talk.statuses == ["interrupted", "completed"]


def test_an_edit_before_a_fan_out_changes_its_items() -> None:
    talk = Talk(mapping(**pauses(before=["work"])), {"log": [3]}, value={"log": [1, 2]})
    assert talk.paths == [["a"], [["work"] * 3, "count"]]
    assert talk.last.state["log"] == [1, 2, 3, 100, 200, 300]
    assert talk.routes.count(["a", "work"]) == 3


def test_an_edit_that_empties_the_fan_out_ends_the_run_with_the_edited_state() -> None:
    async def scatter(state: Any, run: Any) -> Any:
        return [Dispatch(edge, {}) for _ in range(state["n"])]

    edge = Edge("a", "work")
    nodes = {"a": writes(), "work": writes()}
    built = graph(nodes, [(START, "a"), edge], [COUNT], routers={"a": scatter}, **pauses(before=["work"]))
    talk = Talk(built, {"n": 0}, value={"n": 2})
    assert talk.statuses == ["interrupted", "completed"]
    assert (talk.paths[1], talk.last.state) == ([], {"n": 0})
    assert talk.routes == [[START, "a"], ["a", END]]


def test_an_edit_after_a_fan_out_repeats_it() -> None:
    talk = Talk(mapping(**pauses(before=["count"])), {"log": [3]}, {}, value={"log": [1, 2]})
    assert talk.statuses == ["interrupted", "interrupted", "completed"]
    assert talk.paths == [["a", ["work", "work"]], [["work"] * 3], ["count"]]
    assert talk.last.state["log"] == [1, 2, 100, 200, 3, 100, 200, 300]


def test_an_edit_after_parallel_nodes_is_ambiguous() -> None:
    talk = Talk(fork(**pauses(before="d")), {"log": ["edit"]}, {})
    assert talk.statuses == ["interrupted", "failed", "completed"]
    assert "several ran side by side" in str(talk.endings[1].error)
    assert talk.last.state["log"] == [*"abcd"]


def test_an_error_of_a_router_is_reported_unchanged() -> None:
    async def refuses(state: Any, run: Any) -> Any:
        if state["n"]:
            raise InvalidUpdateError("not so")
        return [edge]

    edge = Edge("a", "b")
    built = graph(
        logs("ab"), [(START, "a"), edge], [ADDED, COUNT], routers={"a": refuses}, **pauses(before="b")
    )
    assert str(Talk(built, {"n": 1}).last.error) == "not so"


def test_equal_conversations_have_equal_digests() -> None:
    assert len({Talk(switch(), {"label": "c"}).trace.digest() for _ in range(3)}) == 1
