"""Static breakpoints: runs pause before and after nodes, without a question, and are resumed."""

from typing import Any

import pytest

from harness.engine.conversation import Conversation
from harness.graph import observe
from harness.graph.model import END, START, Edge
from tests.engine.breakpoints import ANYBODY, Talk, chain, fork, logs, mapping, pauses
from tests.engine.graphs import ADDED, asks, graph, simulate


def test_a_node_after_a_breakpoint_starts_in_the_turn_that_resumes() -> None:
    talk = Talk(chain(**pauses(before="b")), {})
    assert talk.statuses == ["interrupted", "completed"]
    assert talk.paths == [["a"], ["b"]]
    assert talk.interrupts == [["b"], []]
    assert talk.logs == [["a"], ["a", "b"]]
    assert talk.routes == [[START, "a"], ["a", "b"], ["b", END]]


def test_a_breakpoint_after_a_node_pauses_in_the_turn_in_which_it_ran() -> None:
    talk = Talk(chain(**pauses(after="a")), None)
    assert talk.statuses == ["interrupted", "completed"]
    assert talk.paths == [["a"], ["b"]]
    assert talk.interrupts == [["a"], []]


def test_at_a_breakpoint_before_the_first_node_nothing_has_run() -> None:
    talk = Talk(chain(**pauses(before="a")), {}, value={"log": ["in"]})
    assert talk.paths == [[], ["a", "b"]]
    assert talk.logs == [["in"], ["in", "a", "b"]]


def test_breakpoints_after_a_node_and_before_the_next_are_one_pause() -> None:
    assert Talk(chain(**pauses(after="a", before="b")), {}).statuses == ["interrupted", "completed"]


def test_a_breakpoint_after_the_last_node_does_not_pause() -> None:
    assert Talk(chain(**pauses(after="b"))).statuses == ["completed"]


def test_a_breakpoint_in_a_loop_pauses_in_every_round() -> None:
    async def twice(state: Any, run: Any) -> Any:
        return [edges[len(state["log"]) >= 4]]

    edges = [Edge("b", "a"), Edge("b", END)]
    built = graph(
        logs("ab"),
        [(START, "a"), ("a", "b"), *edges],
        [ADDED],
        routers={"b": twice},
        **pauses(before="b"),
    )
    talk = Talk(built, {}, {})
    assert talk.statuses == ["interrupted", "interrupted", "completed"]
    assert talk.paths == [["a"], ["b", "a"], ["b"]]


def test_every_turn_pauses() -> None:
    async def main(simulation: Any) -> Any:
        built = chain(may_pause=False, **pauses(before="b"))  # its nodes never pause
        conversation = Conversation(built, simulation, single=True)
        return [
            (await conversation.send({})).status,
            (await conversation.resume({})).status,
            (await conversation.send({})).status,
            (await conversation.send({})).state["log"],
            (await conversation.resume({})).state["log"],
        ]

    statuses = ["interrupted", "completed", "interrupted"]
    assert simulate(main) == [*statuses, [*"abaa"], [*"abaab"]]  # a new input leaves a pause behind


def test_a_new_input_forgets_what_ran_before() -> None:
    async def main(simulation: Any) -> Any:
        conversation = Conversation(chain(**pauses(before="a", after="b")), simulation)
        for turn in (conversation.send, conversation.resume, conversation.send):
            await turn({})
        return observe.interrupts(simulation.trace.events)

    assert simulate(main) == ["a", "a"]


@pytest.mark.parametrize(
    ("around", "paths", "interrupts"),
    [
        ({"before": "b"}, [["a"], [["b", "c"], "d"]], ["b"]),
        ({"before": "bc"}, [["a"], [["b", "c"], "d"]], ["b", "c"]),
        ({"after": "c"}, [["a", ["b", "c"]], ["d"]], ["c"]),
        ({"before": "d"}, [["a", ["b", "c"]], ["d"]], ["d"]),
    ],
)
def test_parallel_nodes_pause_once_together(around: Any, paths: Any, interrupts: Any) -> None:
    talk = Talk(fork(**pauses(**around)), {})
    assert talk.statuses == ["interrupted", "completed"]
    assert (talk.paths, talk.interrupts) == (paths, [interrupts, []])
    assert talk.last.state["log"] == [*"abcd"]


@pytest.mark.parametrize(
    ("around", "paths", "interrupts"),
    [
        ({"before": ["work"]}, [["a"], [["work", "work"], "count"]], ["work"]),
        ({"after": ["work"]}, [["a", ["work", "work"]], ["count"]], ["work"]),
    ],
)
def test_dispatched_visits_pause_once_for_all(around: Any, paths: Any, interrupts: Any) -> None:
    talk = Talk(mapping(**pauses(**around)), {}, value={"log": [1, 2]})
    assert talk.statuses == ["interrupted", "completed"]
    assert (talk.paths, talk.interrupts) == (paths, [interrupts, []])
    assert talk.last.state["log"] == [1, 2, 100, 200]


def test_people_are_not_asked_at_a_breakpoint() -> None:
    talk = Talk(chain(**pauses(before="b")), world=ANYBODY)
    assert talk.statuses == ["interrupted"]
    assert observe.calls(talk.trace.events) == []


def test_a_graph_may_have_both_kinds_of_pauses() -> None:
    built = graph({"a": asks("a?"), **logs("b")}, [(START, "a"), ("a", "b")], [ADDED], **pauses(after="a"))
    talk = Talk(built, "me", {})
    assert talk.statuses == ["interrupted", "interrupted", "completed"]
    assert talk.interrupts == [["a?"], ["a"], []]
    assert talk.last.state["log"] == ["me", "b"]
    assert Talk(built, {}, world=ANYBODY).logs == [["yes"], ["yes", "b"]]


def test_any_text_may_name_a_node() -> None:
    built = chain(["a:b", "messages", "a|b"], **pauses(before=["a|b"], after=["a:b"]))
    assert Talk(built, {}, {}).interrupts == [["a:b"], ["a|b"], []]


def test_a_run_that_is_not_paused_cannot_be_resumed() -> None:
    talk = Talk(chain(**pauses(before="b")), {}, {})
    assert (talk.last.status, talk.last.error.code) == ("failed", "not-interrupted")
