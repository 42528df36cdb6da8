"""Breakpoints of a graph that runs inside a node pause the run at that node."""

from typing import Any

from harness.engine.conversation import run_inside
from harness.graph.model import START, Update
from tests.engine.breakpoints import ANYBODY, Talk, chain, logs, pauses
from tests.engine.graphs import ADDED, asks, graph


def outer(inner: Any, partial_update: Any = None, **more: Any) -> Any:
    """A graph with a node inside which another graph runs."""

    async def run(state: Any, ctx: Any) -> Any:
        ending = await run_inside(ctx, inner, {"log": state["log"]}, partial_update=partial_update)
        return Update({"log": [ending.state["log"]]})

    nodes = {**logs(["first", "last"]), "inside": run}
    return graph(nodes, [(START, "first"), ("first", "inside"), ("inside", "last")], [ADDED], **more)


def test_a_nested_breakpoint_pauses_the_run_at_the_node_and_resumes_inside() -> None:
    talk = Talk(outer(chain(**pauses(before="b"))), {})
    assert talk.statuses == ["interrupted", "completed"]
    assert talk.interrupts == [["inside"], []]
    assert talk.logs == [["first"], ["first", ["first", "a", "b"], "last"]]
    started = [event["node"] for event in talk.trace.events if event["event"] == "node_start"]
    assert (started.count("a"), started.count("b")) == (1, 1)


def test_the_node_is_listed_again_in_the_turn_that_resumes() -> None:
    assert Talk(outer(chain(**pauses(before="b"))), {}).paths == [["first", "inside"], ["inside", "last"]]


def test_several_nested_breakpoints_are_passed_one_after_the_other() -> None:
    talk = Talk(outer(chain("abc", **pauses(before="a", after="b"))), {}, {})
    assert talk.statuses == ["interrupted", "interrupted", "completed"]
    assert talk.last.state["log"] == ["first", ["first", *"abc"], "last"]


def test_an_edit_restarts_the_nested_graph_which_pauses_again() -> None:
    talk = Talk(outer(chain(**pauses(before="b"))), {"log": ["edit"]}, {})
    assert talk.statuses == ["interrupted", "interrupted", "completed"]
    assert talk.paths == [["first", "inside"], ["inside"], ["inside", "last"]]
    assert talk.last.state["log"] == ["first", "edit", ["first", "edit", "a", "b"], "last"]


def test_the_partial_update_is_dropped_when_the_node_restarts() -> None:
    built = outer(chain(**pauses(before="b")), partial_update=lambda state: {"log": ["so far"]})
    assert Talk(built, {"log": ["edit"]}).logs == [["first", "so far"], ["first", "edit", "so far"]]


def test_a_pause_propagates_through_all_levels() -> None:
    built = outer(outer(chain(**pauses(before="b")), **pauses(after=["first"])))
    talk = Talk(built, {}, {})
    assert talk.statuses == ["interrupted", "interrupted", "completed"]
    assert talk.last.state["log"] == [
        "first",
        ["first", "first", ["first", "first", "a", "b"], "last"],
        "last",
    ]


def test_a_nested_graph_pauses_once_after_its_last_node() -> None:
    talk = Talk(outer(chain(**pauses(after="b"))), {})
    assert talk.statuses == ["interrupted", "completed"]
    assert talk.paths == [["first", "inside"], ["inside", "last"]]
    assert talk.last.state["log"] == ["first", ["first", "a", "b"], "last"]


def test_the_outer_node_may_have_breakpoints_of_its_own() -> None:
    talk = Talk(outer(chain(**pauses(before="b")), **pauses(before=["inside"], after=["inside"])), {}, {}, {})
    assert talk.interrupts == [["inside"], ["inside"], ["inside"], []]
    assert talk.paths == [["first"], ["inside"], ["inside"], ["last"]]


def two_inside(**more: Any) -> Any:
    """Two parallel nodes with a nested graph that pauses."""
    inner = chain(**pauses(before="b"))

    async def run(state: Any, ctx: Any) -> Any:
        return Update({"log": (await run_inside(ctx, inner, {})).state["log"]})

    nodes = {**logs("zq"), "x": run, "y": run}
    return graph(
        nodes, [(START, "x"), (START, "y"), (START, "z"), *((n, "q") for n in "xyz")], [ADDED], **more
    )


def test_graphs_inside_parallel_nodes_pause_and_resume_together() -> None:
    talk = Talk(two_inside(), {})
    assert talk.statuses == ["interrupted", "completed"]
    assert talk.paths == [[["x", "y", "z"]], [["x", "y"], "q"]]
    assert talk.last.state["log"] == [*"ababzq"]


def test_they_resume_together_one_level_further_up_too() -> None:
    assert Talk(outer(two_inside()), {}).statuses == ["interrupted", "completed"]


def test_a_question_next_to_a_nested_breakpoint_is_asked_and_the_breakpoint_is_not() -> None:
    async def run(state: Any, ctx: Any) -> Any:
        return Update({"log": (await run_inside(ctx, chain(**pauses(before="b")), {})).state["log"]})

    built = graph({"x": run, "y": asks("y?")}, [(START, "x"), (START, "y")], [ADDED])
    talk = Talk(built, "me")
    assert talk.statuses == ["interrupted", "completed"]
    assert talk.last.state["log"] == ["a", "b", "me"]
    talk = Talk(built, {}, world=ANYBODY)
    assert talk.statuses == ["interrupted", "completed"]
    assert talk.last.state["log"] == ["a", "b", "yes"]


def test_a_failure_after_a_nested_breakpoint_fails_the_node() -> None:
    async def breaks(state: Any, ctx: Any) -> None:
        raise LookupError("gone")

    inner = graph({**logs("a"), "b": breaks}, [(START, "a"), ("a", "b")], [ADDED], **pauses(before="b"))
    talk = Talk(outer(inner), {})
    assert (talk.last.status, talk.last.node, str(talk.last.error)) == ("failed", "inside", "gone")
