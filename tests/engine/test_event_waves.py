"""The event scheduler: the order in which nodes start and settle, and limits."""

import asyncio
from typing import Any

import pytest

from harness.engine.context import NodeContext
from harness.engine.conversation import Conversation
from harness.graph import observe
from harness.graph.effects import ToolCall
from harness.graph.model import State, Update
from tests.engine.events import compiled, run
from tests.engine.graphs import simulate
from tests.world.stubs import world_spec


def test_a_node_starts_when_its_caller_settles_while_others_still_run() -> None:
    done = run(
        {"start": ["a", "slow"], "nodes": {"a": {"takes": 1, "to": "b"}, "b": {}, "slow": {"takes": 10}}}
    )
    assert done.starts == [("a", 0.0), ("slow", 0.0), ("b", 1.0)]
    assert done.total == 10.0
    assert done.log == ["a", "b", "slow"]


def test_nodes_without_duration_run_breadth_first() -> None:
    nodes = {"s": {"to": ["a", "b"]}, "a": {"to": "c"}, "b": {"to": "d"}, "c": {}, "d": {}}
    assert run({"start": "s", "nodes": nodes}).path == ["s", "a", "b", "c", "d"]


def test_visits_that_end_at_one_instant_settle_in_the_order_of_their_starts() -> None:
    # `late` was started first but has more to do; both end at 2.
    nodes = {
        "late": {"takes": 2, "to": "x"},
        "s": {"takes": 1, "to": "soon"},
        "soon": {"takes": 1, "to": "y"},
        "x": {},
        "y": {},
    }
    for start in (["late", "s"], ["s", "late"]):
        done = run({"start": start, "nodes": nodes})
        assert done.starts[-2:] == [("x", 2.0), ("y", 2.0)]


def test_nodes_that_take_no_time_run_one_after_the_other() -> None:
    async def two_calls(state: State, ctx: NodeContext) -> Update:
        for _ in range(2):
            await ctx.perform(ToolCall(name="t", args={}))
        return Update()

    nodes: Any = {"a": {"body": two_calls}, "b": {"body": two_calls}}
    world = world_spec(tools={"t": [{"return": 1}]})
    done = run({"start": ["a", "b"], "nodes": nodes}, world)
    assert [call["node"] for call in observe.calls(done.events)] == ["a", "a", "b", "b"]


def test_every_edge_whose_condition_holds_is_followed_and_the_others_are_not() -> None:
    nodes = {
        "a": {"writes": {"big": True}, "to": [{"b": "big"}, {"c": "small"}, "d"]},
        "b": {},
        "c": {},
        "d": {},
    }
    done = run({"start": "a", "nodes": nodes})
    assert done.path == ["a", "b", "d"]
    assert ["a", "c"] not in observe.routes(done.events)
    assert observe.coverage(done.events)["branches"] == ["a -> b [big]"]


def test_a_node_sees_the_state_of_the_run_as_it_is_at_its_start() -> None:
    seen = {}

    async def look(state: State, ctx: NodeContext) -> Update:
        seen[ctx.name] = state.get("mark")
        return Update()

    nodes = {
        "a": {"takes": 1, "writes": {"mark": 1}, "to": "b"},
        "b": {"body": look},
        "c": {"body": look},
    }
    run({"start": ["a", "c"], "nodes": nodes})
    assert seen == {"c": None, "b": 1}


def test_a_node_may_be_visited_several_times_at_once() -> None:
    nodes = {"s": {"to": ["a", "b"]}, "a": {"to": "x"}, "b": {"to": "x"}, "x": {"takes": 3}}
    done = run({"start": "s", "nodes": nodes})
    assert (done.path, done.total) == (["s", "a", "b", "x", "x"], 3.0)
    assert observe.latency(done.events, 0.0, done.total)["nodes"]["x"] == 6.0


def test_an_unfinished_visit_that_overlaps_others_counts_from_its_own_start() -> None:
    nodes = {"a": {"to": "x"}, "b": {"takes": 2, "to": "x"}, "x": {"takes": 3}}
    done = run({"start": ["a", "b"], "nodes": nodes})
    until_4 = [event for event in done.events if event["at"] <= 4]
    assert observe.latency(until_4, 0.0, 4.0)["nodes"]["x"] == 3.0 + 2.0


def test_an_input_that_activates_no_node_completes() -> None:
    done = run({"start": [], "nodes": {"a": {}}})
    assert (done.status, done.path) == ("completed", [])


# Limits


def test_activations_over_a_limit_keep_their_places_and_later_ones_start() -> None:
    nodes = {
        "s": {"to": ["a", "b", "c"]},
        **{name: {"to": ["scale", "mixer"]} for name in "abc"},
        "scale": {"takes": 2, "limit": 1},
        "mixer": {"takes": 2, "limit": 2},
    }
    done = run({"start": "s", "nodes": nodes})
    assert done.path[4:] == ["scale", "mixer", "mixer", "scale", "mixer", "scale"]
    assert [at for node, at in done.starts if node == "scale"] == [0.0, 2.0, 4.0]
    assert done.total == 6.0


def test_a_limit_may_apply_to_the_whole_graph() -> None:
    nodes: Any = {"s": {"to": list("abcde")}, **{name: {"takes": 1} for name in "abcde"}}
    assert run({"start": "s", "nodes": nodes}).total == 1.0
    done = run({"start": "s", "limit": 2, "nodes": nodes})
    assert [at for _, at in done.starts] == [0.0, 0.0, 0.0, 1.0, 1.0, 2.0]


def test_a_restarted_activation_is_queued_last() -> None:
    visits = []

    async def fail(state: State, ctx: NodeContext) -> Update:
        visits.append((state["callers"], "failed" in state))
        raise ValueError("no")

    nodes = {
        "s": {"to": ["a", "b"]},
        "a": {"to": "x"},
        "b": {"to": "x"},
        "x": {"body": fail, "tries": 2, "limit": 1},
    }
    run({"start": "s", "nodes": nodes})
    assert visits == [(["a"], False), (["b"], False), (["a"], True), (["b"], True)]


# What ends a run


def test_a_run_with_too_many_starts_fails_and_names_the_cycle() -> None:
    nodes = {
        "s": {"to": ["a", "other"]},
        "a": {"to": "b"},
        "b": {"to": "a"},
        "other": {"to": "other2"},
        "other2": {},
    }
    done = run(compiled({"start": "s", "nodes": nodes}, recursion_limit=50))
    assert done.status == "failed"
    assert str(done.ending.error) == (
        "graph 'g' did not come to an end within 50 starts of nodes; it last went round a → b"
    )
    assert len(done.path) == 50


def test_a_node_that_is_restarted_for_ever_is_named() -> None:
    nodes = {"s": {"to": "x"}, "x": {"error": "no", "tries": 10**9}}
    done = run(compiled({"start": "s", "nodes": nodes}, recursion_limit=50))
    assert str(done.ending.error).endswith("it last went round x")
    assert done.ending.node == "x"


def test_a_time_out_in_a_node_ends_its_visit_only() -> None:
    async def impatient(state: State, ctx: NodeContext) -> Update:
        try:
            async with asyncio.timeout(3):
                await ctx.sleep(60)
        except TimeoutError:
            return Update({"log": ["gave up"]})
        return Update()

    done = run(
        {"start": ["a", "b"], "nodes": {"a": {"body": impatient, "to": "c"}, "b": {"takes": 5}, "c": {}}}
    )
    assert done.starts[-1] == ("c", 3.0)
    assert (done.log, done.total) == (["gave up", "c", "b"], 5.0)


def test_a_run_that_is_cut_off_stops_its_nodes_and_keeps_the_state_reached() -> None:
    agent = {
        "start": ["a", "b"],
        "nodes": {"a": {"takes": 1, "to": "c"}, "b": {"takes": 100}, "c": {"takes": 100}},
    }

    async def main(simulation: Any) -> Any:
        conversation = Conversation(compiled(agent), simulation)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await conversation.send({})
        return len(asyncio.all_tasks()), conversation.state

    tasks, state = simulate(main)
    assert tasks == 1
    assert state["log"] == ["a"]
