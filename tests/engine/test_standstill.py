"""Endless loops while the virtual clock stands still, and large work at one instant that is allowed."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from harness.engine import standstill
from harness.engine.conversation import run_inside
from harness.engine.standstill import EndlessLoop
from harness.errors import Span
from harness.graph.messages import MessageLog
from harness.graph.model import END, START, Channel, Dispatch, Edge, Lifecycle, Update
from tests.engine.events import compiled, run
from tests.engine.graphs import ADDED, COUNT, asks, graph, send, writes
from tests.world.stubs import world_spec

UNLIMITED = 10**9


def chain(*names: Any) -> Any:
    return list(pairwise([START, *names]))


def looping(body: Any, **more: Any) -> Any:
    return graph(
        {"a": body, "b": writes()}, chain("a", "b", "a"), [COUNT, ADDED], recursion_limit=UNLIMITED, **more
    )


def counting_to(last: int, **more: Any) -> Any:
    async def on(state: Any, run: Any) -> Any:
        return [Edge("a", "a")] if state["n"] < last else []

    nodes = {"a": writes(n=lambda state: state["n"] + 1)}
    return graph(nodes, chain("a", "a"), [COUNT], routers={"a": on}, recursion_limit=UNLIMITED, **more)


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a tenth of the limits, so that the tests take a tenth of the time."""
    monkeypatch.setattr(standstill, "MOST_WORK", 600)


def test_a_loop_of_500_rounds_is_not_endless() -> None:
    ending, _ = send(counting_to(500))
    assert (ending.status, ending.state["n"]) == ("completed", 500)


@pytest.mark.usefixtures("low")
def test_an_endless_loop_at_one_instant_ends_and_names_the_cycle_and_its_closing_edge() -> None:
    back = Edge("b", "a", span=Span("/home/somebody/loop.yaml", 12, 5))
    built = graph(
        {"a": writes(), "b": writes()}, [*chain("a", "b"), back], [COUNT], recursion_limit=UNLIMITED
    )
    ending, _ = send(built)
    assert (ending.status, ending.node) == ("failed", None)
    assert str(ending.error) == (
        "graph 'g' does not come to an end: after 299 rounds the virtual clock still stands at 0 s; it last went "
        "round a → b; b leads back to a in loop.yaml:12"
    )
    assert (ending.error.code, ending.error.span) == ("endless-loop", back.span)


@pytest.mark.usefixtures("low")
@pytest.mark.parametrize(
    "grown",
    [
        lambda log: log or ["x"],
        lambda log: [{"all": [*log, *log]}],
        lambda log: [("".join(log) or "x") * 3],
    ],
    ids=["items", "mappings", "text"],
)
def test_a_state_that_doubles_ends_the_run_before_memory_does(grown: Any) -> None:
    ending, trace = send(looping(writes(log=lambda state: grown(state["log"]))))
    assert ending.error.code == "endless-loop"
    assert trace.snapshots.largest < 1_000_000


def talking_to(last: int, text: str) -> Any:
    """Return a graph that adds a message in each round, and writes the whole conversation."""

    async def on(state: Any, run: Any) -> Any:
        return [Edge("a", "a")] if len(state["said"]) < last else []

    nodes = {"a": writes(said=lambda state: state["said"].merged([HumanMessage(text)]))}
    said = Channel("said", initial=MessageLog)
    return graph(nodes, chain("a", "a"), [said], routers={"a": on}, recursion_limit=UNLIMITED)


@pytest.mark.usefixtures("low")
def test_a_conversation_that_grows_ends_the_run_before_memory_does() -> None:
    ending, _ = send(talking_to(UNLIMITED, "x" * 1000))
    assert ending.error.code == "endless-loop"
    assert len(ending.state["said"]) < 300


def test_a_conversation_of_several_hundred_messages_is_not_endless() -> None:
    ending, _ = send(talking_to(600, "x" * 200))
    assert (ending.status, len(ending.state["said"])) == ("completed", 600)


@pytest.mark.usefixtures("low")
def test_a_long_text_counts_for_each_occurrence_in_a_state_that_doubles() -> None:
    ending, _ = send(looping(writes(log=lambda state: state["log"] or ["x" * 10_000])))
    assert ending.error.code == "endless-loop"
    assert sum(map(len, ending.state["log"])) < 50_000_000


@pytest.mark.usefixtures("low")
def test_the_same_run_ends_in_the_same_place() -> None:
    (one, first), (other, second) = send(looping(writes(log=["x"]))), send(looping(writes(log=["x"])))
    assert str(one.error) == str(other.error)
    assert first.digest() == second.digest()


@pytest.mark.usefixtures("low")
def test_a_fan_out_may_have_any_width() -> None:
    async def out(state: Any, run: Any) -> Any:
        return [Dispatch(Edge("s", "each"), {}) for _ in range(1000)]

    nodes = {"s": writes(), "each": writes(log=["x"])}
    ending, _ = send(graph(nodes, [(START, "s"), ("s", "each"), ("each", END)], [ADDED], routers={"s": out}))
    assert len(ending.state["log"]) == 1000


@pytest.mark.usefixtures("low")
def test_a_loop_in_which_time_passes_is_not_stopped() -> None:
    async def waits(state: Any, ctx: Any) -> Any:
        await asyncio.sleep(0.001 if state["n"] % 250 == 0 else 0)
        return Update({"n": state["n"] + 1})

    async def on(state: Any, run: Any) -> Any:
        return [Edge("a", "a")] if state["n"] < 1000 else []

    built = graph({"a": waits}, chain("a", "a"), [COUNT], routers={"a": on}, recursion_limit=UNLIMITED)
    assert send(built)[0].status == "completed"


@pytest.mark.usefixtures("low")
def test_an_endless_loop_in_a_nested_graph_ends_the_run_even_if_it_is_caught() -> None:
    inner = looping(writes())

    async def tolerant(state: Any, ctx: Any) -> Any:
        try:
            await run_inside(ctx, inner, {})
        except Exception:
            return Update({"n": -1})

    ending, _ = send(graph({"outer": tolerant, "next": writes()}, chain("outer", "next"), [COUNT]))
    assert (ending.status, ending.node, ending.error.code) == ("failed", "outer", "endless-loop")


@pytest.mark.usefixtures("low")
def test_the_work_of_nested_graphs_counts_for_the_loop_around_them() -> None:
    inner = counting_to(60)

    async def outer(state: Any, ctx: Any) -> Any:
        await run_inside(ctx, inner, {})
        return Update()

    ending, _ = send(looping(outer))
    assert "after 10 rounds" in str(ending.error)
    assert ending.error.way.steps == ["a", "b"]


@pytest.mark.usefixtures("low")
def test_pauses_that_are_answered_at_once_count_as_rounds() -> None:
    world = world_spec(human=[{"times": "any", "reply": "yes"}])
    ending, _ = send(looping(asks("on?")), world=world)
    assert ending.error.code == "endless-loop"


@pytest.mark.usefixtures("low")
def test_no_rescue_makes_an_endless_loop_a_success() -> None:
    async def swallow(error: Exception, run: Any) -> None:
        return None

    ending, _ = send(looping(writes(), lifecycle=Lifecycle(rescue=swallow)))
    assert ending.status == "failed"


@pytest.mark.usefixtures("low")
def test_nodes_of_an_event_graph_that_activate_each_other_at_one_instant_are_stopped() -> None:
    nodes = {"a": {"to": "b"}, "b": {"to": "a"}}
    done = run(compiled({"start": "a", "nodes": nodes}, recursion_limit=UNLIMITED))
    assert (done.status, type(done.ending.error)) == ("failed", EndlessLoop)
    assert "it last went round a → b" in str(done.ending.error)
