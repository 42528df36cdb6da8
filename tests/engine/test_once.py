"""`NodeContext.once`: calls that are made only once in a visit, although a pause re-runs its node."""

from typing import Any

import pytest

from harness.engine.conversation import Conversation, run_inside, run_nested
from harness.graph import observe
from harness.graph.effects import ToolCall
from harness.graph.model import START, Edge, Update
from harness.time.gather import gather
from tests.engine.graphs import ADDED, COUNT, asks, graph, send, simulate
from tests.world.stubs import world_spec

ANSWERS = ({"times": 1, "return": number} for number in range(1, 100))
TOOL = world_spec(tools={"t": [*ANSWERS]})


def calls_tool(ctx: Any) -> Any:
    return lambda: ctx.perform(ToolCall(name="t", args={}))


async def asks_twice(state: Any, ctx: Any) -> Any:
    made = await ctx.once("made", calls_tool(ctx))
    return Update({"log": [made, await ctx.pause("a?"), await ctx.pause("b?")]})


def talk(built: Any, *steps: Any, world: Any = TOOL) -> Any:
    """Return the endings of inputs (None) and answers, one after the other, and the trace."""

    async def main(simulation: Any) -> Any:
        conversation = Conversation(built, simulation)
        endings = [
            await (conversation.send({}) if step is None else conversation.resume(step)) for step in steps
        ]
        return endings, simulation.trace

    return simulate(main, world)


def logs(endings: Any) -> Any:
    return [ending.state["log"] for ending in endings if ending.status == "completed"]


def test_a_result_is_restored_when_the_node_is_re_run() -> None:
    endings, trace = talk(graph({"a": asks_twice}, [(START, "a")], [ADDED]), None, "A", "B")
    assert logs(endings) == [[1, "A", "B"]]
    assert len(observe.calls(trace.events)) == 1


def test_keys_identify_results_even_of_concurrent_calls() -> None:
    async def both(state: Any, ctx: Any) -> Any:
        made = await gather(ctx.once(key, calls_tool(ctx)) for key in "xy")
        return Update({"log": [*made, await ctx.once("x", calls_tool(ctx)), await ctx.pause("a?")]})

    endings, trace = talk(graph({"a": both}, [(START, "a")], [ADDED]), None, "A")
    assert logs(endings) == [[1, 2, 1, "A"]]
    assert len(observe.calls(trace.events)) == 2


def test_none_is_kept_as_a_result() -> None:
    world = world_spec(tools={"t": [{"times": 1, "return": None}]})
    endings, _ = talk(graph({"a": asks_twice}, [(START, "a")], [ADDED]), None, "A", "B", world=world)
    assert logs(endings) == [[None, "A", "B"]]


def test_another_attempt_calls_the_function_again() -> None:
    async def tries_again(state: Any, ctx: Any) -> Any:
        first = await ctx.once("made", calls_tool(ctx))
        ctx.attempt_failed()
        return Update({"log": [first, await ctx.once("made", calls_tool(ctx))]})

    endings, _ = talk(graph({"a": tries_again}, [(START, "a")], [ADDED]), None)
    assert logs(endings) == [[1, 2]]


def test_the_next_visit_calls_the_function_again() -> None:
    async def again(state: Any, run: Any) -> Any:
        return [edge] if len(state["log"]) < 6 else []

    edge = Edge("a", "a", "again")
    built = graph({"a": asks_twice}, [(START, "a"), edge], [ADDED], routers={"a": again})
    endings, _ = talk(built, None, "A", "B", "C", "D")
    assert logs(endings) == [[1, "A", "B", 2, "C", "D"]]


def test_parallel_visits_each_call_the_function() -> None:
    async def asks(state: Any, ctx: Any) -> Any:
        return Update({"log": [await ctx.once("made", calls_tool(ctx)), await ctx.pause("?")]})

    built = graph(dict.fromkeys("ab", asks), [(START, name) for name in "ab"], [ADDED])
    assert logs(talk(built, None, "A")[0]) == [[1, "A", 2, "A"]]


def test_a_new_input_calls_the_function_again() -> None:
    built = graph({"a": asks_twice}, [(START, "a")], [ADDED])
    assert logs(talk(built, None, "A", None, "B", "C")[0]) == [[2, "B", "C"]]


def test_after_a_failure_the_function_is_called_again() -> None:
    async def breaks_at_first(state: Any, ctx: Any) -> Any:
        made = await ctx.once("made", calls_tool(ctx))
        answer = await ctx.pause("a?")
        if answer == "break":
            raise LookupError(answer)
        return Update({"log": [made, answer]})

    built = graph({"a": breaks_at_first}, [(START, "a")], [ADDED])
    endings, _ = talk(built, None, "break", None, "go on")
    assert [ending.status for ending in endings] == ["interrupted", "failed", "interrupted", "completed"]
    assert logs(endings) == [[2, "go on"]]


def test_a_failed_call_is_not_kept() -> None:
    async def tries_again(state: Any, ctx: Any) -> Any:
        with pytest.raises(ConnectionError):
            await ctx.once("made", calls_tool(ctx))
        return Update({"n": await ctx.once("made", calls_tool(ctx))})

    stubs = ({"times": 1, "error": "connection"}, {"times": 1, "return": 7})
    world = world_spec(tools={"t": [*stubs]})
    assert send(graph({"a": tries_again}, [(START, "a")], [COUNT]), world=world)[0].state["n"] == 7


INNER = graph({"ask": asks("?")}, [(START, "ask")], [ADDED])


@pytest.mark.parametrize(
    "waits", [lambda ctx: ctx.pause("?"), lambda ctx: run_inside(ctx, INNER, {})], ids=["pause", "run_inside"]
)
def test_the_function_cannot_pause(waits: Any) -> None:
    async def asks_once(state: Any, ctx: Any) -> None:
        await ctx.once("asked", lambda: waits(ctx))

    ending, _ = send(graph({"a": asks_once}, [(START, "a")], [ADDED]))
    assert ending.status == "failed"
    assert "code inside once() can neither pause nor run a graph" in str(ending.error)


def test_run_nested_is_allowed_in_the_function() -> None:
    async def runs_once(state: Any, ctx: Any) -> Any:
        ending = await ctx.once("ran", lambda: run_nested(ctx, INNER, {}))
        return Update({"log": [ending.status]})

    ending, _ = send(graph({"a": runs_once}, [(START, "a")], [ADDED]))
    assert ending.state["log"] == ["interrupted"]
