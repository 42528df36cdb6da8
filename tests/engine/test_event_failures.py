"""The event scheduler: a failure ends its branch, and the graph decides how the run continues."""

import asyncio
import gc
from collections.abc import Sequence
from typing import Any

import pytest

from harness.engine.context import NodeContext, RunContext
from harness.engine.conversation import Conversation, Ending, NotInterrupted
from harness.engine.standstill import Simulation
from harness.errors import UnscriptedCall
from harness.graph import observe
from harness.graph.effects import ToolCall
from harness.graph.events import Arrival, Detour, NodeFailure
from harness.graph.model import Dispatch, Edge, State, Update
from tests.engine.events import compiled, run
from tests.engine.graphs import simulate
from tests.world.stubs import world_spec

BESIDE = {
    "start": ["bad", "good"],
    "nodes": {
        "bad": {"takes": 1, "error": "broken", "to": "never"},
        "good": {"takes": 5, "to": "after"},
        "after": {},
        "never": {},
    },
}


def test_a_failed_branch_ends_while_others_continue_and_the_run_fails_at_the_end() -> None:
    done = run(BESIDE)
    assert (done.status, done.ending.node, str(done.ending.error)) == ("failed", "bad", "broken")
    assert (done.log, done.total) == (["good", "after"], 5.0)
    assert "never" not in done.path


def test_the_run_fails_with_the_first_of_several_failures() -> None:
    nodes = {"a": {"takes": 3, "error": "later"}, "b": {"takes": 1, "error": "sooner"}, "c": {"takes": 4}}
    done = run({"start": ["a", "b", "c"], "nodes": nodes})
    assert (done.ending.node, str(done.ending.error), done.total) == ("b", "sooner", 4.0)


def test_a_graph_may_tolerate_its_failures() -> None:
    async def tolerate(failures: Sequence[NodeFailure], run: RunContext) -> None:
        for failure in failures:
            run.warn(f"{failure.node}: {failure.error}")

    done = run(compiled(BESIDE, run_failure=tolerate))
    assert (done.status, done.log) == ("completed", ["good", "after"])
    assert observe.warnings(done.events) == ["bad: broken"]


def test_a_graph_may_end_at_its_first_failure() -> None:
    async def raise_it(failure: NodeFailure, _run: RunContext) -> Sequence[Edge]:
        raise failure.error

    done = run(compiled(BESIDE, on_failure=raise_it))
    assert (done.status, done.ending.node, done.total, done.log) == ("failed", "bad", 1.0, [])


def test_a_failed_node_may_follow_other_edges() -> None:
    agent: Any = {"start": "bad", "nodes": {"bad": {"error": "broken", "fallback": "rescue"}, "rescue": {}}}
    done = run(agent)
    assert (done.status, done.path) == ("completed", ["bad", "rescue"])
    assert observe.coverage(done.events)["branches"] == ["bad -> rescue [on error]"]


def test_concurrent_work_of_a_detour_delays_only_the_end_of_the_run() -> None:
    async def tell_and_go_on(failure: NodeFailure, run: RunContext) -> Detour:
        async def tell() -> None:
            await asyncio.sleep(7)
            run.warn(f"{failure.node} is told")

        return Detour([Edge(failure.node, "rescue", on_error=True)], tell)

    nodes = {"bad": {"takes": 1, "error": "broken"}, "rescue": {"takes": 2}}
    done = run(compiled({"start": "bad", "nodes": nodes}, on_failure=tell_and_go_on))
    assert (done.status, done.path, done.total) == ("completed", ["bad", "rescue"], 8.0)
    assert observe.latency(done.events, 0, 8)["nodes"]["rescue"] == 2
    assert (
        next(
            event["at"]
            for event in done.events
            if event["event"] == "node_start" and event["node"] == "rescue"
        )
        == 1
    )
    assert observe.warnings(done.events) == ["bad is told"]


def test_a_failed_node_may_restart_with_context() -> None:
    tries = iter(["one", "two", ""])

    async def third_time(state: State, ctx: NodeContext) -> Update:
        if text := next(tries):
            raise ValueError(text)
        return Update({"log": [state["failed"], state["callers"], state["mark"]]})

    nodes: Any = {
        "s": {"to": "x"},
        "x": {"body": third_time, "tries": 3},
        "side": {"writes": {"mark": "seen"}},
    }
    done = run({"start": ["s", "side"], "nodes": nodes})
    assert done.path == ["s", "side", "x", "x", "x"]
    assert done.log[-3:] == ["two", ["s"], "seen"]


def test_a_failed_activation_writes_nothing_and_reaches_no_join() -> None:
    nodes = {
        "a": {"error": "broken", "writes": {"mark": 1}, "to": "join"},
        "b": {"to": "join"},
        "join": {"wait_for": "a OR b"},
    }
    done = run({"start": ["a", "b"], "nodes": nodes})
    assert done.seen("join")["callers"] == ["b"]
    assert "mark" not in done.ending.state


@pytest.mark.parametrize("to", ["b", []])
def test_an_unanswered_effect_ends_the_run_at_once_even_if_it_is_caught(to: Any) -> None:
    async def careless(state: State, ctx: NodeContext) -> Update:
        await ctx.sleep(1)
        try:
            await ctx.perform(ToolCall(name="unknown", args={}))
        except Exception:
            return Update({"log": ["caught"]})
        return Update()

    nodes: Any = {"a": {"body": careless, "to": to, "tries": 5}, "b": {}, "slow": {"takes": 60}}
    done = run({"start": ["a", "slow"], "nodes": nodes})
    assert isinstance(done.ending.error, UnscriptedCall)
    assert (done.ending.node, done.total, done.path) == ("a", 1.0, ["a", "slow"])


def test_a_run_that_ends_at_once_leaves_no_task_whose_error_is_not_retrieved(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run({"start": "a", "nodes": {"a": {"effect": "unknown"}}})
    gc.collect()
    assert caplog.messages == []


def test_a_router_that_fails_ends_the_run() -> None:
    async def breaks(state: State, _run: RunContext) -> Sequence[Edge]:
        raise KeyError("kind")

    agent: Any = {"start": ["a", "slow"], "nodes": {"a": {"takes": 1}, "slow": {"takes": 60}}}
    done = run(compiled(agent, routers={"a": breaks}))
    assert (done.status, done.ending.node, done.total) == ("failed", "a", 1.0)


def test_an_error_of_input_of_ends_the_run_despite_earlier_failures() -> None:
    def breaks(arrivals: Sequence[Arrival], state: State) -> State:
        if arrivals[0].source == "a":
            raise KeyError("input")
        return state

    nodes: Any = {"bad": {"error": "broken"}, "a": {"takes": 1, "to": "b"}, "b": {}, "slow": {"takes": 60}}
    done = run(compiled({"start": ["bad", "a", "slow"], "nodes": nodes}, input_of=breaks))
    assert (done.ending.node, repr(done.ending.error), done.total) == ("b", "KeyError('input')", 1.0)


def test_a_failed_run_has_no_pending_questions() -> None:
    async def breaks(state: State, _run: RunContext) -> Sequence[Edge]:
        raise KeyError("kind")

    async def answered_too_late(simulation: Simulation) -> tuple[int, Ending]:
        agent: Any = {"start": ["p", "a"], "nodes": {"p": {"asks": "p?"}, "a": {"takes": 1}}}
        conversation = Conversation(compiled(agent, routers={"a": breaks}), simulation)
        await conversation.send({"text": "x"})
        return len(conversation.pending), await conversation.resume("yes")

    pending, ending = simulate(answered_too_late)
    assert (pending, ending.status, type(ending.error)) == (0, "failed", NotInterrupted)


# What takes its time after a node


def test_a_late_router_activates_nodes_when_it_ends_and_nothing_waits_for_it() -> None:
    async def ask_model(state: State, run: RunContext) -> Sequence[Edge | Dispatch]:
        chosen = await run.perform(ToolCall(name="advise", args={"mark": state["mark"]}), state, "adviser")
        return [Edge("a", chosen)]

    advice = {"times": 1, "latency": 3, "args": {"mark": 1}, "return": "c"}
    nodes: Any = {"a": {"takes": 1, "writes": {"mark": 1}, "to": "b", "limit": 1}, "b": {}, "c": {}}
    done = run(
        compiled({"start": "a", "nodes": nodes}, late_routers={"a": ask_model}),
        world_spec(tools={"advise": [advice]}),
    )
    assert done.starts == [("a", 0.0), ("b", 1.0), ("c", 4.0)]
    assert observe.latency(done.events, 0.0, done.total)["nodes"]["a"] == 1.0


@pytest.mark.parametrize(
    ("seconds", "starts"), [(0, [("x", 1.0), ("y", 1.0)]), (2, [("y", 1.0), ("x", 3.0)])]
)
def test_a_slow_router_delays_only_the_nodes_it_chooses(
    seconds: float, starts: list[tuple[str, float]]
) -> None:
    async def slow(state: State, _run: RunContext) -> Sequence[Edge]:
        await asyncio.sleep(seconds)
        return [Edge("a", "x")]

    nodes: Any = {"a": {"takes": 1}, "b": {"takes": 1, "to": "y"}, "x": {}, "y": {}}
    done = run(compiled({"start": ["a", "b"], "nodes": nodes}, routers={"a": slow}))
    assert [start for start in done.starts if start[0] in "xy"] == starts
