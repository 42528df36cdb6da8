"""Graphs on LangGraph: supersteps, routes, pauses, nesting, and a reproducible trace."""

import contextlib
from dataclasses import dataclass
from typing import Any

import pytest

from harness.engine.conversation import Conversation, run_nested
from harness.errors import UnscriptedCall
from harness.graph import observe
from harness.graph.effects import ToolCall
from harness.graph.model import END, START, Channel, Dispatch, Edge, Lifecycle, Update
from tests.engine.graphs import ADDED, COUNT, asks, asks_tool, graph, send, simulate, writes
from tests.world.stubs import world_spec


def test_nodes_run_along_the_edges_and_updates_reach_the_channels() -> None:
    built = graph(
        {"a": writes(n=1), "b": writes(n=lambda state: state["n"] + 10)},
        [(START, "a"), ("a", "b"), ("b", END)],
        [COUNT],
    )
    ending, trace = send(built)
    assert (ending.status, ending.state["n"]) == ("completed", 11)
    assert observe.path(trace.events) == ["a", "b"]
    assert observe.routes(trace.events) == [["__start__", "a"], ["a", "b"], ["b", "__end__"]]


def test_parallel_nodes_share_a_superstep_and_a_join_runs_once() -> None:
    built = graph(
        {name: writes(log=[name]) for name in "abcd"},
        [(START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")],
        [ADDED],
    )
    ending, trace = send(built)
    assert observe.path(trace.events) == ["a", ["b", "c"], "d"]
    assert observe.visits(trace.events)["d"] == 1
    assert sorted(ending.state["log"]) == ["a", "b", "c", "d"]


def test_two_writes_to_a_plain_field_in_one_superstep_fail_the_run() -> None:
    built = graph({"a": writes(n=1), "b": writes(n=2)}, [(START, "a"), (START, "b")], [COUNT])
    ending, _ = send(built)
    assert (ending.status, type(ending.error).__name__) == ("failed", "InvalidUpdateError")
    assert str(ending.error) == "'a' and 'b' wrote in one superstep field 'n', which has no reducer"
    assert ending.error.code == "invalid-update"


def test_a_collision_with_writes_next_to_a_pause_names_all_fields_and_nodes() -> None:
    async def asks_then_writes(state: Any, ctx: Any) -> Any:
        await ctx.pause("?")
        return Update({"n": 2, "m": 2})

    built = graph(
        {"a": writes(n=1, m=1), "b": asks_then_writes}, [(START, "a"), (START, "b")], [COUNT, Channel("m")]
    )

    async def main(simulation: Any) -> Any:
        conversation = Conversation(built, simulation)
        await conversation.send({})
        return await conversation.resume("go on")

    text = "'a' and 'b' wrote in one superstep field 'n', which has no reducer (nor has 'm')"
    assert str(simulate(main).error) == text


def test_fields_that_are_not_declared_are_dropped_and_absent_ones_stay_absent() -> None:
    built = graph({"a": writes(ghost=1)}, [(START, "a")], [Channel("empty"), COUNT])
    ending, _ = send(built)
    assert dict(ending.state) == {"n": 0}


def test_a_router_chooses_and_an_empty_choice_ends_the_path() -> None:
    async def by_n(state: Any, run: Any) -> Any:
        return [edge for edge in edges if edge.condition == str(state["n"])]

    edges = [Edge("a", "b", "1"), Edge("a", "c", "2")]
    built = graph(
        {"a": writes(), "b": writes(log=["b"]), "c": writes(log=["c"])},
        [(START, "a"), *edges],
        [COUNT, ADDED],
        routers={"a": by_n},
    )
    assert send(built, {"n": 2})[0].state["log"] == ["c"]
    ending, trace = send(built, {"n": 3})
    assert observe.routes(trace.events) == [["__start__", "a"], ["a", "__end__"]]
    assert ending.status == "completed"


def test_routing_values_reach_the_router_and_are_not_kept() -> None:
    async def by_label(state: Any, run: Any) -> Any:
        return [edge for edge in edges if edge.condition == state["label"]]

    async def labels(state: Any, ctx: Any) -> Any:
        return Update({"log": ["a"]}, routing_values={"label": "right"})

    edges = [Edge("a", "b", "left"), Edge("a", "c", "right")]
    nodes = {"a": labels, "b": writes(), "c": writes(log=lambda state: [sorted(state)])}
    built = graph(nodes, [(START, "a"), *edges], [ADDED], routers={"a": by_label})
    ending, trace = send(built)
    assert observe.path(trace.events) == ["a", "c"]
    assert ending.state == {"log": ["a", ["log"]]}


def test_fan_out_gives_each_copy_a_state_of_its_own() -> None:
    async def scatter(state: Any, run: Any) -> Any:
        return [Dispatch(edge, {"n": item}) for item in (1, 2, 3)]

    async def slow(state: Any, ctx: Any) -> Any:
        await ctx.sleep(state["n"])
        return Update({"log": [state["n"] * 10]})

    edge = Edge("a", "work")
    built = graph({"a": writes(), "work": slow}, [(START, "a"), edge], [COUNT, ADDED], routers={"a": scatter})
    ending, trace = send(built)
    assert ending.state["log"] == [10, 20, 30]
    assert observe.path(trace.events) == ["a", ["work", "work", "work"]]
    assert observe.latency(trace.events, 0.0, 3.0)["nodes"]["work"] == 6.0


def test_the_recursion_limit_counts_supersteps_and_keeps_the_state() -> None:
    built = graph(
        {"a": writes(n=lambda state: state["n"] + 1)}, [(START, "a"), ("a", "a")], [COUNT], recursion_limit=5
    )
    ending, _ = send(built)
    assert type(ending.error).__name__ == "GraphRecursionError"
    assert ending.state["n"] == 5


@pytest.mark.parametrize("name", ["a:b", "a|b", "messages", "__start__", "__pregel_tasks", " ", "a/b"])
def test_any_text_may_name_a_node(name: Any) -> None:
    async def scatter(state: Any, run: Any) -> Any:
        return [Dispatch(edge, {"n": 2}), edge]

    async def breaks(state: Any, ctx: Any) -> None:
        raise LookupError(await ctx.pause("well?"))

    async def fails_over(state: Any, ctx: Any) -> Any:
        return Update({}, goto=name)

    channels = [COUNT, ADDED, Channel("messages")]
    edge = Edge("first", name)
    copies = writes(log=lambda state: [state["n"]])
    ending, trace = send(
        graph(
            {"first": writes(), name: copies}, [(START, "first"), edge], channels, routers={"first": scatter}
        )
    )
    assert sorted(ending.state["log"]) == [0, 2]
    assert observe.path(trace.events) == ["first", [name, name]]
    assert observe.routes(trace.events)[1:] == [["first", name]] * 2 + [[name, END]] * 2

    people = world_spec(human=[{"node": name, "reply": "R"}])
    rescued = Edge("first", name, on_error=True)
    failing = graph({"first": fails_over, name: breaks}, [(START, "first"), rescued], channels)
    ending, trace = send(failing, world=people)
    assert (ending.node, str(ending.error)) == (name, "R")
    assert [call["node"] for call in observe.calls(trace.events)] == [name]

    assert send(graph({name: asks_tool()}, [(START, name)], channels))[0].node == name


def test_nodes_of_one_superstep_write_in_the_order_of_their_names() -> None:
    names = ["b", "a:1", "c|", "a"]
    built = graph({name: writes(log=[name]) for name in names}, [(START, name) for name in names], [ADDED])
    assert send(built)[0].state["log"] == sorted(names)


def test_an_error_names_its_node_and_keeps_the_state_before_it() -> None:
    async def breaks(state: Any, ctx: Any) -> None:
        raise LookupError("gone")

    built = graph({"a": writes(n=7), "b": breaks}, [(START, "a"), ("a", "b")], [COUNT])
    ending, _ = send(built)
    assert (ending.node, str(ending.error), ending.state["n"]) == ("b", "gone", 7)


def test_a_node_that_fails_over_takes_its_fallback_edge_and_no_other() -> None:
    async def fails_over(state: Any, ctx: Any) -> Any:
        return Update({"n": 1}, goto="rescue")

    built = graph(
        {"a": fails_over, "b": writes(log=["b"]), "rescue": writes(log=["rescue"])},
        [(START, "a"), ("a", "b"), Edge("a", "rescue", on_error=True)],
        [COUNT, ADDED],
    )
    assert send(built)[0].state["log"] == ["rescue"]


def test_a_swallowed_error_completes_with_the_state_reached() -> None:
    async def breaks(state: Any, ctx: Any) -> None:
        raise LookupError("gone")

    async def swallow(error: Any, run: Any) -> Any:
        return None

    built = graph({"a": breaks}, [(START, "a")], [COUNT], lifecycle=Lifecycle(rescue=swallow))
    assert send(built)[0].status == "completed"


def test_a_pause_without_an_answer_interrupts_and_a_resume_goes_on() -> None:
    built = graph({"ask": asks("who?"), "b": writes(n=1)}, [(START, "ask"), ("ask", "b")], [COUNT, ADDED])

    async def main(simulation: Any) -> Any:
        conversation = Conversation(built, simulation)
        first = await conversation.send({})
        cut = len(simulation.trace.events)
        second = await conversation.resume("me")
        return first, second, simulation.trace.events[:cut], simulation.trace.events[cut:]

    first, second, before, after = simulate(main)
    assert (first.status, observe.interrupts(before), observe.path(before)) == (
        "interrupted",
        ["who?"],
        ["ask"],
    )
    assert (second.status, second.state["log"], observe.path(after)) == ("completed", ["me"], ["b"])


def test_a_node_may_pause_again_and_again() -> None:
    async def interviews(state: Any, ctx: Any) -> Any:
        return Update({"log": [await ctx.pause(question) for question in ("a?", "b?", "c?")]})

    built = graph({"ask": interviews, "b": writes(n=1)}, [(START, "ask"), ("ask", "b")], [COUNT, ADDED])

    async def main(simulation: Any) -> Any:
        conversation = Conversation(built, simulation)
        await conversation.send({})
        endings = [await conversation.resume(answer) for answer in "ABC"]
        return [ending.status for ending in endings], endings[-1].state, simulation.trace

    statuses, state, trace = simulate(main)
    assert statuses == ["interrupted", "interrupted", "completed"]
    assert state == {"n": 1, "log": ["A", "B", "C"]}
    assert observe.interrupts(trace.events) == ["a?", "b?", "c?"]


def test_two_pauses_in_one_superstep_each_get_their_answer() -> None:
    built = graph({"a": asks("left?"), "b": asks("right?")}, [(START, "a"), (START, "b")], [ADDED])
    world = world_spec(human=[{"node": "b", "reply": "R"}, {"node": "a", "reply": "L"}])
    ending, trace = send(built, world=world)
    assert ending.state["log"] == ["L", "R"]
    assert observe.interrupts(trace.events) == ["left?", "right?"]
    assert observe.path(trace.events) == [["a", "b"]]


def test_a_second_input_continues_the_thread() -> None:
    built = graph({"a": writes(n=lambda state: state["n"] + 1)}, [(START, "a")], [COUNT])

    async def main(simulation: Any) -> Any:
        conversation = Conversation(built, simulation)
        await conversation.send({})
        return await conversation.send({})

    assert simulate(main).state["n"] == 2


def test_effects_take_their_scripted_latency_and_are_listed_in_calls() -> None:
    built = graph({"a": asks_tool()}, [(START, "a")], [COUNT])
    world = world_spec(tools={"t": [{"latency": 1.5, "return": 4}]})
    ending, trace = send(built, world=world)
    assert ending.state["n"] == 4
    assert observe.calls(trace.events) == [
        {"kind": "tool", "name": "t", "node": "a", "args": {}, "ok": True, "latency": 1.5}
    ]


def test_an_unanswered_effect_ends_the_run_even_if_it_is_caught() -> None:
    async def tolerant(state: Any, ctx: Any) -> Any:
        with contextlib.suppress(Exception):
            await ctx.perform(ToolCall(name="t", args={}))
        return Update({"n": 1})

    ending, _ = send(graph({"a": tolerant}, [(START, "a")], [COUNT]))
    assert ending.status == "failed"
    assert isinstance(ending.error, UnscriptedCall)


def test_a_nested_graph_shares_world_and_clock_but_not_the_path() -> None:
    inner = graph({"deep": asks_tool()}, [(START, "deep")], [COUNT])

    async def calls_inner(state: Any, ctx: Any) -> Any:
        ending = await run_nested(ctx, inner, {})
        return Update({"n": ending.state["n"]})

    outer = graph({"outer": calls_inner}, [(START, "outer")], [COUNT])
    world = world_spec(tools={"t": [{"times": 1, "node": "outer/deep", "latency": 2, "return": 9}]})
    ending, trace = send(outer, world=world)
    assert ending.state["n"] == 9
    assert observe.path(trace.events) == ["outer"]
    assert [call["node"] for call in observe.calls(trace.events)] == ["outer/deep"]
    assert observe.latency(trace.events, 0.0, 2.0)["nodes"] == {"outer": 2.0}
    assert observe.latency(trace.events, 0.0, 2.0, inside=True)["nodes"] == {"outer": 2.0, "deep": 2.0}


def test_graphs_that_nest_for_ever_are_stopped() -> None:
    async def again(state: Any, ctx: Any) -> Any:
        await run_nested(ctx, loop, {})
        return Update()

    loop = graph({"a": again}, [(START, "a")], [COUNT])
    ending, _ = send(loop)
    assert str(ending.error) == f"agents call each other more than 10 levels deep: {'a/' * 11}g"
    assert ending.error.code == "nesting"


def test_an_input_may_define_its_form_in_the_trace() -> None:
    @dataclass(frozen=True)
    class Long:
        log: list[str]

        def recorded(self) -> Any:
            return {"entries": len(self.log)}

    async def accept(value: Any, run: Any) -> Any:
        return {"log": value.log}

    built = graph({"a": writes()}, [(START, "a")], [ADDED], lifecycle=Lifecycle(accept=accept))
    ending, trace = send(built, Long(["x", "y"]))
    assert ending.state["log"] == ["x", "y"]
    assert [event["value"] for event in trace.events if event["event"] == "input"] == [{"entries": 2}]


def test_a_field_of_an_input_may_be_called_recorded() -> None:
    @dataclass(frozen=True)
    class Song:
        recorded: bool

    async def accept(value: Any, run: Any) -> Any:
        return {}

    _, trace = send(
        graph({"a": writes()}, [(START, "a")], [COUNT], lifecycle=Lifecycle(accept=accept)), Song(True)
    )
    assert [event["value"] for event in trace.events if event["event"] == "input"] == [{"recorded": True}]


def test_a_partial_update_shows_until_the_run_is_resumed() -> None:
    async def greets(state: Any, ctx: Any) -> Any:
        answer = await ctx.pause("name?", partial_update={"log": ["hello"], "ghost": 1})
        return Update({"log": ["hello", answer]})

    built = graph({"greet": greets, "b": writes(n=1)}, [(START, "greet"), ("greet", "b")], [COUNT, ADDED])

    async def main(simulation: Any) -> Any:
        conversation = Conversation(built, simulation)
        first = await conversation.send({"log": ["in"]})
        shown = conversation.state
        return first, shown, await conversation.resume("me"), simulation.trace

    first, shown, second, trace = simulate(main)
    assert first.state == shown == {"n": 0, "log": ["in", "hello"]}
    assert second.state == {"n": 1, "log": ["in", "hello", "me"]}
    pauses = [event for event in trace.events if event["event"] == "node_pause"]
    assert [event["update"] for event in pauses] == [{"log": ["hello"]}]


def test_partial_updates_are_applied_in_the_order_of_the_nodes() -> None:
    def greets(delay: Any) -> Any:
        async def run(state: Any, ctx: Any) -> Any:
            await ctx.sleep(delay)
            return Update({"log": [await ctx.pause("?", partial_update={"log": [delay], "n": delay})]})

        return run

    built = graph({"z": greets(2), "a": greets(1)}, [(START, "z"), (START, "a")], [COUNT, ADDED])
    assert send(built)[0].state == {"n": 1, "log": [2, 1]}


def test_a_run_that_fails_after_a_pause_shows_no_partial_update() -> None:
    async def greets(state: Any, ctx: Any) -> None:
        raise LookupError(await ctx.pause("name?", partial_update={"log": ["hello"]}))

    async def main(simulation: Any) -> Any:
        conversation = Conversation(graph({"greet": greets}, [(START, "greet")], [ADDED]), simulation)
        await conversation.send({})
        return await conversation.resume("me")

    ending = simulate(main)
    assert (str(ending.error), ending.state["log"]) == ("me", [])


@pytest.mark.parametrize("seed", [0, 1])
def test_the_digest_depends_on_nothing_but_graph_input_world_and_seed(seed: Any) -> None:
    async def named(state: Any, ctx: Any) -> Any:
        return Update({"log": [ctx.new_id("x")]})

    built = graph({"a": named, "b": named}, [(START, "a"), (START, "b")], [ADDED])
    digests = {send(built, seed=seed)[1].digest() for _ in range(3)}
    assert len(digests) == 1
    assert digests != {send(built, seed=seed + 10)[1].digest()}


def test_coverage_lists_what_was_taken_of_what_is_possible() -> None:
    async def left(state: Any, run: Any) -> Any:
        return [edges[0]]

    edges = [Edge("a", "b", "x"), Edge("a", END, "default")]
    built = graph({"a": writes(), "b": writes()}, [(START, "a"), *edges], [COUNT], routers={"a": left})
    _, trace = send(built)
    taken, all_ = observe.coverage(trace.events), observe.possible_coverage(built)
    assert taken["branches"] == ["a -> b [x]"]
    assert set(all_["branches"]) - set(taken["branches"]) == {"a -> __end__ [default]"}
    assert all_["nodes"] == ["a", "b"]
