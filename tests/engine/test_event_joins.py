"""The event scheduler: joins, late arrivals and time-outs."""

from collections.abc import Sequence
from typing import Any

import pytest

from harness.engine.context import NodeContext, RunContext
from harness.graph.events import Join, JoinTimeout, merged_input
from harness.graph.model import Dispatch, Edge, Router, State, Update
from tests.engine.events import Agent, compiled, requirement, run


def fan(wait_for: str, timeout: float | None = None, **seconds: float) -> Agent:
    """Return an agent whose node `s` calls nodes that take these seconds and then call `join`."""
    nodes: dict[str, Any] = {
        "s": {"to": list(seconds)},
        **{name: {"takes": takes, "to": "join"} for name, takes in seconds.items()},
        "join": {"wait_for": wait_for, "timeout": timeout, "takes": 1},
    }
    return {"start": "s", "nodes": nodes}


@pytest.mark.parametrize(
    ("wait_for", "arrived", "missing"),
    [
        ("a AND b", "", "a AND b"),
        ("a AND b", "a", "b"),
        ("a AND b", "ab", None),
        ("a OR b", "", "a OR b"),
        ("a OR b", "b", None),
        ("a AND (b OR c)", "a", "b OR c"),
        ("a AND (b OR c)", "c", "a"),
        ("a AND (b OR c)", "ac", None),
        ("a OR b AND c", "b", "a OR c"),
        ("a AND b?", "b", "a"),
        ("a AND b?", "a", None),
        ("a OR b?", "b", "a"),
        ("a?", "", "a?"),
        ("a? OR b?", "b", None),
        ("(a? AND b?) AND c", "c", None),
    ],
)
def test_missing_returns_the_open_part_of_a_requirement(
    wait_for: str, arrived: str, missing: str | None
) -> None:
    found = Join(requirement(wait_for)).missing(set(arrived))
    assert (None if found is None else str(found)) == missing


def test_and_starts_once_after_the_slower_member_and_sees_both() -> None:
    done = run(fan("a AND b", a=2, b=5))
    assert done.path == ["s", "a", "b", "join"]
    assert done.starts[-1] == ("join", 5.0)
    assert done.seen("join")["callers"] == ["a", "b"]


def test_or_is_won_by_the_faster_member_and_the_late_one_is_ignored() -> None:
    done = run(fan("a OR b", a=8, b=1))
    assert done.path == ["s", "a", "b", "join"]
    assert done.starts[-1] == ("join", 1.0)
    assert done.seen("join")["callers"] == ["b"]
    assert done.total == 8.0


def test_all_that_arrives_in_the_same_wave_counts() -> None:
    assert run(fan("a OR b", a=1, b=1)).seen("join")["callers"] == ["a", "b"]


def test_parentheses_take_the_first_of_the_alternatives() -> None:
    done = run(fan("a AND (b OR c)", a=3, b=9, c=0))
    assert done.starts[-1] == ("join", 3.0)
    assert done.seen("join")["callers"] == ["c", "a"]


@pytest.mark.parametrize(("takes", "callers"), [(0, ["b", "a"]), (2, ["b", "a"]), (4, ["a"])])
def test_an_optional_member_never_delays_the_start_but_counts_when_it_is_there(
    takes: float, callers: list[str]
) -> None:
    done = run(fan("a AND b?", b=takes, a=2))
    assert done.starts[-1] == ("join", 2.0)
    assert done.seen("join")["callers"] == callers


def test_a_join_with_optional_members_only_starts_with_the_first() -> None:
    done = run(fan("a? AND b?", a=3, b=1))
    assert done.starts[-1] == ("join", 1.0)
    assert done.path.count("join") == 1


def test_arrivals_while_the_node_is_queued_are_part_of_its_input() -> None:
    agent = fan("a OR b", a=1, b=2)
    agent["nodes"]["s"]["to"].insert(0, "join")  # a call from no member, which takes the only place until 3
    agent["nodes"]["join"] |= {"takes": 3, "limit": 1}
    done = run(agent)
    assert [at for node, at in done.starts if node == "join"] == [0.0, 3.0]
    assert done.seen("join")["callers"] == ["a", "b"]


def test_a_caller_that_is_not_a_member_activates_the_node_at_once() -> None:
    agent = fan("a AND b", a=2, b=5)
    agent["nodes"]["s"]["to"].insert(0, "join")
    done = run(agent)
    assert [at for node, at in done.starts if node == "join"] == [0.0, 5.0]


def test_the_input_activates_a_node_with_a_join_at_once() -> None:
    done = run({"start": "join", "nodes": {"a": {}, "join": {"wait_for": "a"}}})
    assert done.path == ["join"]


def test_a_member_whose_condition_does_not_hold_does_not_arrive() -> None:
    agent = fan("a AND b", a=1, b=1)
    agent["nodes"]["b"]["to"] = [{"join": "never"}]
    done = run(agent)
    assert (done.status, done.path) == ("completed", ["s", "a", "b"])


def test_a_loop_may_wait_again_and_again() -> None:
    rounds = 3

    async def count(state: State, ctx: NodeContext) -> Update:
        return Update({"n": state["n"] + 1, "more": state["n"] + 1 < rounds})

    nodes = {
        "s": {"writes": {"n": 0, "more": True}, "to": ["a", "b"]},
        "a": {"takes": 1, "to": "join"},
        "b": {"takes": 2, "to": "join"},
        "join": {"wait_for": "a AND b", "body": count, "to": [{"a": "more"}, {"b": "more"}]},
    }
    done = run({"start": "s", "nodes": nodes})
    assert [at for node, at in done.starts if node == "join"] == [2.0, 4.0, 6.0]


def test_a_member_that_began_before_the_node_started_is_late_even_after_restarts() -> None:
    # `b` begins at 0 and settles at 6, at its third attempt; `join` has started at 1, by `a`.
    failures = iter([True, True, False])

    async def third_time(state: State, ctx: NodeContext) -> Update:
        await ctx.sleep(2)
        if next(failures):
            raise ValueError("not yet")
        return Update()

    nodes = {
        "s": {"to": ["a", "b"]},
        "a": {"takes": 1, "to": "join"},
        "b": {"body": third_time, "tries": 3, "to": "join"},
        "join": {"wait_for": "a OR b"},
    }
    done = run({"start": "s", "nodes": nodes})
    assert done.path == ["s", "a", "b", "join", "b", "b"]


# Time-outs


def test_a_join_that_times_out_fails_and_names_the_missing_members() -> None:
    done = run(fan("a AND (b OR c)", timeout=20, a=2, b=90, c=90))
    assert done.status == "failed"
    assert done.ending.node == "join"
    assert isinstance(done.ending.error, JoinTimeout)
    assert str(done.ending.error) == "'join' waited 20 s for b OR c, which did not arrive"
    assert "join" not in done.path
    assert [event["at"] for event in done.events if event["event"] == "join_timeout"] == [22.0]


def test_a_join_with_a_failed_member_waits_until_it_times_out() -> None:
    agent = fan("a AND b", timeout=20, a=2, b=1)
    agent["nodes"]["b"]["error"] = "broken"
    done = run(agent)
    assert (done.total, done.ending.node, str(done.ending.error)) == (22.0, "b", "broken")
    assert "join" not in done.path


def test_the_time_out_counts_from_the_first_arrival_even_of_an_optional_member() -> None:
    done = run(fan("a AND b?", timeout=15, a=30, b=1))
    assert [event["at"] for event in done.events if event["event"] == "join_timeout"] == [16.0]


def test_an_arrival_at_the_instant_of_the_time_out_is_in_time() -> None:
    assert run(fan("a AND b", timeout=3, a=0.1, b=3.1)).starts[-1] == ("join", 3.1)
    assert run(fan("a AND b", timeout=3, a=0.1, b=3.2)).status == "failed"


def test_a_join_that_holds_in_time_does_not_time_out() -> None:
    done = run(fan("a OR b", timeout=3, a=1, b=60))
    assert (done.status, done.total) == ("completed", 60.0)


def test_a_join_that_holds_in_time_may_wait_longer_for_a_place() -> None:
    agent = fan("a AND b", timeout=3, a=1, b=2)
    agent["nodes"]["s"]["to"].insert(0, "join")  # a call from no member, which takes the only place until 10
    agent["nodes"]["join"] |= {"takes": 10, "limit": 1}
    done = run(agent)
    assert [at for node, at in done.starts if node == "join"] == [0.0, 10.0]
    assert done.status == "completed"


def test_a_join_without_any_arrival_is_no_error() -> None:
    agent = fan("a AND b", timeout=3, a=1, b=1)
    agent["nodes"]["s"]["to"] = []
    assert run(agent).status == "completed"


def test_members_begun_before_the_time_out_are_late_and_later_ones_reopen_the_join() -> None:
    nodes = {
        "s": {"to": ["a", "b", "later"]},
        "a": {"to": "join"},
        "b": {"takes": 10, "to": "join"},  # began at 0: late
        "later": {"takes": 20, "to": ["a", "b2"]},
        "b2": {"takes": 1, "to": "join"},
        "join": {"wait_for": "a AND (b OR b2)", "timeout": 5},
    }
    done = run({"start": "s", "nodes": nodes})
    assert [at for node, at in done.starts if node == "join"] == [21.0]
    assert done.seen("join")["callers"] == ["a", "b2"]
    assert done.status == "failed"  # the first join did time out


def test_a_node_whose_join_timed_out_may_follow_other_edges() -> None:
    agent = fan("a AND b", timeout=5, a=1, b=60)
    agent["nodes"]["join"]["fallback"] = "without"
    agent["nodes"]["without"] = {}
    done = run(agent)
    assert done.status == "completed"
    assert done.starts[-1] == ("without", 6.0)


# What arrives


def test_the_states_that_are_dispatched_to_a_node_are_merged_in_order_of_arrival() -> None:
    async def keep(state: State, ctx: NodeContext) -> Update:
        return Update({"log": [dict(state)]})

    def dispatching(name: str, state: State) -> Router:
        async def follow(_state: State, _run: RunContext) -> Sequence[Edge | Dispatch]:
            return [Dispatch(Edge(name, "join"), state)]

        return follow

    nodes: dict[str, Any] = {
        "a": {"takes": 2, "to": "join"},
        "b": {"takes": 1, "to": "join"},
        "join": {"wait_for": "a AND b", "body": keep},
    }
    routers = {"a": dispatching("a", {"by": "a", "x": 1}), "b": dispatching("b", {"by": "b", "y": 2})}
    graph = compiled({"start": ["a", "b"], "nodes": nodes}, routers=routers, input_of=merged_input)
    assert run(graph).log[-1] == {"by": "a", "x": 1, "y": 2}
