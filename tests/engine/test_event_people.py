"""The event scheduler: people are asked while other nodes run, and a run without answers is interrupted."""

from typing import Any

import pytest

from harness.engine.context import NodeContext
from harness.engine.conversation import Conversation
from harness.engine.standstill import Simulation
from harness.graph import observe
from harness.graph.events import NodeFailure
from harness.graph.model import State, Update
from harness.world.spec import WorldSpec
from tests.engine.events import compiled, run
from tests.engine.graphs import simulate
from tests.world.stubs import world_spec


def people(**answers: tuple[str, float]) -> WorldSpec:
    """Return a world that answers the node of each name after these seconds."""
    return world_spec(
        human=[
            {"node": node, "latency": seconds, "reply": reply} for node, (reply, seconds) in answers.items()
        ]
    )


ASK_TWO = {
    "start": ["p", "q"],
    "nodes": {"p": {"asks": "p?", "to": "after"}, "q": {"asks": "q?"}, "after": {}},
}


def test_two_people_asked_at_once_take_the_longer_of_their_latencies() -> None:
    done = run(ASK_TWO, people(p=("yes", 3), q=("no", 8)))
    assert (done.status, done.total) == ("completed", 8.0)
    assert done.log == ["p", "yes", "after", "q", "no"]
    assert done.starts[-1] == ("after", 3.0)


def test_other_nodes_run_while_a_person_is_asked() -> None:
    nodes = {"p": {"asks": "p?"}, "a": {"takes": 1, "to": "b"}, "b": {"takes": 1}}
    done = run({"start": ["p", "a"], "nodes": nodes}, people(p=("yes", 30)))
    assert done.log == ["a", "b", "p", "yes"]
    assert done.total == 30.0


def test_a_person_is_asked_as_soon_as_the_node_pauses() -> None:
    nodes = {"p": {"takes": 2, "asks": "p?"}, "slow": {"takes": 9}}
    done = run({"start": ["slow", "p"], "nodes": nodes}, people(p=("yes", 0)))
    call = next(event for event in done.events if event["event"] == "call")
    assert (call["at"], call["request"]["args"]) == (2.0, {"value": "p?"})


def test_a_node_may_ask_several_times() -> None:
    async def asks_twice(state: State, ctx: NodeContext) -> Update:
        return Update({"log": [await ctx.pause("first"), await ctx.pause("second")]})

    world = world_spec(human=[{"latency": seconds, "reply": text} for text, seconds in [("a", 2), ("b", 3)]])
    done = run({"start": "p", "nodes": {"p": {"body": asks_twice}}}, world)
    assert (done.log, done.total, done.path) == (["a", "b"], 5.0, ["p"])


def test_a_visit_that_waits_for_an_answer_keeps_its_place_under_the_limits() -> None:
    nodes = {"s": {"to": ["p", "a"]}, "p": {"asks": "p?"}, "a": {}}
    done = run({"start": "s", "limit": 1, "nodes": nodes}, people(p=("yes", 4)))
    assert done.starts == [("s", 0.0), ("p", 0.0), ("a", 4.0)]


def test_visits_that_are_resumed_settle_in_the_order_of_their_starts() -> None:
    nodes = {"p": {"asks": "p?", "to": "x"}, "a": {"takes": 4, "to": "y"}, "x": {}, "y": {}}
    for start in (["p", "a"], ["a", "p"]):
        done = run({"start": start, "nodes": nodes}, people(p=("yes", 4)))
        assert [node for node, at in done.starts if at == 4.0] == ([*"xy"] if start[0] == "p" else [*"yx"])


def test_an_answer_that_is_an_error_fails_the_node_and_its_branch_only() -> None:
    error = {"kind": "exception", "message": "out of office"}
    world = world_spec(human=[{"node": "p", "error": error}, {"node": "q", "reply": "yes"}])
    done = run(ASK_TWO, world)
    assert (done.status, done.ending.node) == ("failed", "p")
    assert done.log == ["q", "yes"]


# Nobody answers


def test_a_run_finishes_all_other_work_before_it_is_interrupted() -> None:
    nodes = {
        "p": {"asks": "p?", "to": "after"},
        "a": {"takes": 10, "to": "b"},
        "b": {"takes": 1},
        "after": {},
    }
    done = run({"start": ["p", "a"], "nodes": nodes})
    assert (done.status, done.log, done.total) == ("interrupted", ["a", "b"], 11.0)
    assert observe.interrupts(done.events) == ["p?"]


def test_a_resume_continues_at_the_pause() -> None:
    nodes = {
        "p": {"asks": "p?", "to": "after"},
        "a": {"takes": 10, "to": "b"},
        "b": {"takes": 1},
        "after": {},
    }
    done = run({"start": ["p", "a"], "nodes": nodes}, None, "yes")
    assert (done.status, done.log) == ("completed", ["a", "b", "p", "yes", "after"])
    assert done.path == ["p", "a", "b", "after"]
    assert done.total == 11.0


@pytest.mark.parametrize(("answers", "log"), [(["x"], ["x", "x"]), (["x", "y"], ["x", "y"])])
def test_one_answer_answers_all_questions_or_each_has_its_own(answers: list[str], log: list[str]) -> None:
    done = run(ASK_TWO, None, *answers)
    assert [item for item in done.log if item in "xy"] == log


def test_only_unanswered_pauses_stay_pending() -> None:
    done = run(ASK_TWO, people(q=("no", 8)))
    assert (done.status, done.log, done.total) == ("interrupted", ["q", "no"], 8.0)
    assert run(ASK_TWO, people(q=("no", 8)), "yes").log == ["q", "no", "p", "yes", "after"]


def test_people_are_asked_at_once_in_a_resumed_run_too() -> None:
    nodes = {"p": {"asks": "p?", "to": "q"}, "q": {"asks": "q?"}}
    done = run({"start": "p", "nodes": nodes}, people(q=("no", 8)), "yes")
    assert (done.status, done.log, done.total) == ("completed", ["p", "yes", "q", "no"], 8.0)


def test_a_join_does_not_time_out_while_the_run_waits_for_a_resume() -> None:
    nodes = {
        "p": {"asks": "p?", "to": "join"},
        "a": {"takes": 1, "to": "join"},
        "join": {"wait_for": "p AND a", "timeout": 20},
    }
    agent = {"start": ["p", "a"], "nodes": nodes}
    done = run(agent)
    assert (done.status, done.total) == ("interrupted", 1.0)
    done = run(agent, None, "yes")
    assert (done.status, done.starts[-1]) == ("completed", ("join", 1.0))


def test_a_join_without_a_timeout_waits_for_somebody_outside() -> None:
    nodes = {
        "p": {"asks": "p?", "to": "join"},
        "a": {"takes": 1, "to": "join"},
        "join": {"wait_for": "p AND a"},
    }
    done = run({"start": ["p", "a"], "nodes": nodes}, None, "yes")
    assert (done.status, done.starts[-1]) == ("completed", ("join", 1.0))


def test_a_join_may_time_out_while_a_person_is_asked() -> None:
    nodes = {
        "p": {"asks": "p?", "to": "join"},
        "a": {"takes": 1, "to": "join"},
        "join": {"wait_for": "p AND a", "timeout": 20},
    }
    done = run({"start": ["p", "a"], "nodes": nodes}, people(p=("yes", 30)))
    assert (done.status, done.ending.node) == ("failed", "join")
    assert done.log == ["a", "p", "yes"]


def test_a_run_with_a_failed_branch_is_interrupted_first_and_fails_at_the_end() -> None:
    agent = {"start": ["p", "bad"], "nodes": {"p": {"asks": "p?"}, "bad": {"error": "broken"}}}
    assert run(agent).status == "interrupted"
    done = run(agent, None, "yes")
    assert (done.status, done.ending.node, done.log) == ("failed", "bad", ["p", "yes"])


def test_an_interrupted_run_shows_the_partial_updates_of_its_paused_nodes() -> None:
    async def asks(state: State, ctx: NodeContext) -> Update:
        return Update({"log": [await ctx.pause("p?", partial_update={"log": ["draft"]})]})

    agent = {"start": ["p", "a"], "nodes": {"p": {"body": asks}, "a": {"takes": 1}}}
    assert run(agent).log == ["a", "draft"]
    assert run(agent, None, "final").log == ["a", "final"]


# Several inputs


def test_another_input_keeps_the_state_and_discards_joins_failures_and_questions() -> None:
    nodes: Any = {
        "a": {"to": "join"},
        "b": {"to": "join"},
        "bad": {"error": "broken"},
        "p": {"asks": "p?"},
        "join": {"wait_for": "a AND b"},
    }
    verdicts: list[list[str]] = []

    async def tolerate(failures: Any, _run: Any) -> NodeFailure | None:
        verdicts.append([failure.node for failure in failures])
        return None

    async def by_text(state: State, _run: Any) -> Any:
        return [edge for edge in graph.edges_from("__start__") if edge.target in state["text"].split()]

    graph = compiled(
        {"start": list(nodes), "nodes": nodes}, run_failure=tolerate, routers={"__start__": by_text}
    )

    async def main(simulation: Simulation) -> Any:
        conversation = Conversation(graph, simulation)
        endings = [await conversation.send({"text": text}) for text in ("a bad p", "b", "a", "a b")]
        return [(ending.status, ending.state["log"]) for ending in endings]

    assert simulate(main) == [
        ("interrupted", ["a"]),
        ("completed", ["a", "b"]),
        ("completed", ["a", "b", "a"]),
        ("completed", ["a", "b", "a", "a", "b", "join"]),
    ]
    assert verdicts == [[], [], []]
