"""Graphs of events and of supersteps run inside each other."""

from typing import Any

import pytest

from harness.engine.context import NodeContext
from harness.engine.conversation import Conversation, run_inside, run_nested
from harness.engine.standstill import Simulation
from harness.graph import observe
from harness.graph.model import START, Graph, NodeFunction, State, Update
from harness.world.spec import WorldSpec
from tests.engine.events import Agent, compiled, run
from tests.engine.graphs import ADDED, asks, graph, simulate, writes
from tests.world.stubs import world_spec


def running(inner: Agent | Graph, **options: Any) -> NodeFunction:
    """A node that returns the log of a graph that runs inside it."""
    built = inner if isinstance(inner, Graph) else compiled(inner)

    async def body(state: State, ctx: NodeContext) -> Update:
        ending = await run_inside(ctx, built, {}, **options)
        return Update({"log": ending.state["log"]})

    return body


def supersteps(inner: Agent | Graph) -> Graph:
    """A graph of supersteps: the inner graph in parallel with a node of 1 s, then `last`."""

    async def second(state: State, ctx: NodeContext) -> Update:
        await ctx.sleep(1)
        return Update({"log": ["second"]})

    edges = [(START, "a"), (START, "b"), ("a", "last"), ("b", "last")]
    built: Graph = graph({"a": running(inner), "b": second, "last": writes(log=["last"])}, edges, [ADDED])
    return built


ASKING: Graph = graph({"p": asks("p?"), "q": asks("q?")}, [(START, "p"), ("p", "q")], [ADDED])
BOTH: Agent = {
    "start": ["x", "y"],
    "nodes": {"x": {"takes": 1, "to": "z"}, "y": {"takes": 5}, "z": {"takes": 1}},
}


def talk(built: Graph, *answers: Any, world: WorldSpec | None = None) -> tuple[list[Any], list[Any]]:
    """Return the endings of an input and of a resume with each answer, and the events."""

    async def main(simulation: Simulation) -> Any:
        conversation = Conversation(built, simulation)
        endings = [await conversation.send({})]
        for answer in answers:
            endings.append(await conversation.resume(answer))
        return endings, simulation.trace.events

    found: tuple[list[Any], list[Any]] = simulate(main, world)
    return found


def test_events_run_inside_a_node_of_supersteps() -> None:
    (ending,), events = talk(supersteps(BOTH))
    assert sorted(ending.state["log"]) == ["last", "second", "x", "y", "z"]
    assert events[-1]["at"] == 5.0
    assert observe.path(events) == [["a", "b"], "last"]


def test_supersteps_run_inside_a_node_of_events_while_other_nodes_run() -> None:
    agent: Agent = {
        "start": ["sub", "a"],
        "nodes": {"sub": {"body": running(supersteps(BOTH)), "to": "after"}, "a": {"takes": 2}, "after": {}},
    }
    done = run(agent)
    assert done.starts == [("sub", 0.0), ("a", 0.0), ("after", 5.0)]


def test_a_nested_run_finishes_an_instant_before_the_outer_one_does() -> None:
    # `sub` needs many waves at 1.0, and still settles before `a`, which started later and also ends at 1.0.
    chain: Any = {f"n{at}": {"to": f"n{at + 1}"} for at in range(20)} | {"n20": {}}
    inner = {"start": "n0", "nodes": {**chain, "n0": {"takes": 1, "to": "n1"}}}
    nodes: Any = {
        "sub": {"body": running({"start": "deep", "nodes": {"deep": {"body": running(inner)}}}), "to": "x"},
        "a": {"takes": 1, "to": "y"},
        "x": {},
        "y": {},
    }
    done = run({"start": ["sub", "a"], "nodes": nodes})
    assert done.path == ["sub", "a", "x", "y"]


def test_a_time_out_of_an_outer_join_waits_for_the_nested_run_at_that_instant() -> None:
    inner: Agent = {"start": "i", "nodes": {"i": {"takes": 3, "to": "j"}, "j": {"to": "k"}, "k": {}}}
    nodes: Any = {
        "a": {"to": "join"},
        "sub": {"body": running(inner), "to": "join"},
        "join": {"wait_for": "a AND sub", "timeout": 3},
    }
    done = run({"start": ["a", "sub"], "nodes": nodes})
    assert (done.status, done.starts[-1]) == ("completed", ("join", 3.0))


def test_a_pause_in_nested_supersteps_interrupts_the_events_when_nothing_else_is_left() -> None:
    nodes: Any = {"sub": {"body": running(ASKING), "to": "after"}, "a": {"takes": 4}, "after": {}}
    graph = compiled({"start": ["sub", "a"], "nodes": nodes})
    endings, events = talk(graph, "one", "two")
    assert [ending.status for ending in endings] == ["interrupted", "interrupted", "completed"]
    assert endings[-1].state["log"] == ["a", "one", "two", "after"]
    assert observe.path(events) == ["sub", "a", "after"]


def test_a_pause_in_nested_events_interrupts_the_supersteps() -> None:
    inner: Agent = {"start": ["p", "x"], "nodes": {"p": {"asks": "p?"}, "x": {"takes": 3}}}
    endings, _ = talk(supersteps(inner), "yes")
    assert [ending.status for ending in endings] == ["interrupted", "completed"]
    assert endings[-1].state["log"] == ["x", "p", "yes", "second", "last"]


def test_two_questions_of_nested_events_are_asked_one_after_the_other_by_a_resume() -> None:
    inner: Agent = {"start": ["p", "q"], "nodes": {"p": {"asks": "p?"}, "q": {"asks": "q?"}}}
    graph = compiled({"start": "sub", "nodes": {"sub": {"body": running(inner)}}})
    endings, events = talk(graph, "one", "two")
    assert [ending.status for ending in endings] == ["interrupted", "interrupted", "completed"]
    assert endings[-1].state["log"] == ["p", "one", "q", "two"]
    assert observe.interrupts(events) == ["p?", "q?"]


@pytest.mark.parametrize(("takes", "status", "timeouts"), [(3, "completed", []), (4, "failed", [23.0])])
def test_the_time_of_a_join_stands_still_while_the_nested_run_waits_for_an_answer(
    takes: float, status: str, timeouts: list[float]
) -> None:
    inner: Agent = {
        "start": ["a", "two"],
        "nodes": {
            "a": {"to": "join"},
            "two": {"takes": 2, "to": "p"},
            "p": {"asks": "p?", "to": "q"},
            "q": {"takes": takes, "to": "join"},
            "join": {"wait_for": "a AND q", "timeout": 5},
        },
    }
    graph_ = compiled(
        {"start": ["sub", "long"], "nodes": {"sub": {"body": running(inner)}, "long": {"takes": 20}}}
    )
    endings, events = talk(graph_, "yes")
    assert [ending.status for ending in endings] == ["interrupted", status]
    assert [event["at"] for event in events if event["event"] == "join_timeout"] == timeouts


def test_people_inside_nested_graphs_are_asked_concurrently() -> None:
    nodes: Any = {"sub": {"body": running(ASKING)}, "p": {"asks": "mine?"}}
    world = world_spec(
        human=[
            {"node": "sub/*", "latency": 2, "times": 2, "reply": "inner"},
            {"node": "p", "latency": 3, "reply": "outer"},
        ]
    )
    done = run({"start": ["sub", "p"], "nodes": nodes}, world)
    assert (done.status, done.total) == ("completed", 4.0)
    assert done.log == ["p", "outer", "inner", "inner"]


def test_a_node_resumed_after_a_nested_breakpoint_is_listed_again() -> None:
    inner: Graph = graph(
        {"i": writes(log=["i"]), "j": writes(log=["j"])},
        [(START, "i"), ("i", "j")],
        [ADDED],
        pause_before=frozenset({"j"}),
    )
    nodes: Any = {"sub": {"body": running(inner), "to": "after"}, "after": {}}
    endings, events = talk(compiled({"start": "sub", "nodes": nodes}), None)
    assert [ending.status for ending in endings] == ["interrupted", "completed"]
    assert endings[-1].state["log"] == ["i", "j", "after"]
    assert observe.path(events) == ["sub", "sub", "after"]


def test_a_state_update_restarts_the_node_with_the_nested_breakpoint() -> None:
    inner: Graph = graph(
        {"i": writes(log=["i"]), "j": writes(log=["j"])},
        [(START, "i"), ("i", "j")],
        [ADDED],
        pause_before=frozenset({"j"}),
    )
    graph_ = compiled({"start": "sub", "nodes": {"sub": {"body": running(inner)}}})
    endings, _ = talk(graph_, {"text": "edited"}, None)
    assert [ending.status for ending in endings] == ["interrupted", "interrupted", "completed"]
    assert (endings[-1].state["text"], endings[-1].state["log"]) == ("edited", ["i", "j"])


def test_a_graph_of_events_called_as_an_agent_asks_nobody() -> None:
    inner = compiled({"start": ["p"], "nodes": {"p": {"asks": "p?"}}})

    async def call(state: State, ctx: NodeContext) -> Update:
        ending = await run_nested(ctx, inner, {})
        return Update({"log": [ending.status]})

    assert run({"start": "a", "nodes": {"a": {"body": call}}}).log == ["interrupted"]


def test_a_failure_inside_is_the_failure_of_the_node() -> None:
    inner: Agent = {"start": ["bad", "ok"], "nodes": {"bad": {"error": "broken"}, "ok": {"takes": 2}}}
    nodes: Any = {"sub": {"body": running(inner), "fallback": "rescue"}, "rescue": {}}
    done = run({"start": "sub", "nodes": nodes})
    assert (done.status, done.path, done.total) == ("completed", ["sub", "rescue"], 2.0)
