"""Guards: a visit that is refused before it starts."""

import asyncio
from typing import Any

from harness.engine.conversation import Conversation
from harness.graph import observe
from harness.graph.model import START, Lifecycle, NodeEntry, Update
from tests.engine.graphs import ADDED, graph, send, simulate, writes


def at_most(limit: int) -> Any:
    def guard(entry: NodeEntry) -> Exception | None:
        return OverflowError(f"visit {entry.nth} of {entry.node}") if entry.nth > limit else None

    return guard


def within(seconds: float) -> Any:
    def guard(entry: NodeEntry) -> Exception | None:
        return TimeoutError(f"{entry.elapsed_s} s") if entry.elapsed_s > seconds else None

    return guard


def waits(seconds: float, name: str) -> Any:
    async def run(state: Any, ctx: Any) -> Any:
        await ctx.sleep(seconds)
        return Update({"log": [name]})

    return run


def loop(guard: Any) -> Any:
    nodes = {"a": writes(log=["a"]), "b": writes(log=["b"])}
    return graph(nodes, [(START, "a"), ("a", "b"), ("b", "a")], [ADDED], lifecycle=Lifecycle(guard=guard))


def test_an_entry_limit_fails_the_run_at_the_node_that_would_start() -> None:
    ending, _ = send(loop(at_most(2)))
    assert (type(ending.error), str(ending.error), ending.node) == (OverflowError, "visit 3 of a", "a")
    assert ending.state["log"] == ["a", "b", "a", "b"]


def test_a_refused_visit_never_started() -> None:
    _, trace = send(loop(at_most(2)))
    assert observe.visits(trace.events) == {"a": 2, "b": 2}
    assert observe.path(trace.events) == ["a", "b", "a", "b"]
    assert "node_error" not in [event["event"] for event in trace.events]


def test_time_is_checked_between_nodes_and_a_running_node_finishes() -> None:
    nodes = {"a": waits(4, "a"), "b": waits(4, "b"), "c": waits(4, "c")}
    edges = [(START, "a"), ("a", "b"), ("b", "c")]
    ending, _ = send(graph(nodes, edges, [ADDED], lifecycle=Lifecycle(guard=within(5))))
    assert (str(ending.error), ending.node) == ("8.0 s", "c")
    assert ending.state["log"] == ["a", "b"]


def test_entries_and_time_count_from_the_last_input() -> None:
    async def main(simulation: Any) -> Any:
        guard = lambda entry: at_most(1)(entry) or within(0)(entry)  # noqa: E731
        built = graph({"a": waits(1, "a")}, [(START, "a")], [ADDED], lifecycle=Lifecycle(guard=guard))
        conversation = Conversation(built, simulation)
        return [(await conversation.send({})).status for _ in range(2)]

    assert simulate(main) == ["completed", "completed"]


def test_a_resumed_visit_does_not_enter_again() -> None:
    async def asks(state: Any, ctx: Any) -> Any:
        return Update({"log": [await ctx.pause("name?")]})

    async def main(simulation: Any) -> Any:
        built = graph({"a": asks}, [(START, "a")], [ADDED], lifecycle=Lifecycle(guard=at_most(1)))
        conversation = Conversation(built, simulation)
        await conversation.send({})
        await asyncio.sleep(1)
        return await conversation.resume("me")

    assert simulate(main).state["log"] == ["me"]
