"""Runs pause before and after nodes, where nobody is asked anything, and go on, with or without an edit."""

from typing import Any

import pytest
from langgraph.errors import InvalidUpdateError

from harness.engine.conversation import Conversation
from harness.engine.nested import run_inside
from harness.graph import observe
from harness.graph.model import END, START, Dispatch, Edge, Lifecycle, Update
from harness.world.spec import Stub, WorldSpec
from tests.engine.graphs import ADDED, COUNT, asks, graph, simulate, writes

ANYBODY = WorldSpec(human=(Stub(times="any", answer={"reply": "yes"}),))


class Talk:
    """A conversation: the endings of its turns, and what each turn did."""

    def __init__(self, built: Any, *turns: Any, value: Any = None, world: Any = None) -> None:
        self.endings: list[Any] = []
        self.turns: list[list[Any]] = []

        async def main(simulation: Any) -> None:
            conversation, events = Conversation(built, simulation), simulation.trace.events
            self.trace = simulation.trace
            for number, turn in enumerate([value or {}, *turns]):
                first = len(events)
                self.endings.append(await (conversation.resume(turn) if number else conversation.send(turn)))
                self.turns.append(events[first:])

        simulate(main, world)

    @property
    def statuses(self) -> Any:
        return [ending.status for ending in self.endings]

    @property
    def paths(self) -> Any:
        return [observe.path(turn) for turn in self.turns]

    @property
    def interrupts(self) -> Any:
        return [observe.interrupts(turn) for turn in self.turns]

    @property
    def logs(self) -> Any:
        return [ending.state.get("log") for ending in self.endings]

    @property
    def routes(self) -> Any:
        return observe.routes(self.trace.events)

    @property
    def last(self) -> Any:
        return self.endings[-1]


def logs(names: Any, **more: Any) -> Any:
    """Nodes that write their names into the log."""
    return {name: writes(log=[name], **more) for name in names}


def chain(names: Any = "ab", **more: Any) -> Any:
    """Nodes one after the other."""
    return graph(logs(names), zip([START, *names], [*names, END], strict=True), [ADDED, COUNT], **more)


def pauses(*, before: Any = "", after: Any = "") -> Any:
    return {"pause_before": frozenset(before), "pause_after": frozenset(after)}


def test_a_run_pauses_before_a_node_which_starts_in_the_turn_that_goes_on() -> None:
    talk = Talk(chain(**pauses(before="b")), {})
    assert talk.statuses == ["interrupted", "completed"]
    assert talk.paths == [["a"], ["b"]]
    assert talk.interrupts == [["b"], []]
    assert talk.logs == [["a"], ["a", "b"]]
    assert talk.routes == [[START, "a"], ["a", "b"], ["b", END]]


def test_a_run_pauses_after_a_node_which_ran_in_that_turn() -> None:
    talk = Talk(chain(**pauses(after="a")), None)
    assert talk.statuses == ["interrupted", "completed"]
    assert talk.paths == [["a"], ["b"]]
    assert talk.interrupts == [["a"], []]


def test_before_the_first_node_nothing_has_run() -> None:
    talk = Talk(chain(**pauses(before="a")), {}, value={"log": ["in"]})
    assert talk.paths == [[], ["a", "b"]]
    assert talk.logs == [["in"], ["in", "a", "b"]]


def test_after_one_node_and_before_the_next_is_one_pause() -> None:
    assert Talk(chain(**pauses(after="a", before="b")), {}).statuses == ["interrupted", "completed"]


def test_there_is_no_pause_after_an_end() -> None:
    assert Talk(chain(**pauses(after="b"))).statuses == ["completed"]


def test_a_loop_pauses_each_time_it_comes_by() -> None:
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


def fork(**more: Any) -> Any:
    """Two nodes side by side, and one that joins them."""
    edges = [(START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    return graph(logs("abcd"), edges, [ADDED], **more)


@pytest.mark.parametrize(
    ("around", "paths", "interrupts"),
    [
        ({"before": "b"}, [["a"], [["b", "c"], "d"]], ["b"]),
        ({"before": "bc"}, [["a"], [["b", "c"], "d"]], ["b", "c"]),
        ({"after": "c"}, [["a", ["b", "c"]], ["d"]], ["c"]),
        ({"before": "d"}, [["a", ["b", "c"]], ["d"]], ["d"]),
    ],
)
def test_nodes_side_by_side_pause_once_and_together(around: Any, paths: Any, interrupts: Any) -> None:
    talk = Talk(fork(**pauses(**around)), {})
    assert talk.statuses == ["interrupted", "completed"]
    assert (talk.paths, talk.interrupts) == (paths, [interrupts, []])
    assert talk.last.state["log"] == [*"abcd"]


def mapping(**more: Any) -> Any:
    """Maps `work` over the items of the log, then counts."""

    async def scatter(state: Any, run: Any) -> Any:
        return [Dispatch(edge, {"n": item}) for item in state["log"] if item < 100]

    edge = Edge("a", "work")
    nodes = {
        "a": writes(),
        "work": writes(log=lambda state: [state["n"] * 100]),
        "count": writes(n=lambda state: len(state["log"])),
    }
    edges = [(START, "a"), edge, ("work", "count")]
    return graph(nodes, edges, [ADDED, COUNT], routers={"a": scatter}, **more)


@pytest.mark.parametrize(
    ("around", "paths", "interrupts"),
    [
        ({"before": ["work"]}, [["a"], [["work", "work"], "count"]], ["work"]),
        ({"after": ["work"]}, [["a", ["work", "work"]], ["count"]], ["work"]),
    ],
)
def test_mapped_calls_pause_once_for_all(around: Any, paths: Any, interrupts: Any) -> None:
    talk = Talk(mapping(**pauses(**around)), {}, value={"log": [1, 2]})
    assert talk.statuses == ["interrupted", "completed"]
    assert (talk.paths, talk.interrupts) == (paths, [interrupts, []])
    assert talk.last.state["log"] == [1, 2, 100, 200]


def test_nobody_is_asked() -> None:
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


def test_what_is_not_paused_cannot_go_on() -> None:
    talk = Talk(chain(**pauses(before="b")), {}, {})
    assert (talk.last.status, talk.last.error.code) == ("failed", "not-interrupted")


# Edits


def test_an_edit_is_merged_into_the_channels() -> None:
    talk = Talk(chain(**pauses(before="b")), {"log": ["edit"], "n": 5, "ghost": 1})
    assert talk.last.state == {"log": ["a", "edit", "b"], "n": 5}
    assert talk.paths == [["a"], ["b"]]
    assert talk.routes == [[START, "a"], ["a", "b"], ["b", END]]


def test_an_edit_before_the_first_node_is_merged_too() -> None:
    talk = Talk(chain(**pauses(before="a")), {"log": ["edit"]}, value={"log": ["in"]})
    assert talk.last.state["log"] == ["in", "edit", "a", "b"]


def test_an_edit_of_an_open_state_is_the_whole_state() -> None:
    nodes = {"a": writes(x=1), "b": writes(seen=dict)}
    built = graph(nodes, [(START, "a"), ("a", "b")], open_state=True, **pauses(before="b"))
    assert Talk(built, {"y": 2}).last.state == {"seen": {"y": 2}}
    assert Talk(built, {}).last.state == {"seen": {"x": 1}}


def test_the_dialect_converts_an_edit() -> None:
    async def edit(value: Any, run: Any) -> Any:
        return {"log": [value["said"]]}

    built = chain(lifecycle=Lifecycle(update_state=edit), **pauses(before="b"))
    assert Talk(built, {"said": "hi"}).last.state["log"] == ["a", "hi", "b"]


def test_only_a_mapping_edits_and_the_run_still_waits_after_another_value() -> None:
    talk = Talk(chain(**pauses(before="b")), "yes", {})
    assert talk.statuses == ["interrupted", "failed", "completed"]
    error = talk.endings[1].error
    assert error.code == "not-an-edit"
    assert str(error) == (
        "the run is at a breakpoint (b), where nothing is asked: expected {} to go on, or a mapping that updates the "
        "state, found 'yes'"
    )


def switch(**more: Any) -> Any:
    """`a` is followed by the node the label names: `b` unless an edit says otherwise."""

    async def by_label(state: Any, run: Any) -> Any:
        run.warn(f"asked with {state['label']}")
        return [edge for edge in edges if edge.condition == state["label"]]

    async def labels(state: Any, ctx: Any) -> Any:
        return Update({"log": ["a"]}, routing_values={"label": "b"})

    edges = [Edge("a", "b", "b"), Edge("a", "c", "c")]
    nodes = {**logs("bcd"), "a": labels}
    more = {"pause_after": frozenset("a"), "channels": [ADDED], **more}
    return graph(nodes, [(START, "a"), *edges, ("b", "d"), ("c", "d")], routers={"a": by_label}, **more)


def test_an_edit_asks_the_router_of_the_last_node_again() -> None:
    talk = Talk(switch(), {"label": "c"})
    assert talk.paths == [["a"], ["c", "d"]]
    assert [observe.warnings(turn) for turn in talk.turns] == [["asked with b"], ["asked with c"]]


def test_in_the_trace_the_new_route_takes_the_place_of_the_old_one() -> None:
    talk = Talk(switch(), {"label": "c"})
    assert [observe.routes(turn) for turn in talk.turns] == [
        [[START, "a"], ["a", "b"]],
        [["a", "c"], ["c", "d"], ["d", END]],
    ]
    assert talk.routes == [[START, "a"], ["a", "c"], ["c", "d"], ["d", END]]
    assert observe.coverage(talk.trace.events)["branches"] == ["a -> c [c]"]


def test_a_route_that_is_chosen_again_is_told_once() -> None:
    talk = Talk(switch(), {"label": "b"})
    assert [observe.routes(turn) for turn in talk.turns] == [
        [[START, "a"], ["a", "b"]],
        [["b", "d"], ["d", END]],
    ]
    assert talk.paths == [["a"], ["b", "d"]]


def test_without_an_edit_no_router_is_asked() -> None:
    assert observe.warnings(Talk(switch(), {}).turns[1]) == []


def test_a_router_that_fails_on_an_edit_fails_the_turn_at_its_node_and_the_run_still_waits() -> None:
    talk = Talk(switch(), {"log": ["edit"]}, "yes", {})
    assert [(ending.status, ending.node, type(ending.error).__name__) for ending in talk.endings[1:3]] == [
        ("failed", "a", "KeyError"),
        ("failed", None, "NotAnEdit"),
    ]
    assert talk.logs == [["a"], ["a"], ["a"], ["a", "b", "d"]]


def test_an_edit_may_lead_to_another_node_with_a_pause_which_it_passes() -> None:
    talk = Talk(switch(pause_before=frozenset("c")), {"label": "c"})
    assert talk.statuses == ["interrupted", "completed"]


def test_before_mapped_calls_what_was_edited_is_mapped() -> None:
    talk = Talk(mapping(**pauses(before=["work"])), {"log": [3]}, value={"log": [1, 2]})
    assert talk.paths == [["a"], [["work"] * 3, "count"]]
    assert talk.last.state["log"] == [1, 2, 3, 100, 200, 300]
    assert talk.routes.count(["a", "work"]) == 3


def test_an_edit_that_leaves_nothing_to_map_ends_the_run_with_the_edited_state() -> None:
    async def scatter(state: Any, run: Any) -> Any:
        return [Dispatch(edge, {}) for _ in range(state["n"])]

    edge = Edge("a", "work")
    nodes = {"a": writes(), "work": writes()}
    built = graph(nodes, [(START, "a"), edge], [COUNT], routers={"a": scatter}, **pauses(before=["work"]))
    talk = Talk(built, {"n": 0}, value={"n": 2})
    assert talk.statuses == ["interrupted", "completed"]
    assert (talk.paths[1], talk.last.state) == ([], {"n": 0})
    assert talk.routes == [[START, "a"], ["a", END]]


def test_mapped_calls_are_not_the_last_node_so_that_an_edit_after_them_maps_again() -> None:
    talk = Talk(mapping(**pauses(before=["count"])), {"log": [3]}, {}, value={"log": [1, 2]})
    assert talk.statuses == ["interrupted", "interrupted", "completed"]
    assert talk.paths == [["a", ["work", "work"]], [["work"] * 3], ["count"]]
    assert talk.last.state["log"] == [1, 2, 100, 200, 3, 100, 200, 300]


def test_after_nodes_that_ran_side_by_side_an_edit_is_ambiguous() -> None:
    talk = Talk(fork(**pauses(before="d")), {"log": ["edit"]}, {})
    assert talk.statuses == ["interrupted", "failed", "completed"]
    assert "several ran side by side" in str(talk.endings[1].error)
    assert talk.last.state["log"] == [*"abcd"]


def test_an_error_of_a_router_is_told_as_it_is() -> None:
    async def refuses(state: Any, run: Any) -> Any:
        if state["n"]:
            raise InvalidUpdateError("not so")
        return [edge]

    edge = Edge("a", "b")
    built = graph(
        logs("ab"), [(START, "a"), edge], [ADDED, COUNT], routers={"a": refuses}, **pauses(before="b")
    )
    assert str(Talk(built, {"n": 1}).last.error) == "not so"


def test_equal_conversations_have_equal_digests() -> None:
    assert len({Talk(switch(), {"label": "c"}).trace.digest() for _ in range(3)}) == 1


# Pauses inside


def outer(inner: Any, partial_update: Any = None, **more: Any) -> Any:
    """A graph with a node inside which another graph runs."""

    async def run(state: Any, ctx: Any) -> Any:
        ending = await run_inside(ctx, inner, {"log": state["log"]}, partial_update=partial_update)
        return Update({"log": [ending.state["log"]]})

    nodes = {**logs(["first", "last"]), "inside": run}
    return graph(nodes, [(START, "first"), ("first", "inside"), ("inside", "last")], [ADDED], **more)


def test_a_pause_inside_pauses_the_run_at_the_node_and_goes_on_inside() -> None:
    talk = Talk(outer(chain(**pauses(before="b"))), {})
    assert talk.statuses == ["interrupted", "completed"]
    assert talk.interrupts == [["inside"], []]
    assert talk.logs == [["first"], ["first", ["first", "a", "b"], "last"]]
    started = [event["node"] for event in talk.trace.events if event["event"] == "node_start"]
    assert (started.count("a"), started.count("b")) == (1, 1)


def test_the_node_is_listed_again_in_the_turn_that_goes_on() -> None:
    assert Talk(outer(chain(**pauses(before="b"))), {}).paths == [["first", "inside"], ["inside", "last"]]


def test_several_pauses_inside_are_passed_one_after_the_other() -> None:
    talk = Talk(outer(chain("abc", **pauses(before="a", after="b"))), {}, {})
    assert talk.statuses == ["interrupted", "interrupted", "completed"]
    assert talk.last.state["log"] == ["first", ["first", *"abc"], "last"]


def test_an_edit_starts_the_graph_inside_again_and_it_pauses_again() -> None:
    talk = Talk(outer(chain(**pauses(before="b"))), {"log": ["edit"]}, {})
    assert talk.statuses == ["interrupted", "interrupted", "completed"]
    assert talk.paths == [["first", "inside"], ["inside"], ["inside", "last"]]
    assert talk.last.state["log"] == ["first", "edit", ["first", "edit", "a", "b"], "last"]


def test_what_the_node_left_is_gone_when_it_starts_again() -> None:
    built = outer(chain(**pauses(before="b")), partial_update=lambda state: {"log": ["so far"]})
    assert Talk(built, {"log": ["edit"]}).logs == [["first", "so far"], ["first", "edit", "so far"]]


def test_a_pause_goes_up_through_all_levels() -> None:
    built = outer(outer(chain(**pauses(before="b")), **pauses(after=["first"])))
    talk = Talk(built, {}, {})
    assert talk.statuses == ["interrupted", "interrupted", "completed"]
    assert talk.last.state["log"] == [
        "first",
        ["first", "first", ["first", "first", "a", "b"], "last"],
        "last",
    ]


def test_after_its_last_node_a_graph_inside_pauses_once_for_what_follows_outside() -> None:
    talk = Talk(outer(chain(**pauses(after="b"))), {})
    assert talk.statuses == ["interrupted", "completed"]
    assert talk.paths == [["first", "inside"], ["inside", "last"]]
    assert talk.last.state["log"] == ["first", ["first", "a", "b"], "last"]


def test_the_node_itself_may_have_pauses_around_it() -> None:
    talk = Talk(outer(chain(**pauses(before="b")), **pauses(before=["inside"], after=["inside"])), {}, {}, {})
    assert talk.interrupts == [["inside"], ["inside"], ["inside"], []]
    assert talk.paths == [["first"], ["inside"], ["inside"], ["last"]]


def two_inside(**more: Any) -> Any:
    """Two nodes side by side with a graph inside that pauses."""
    inner = chain(**pauses(before="b"))

    async def run(state: Any, ctx: Any) -> Any:
        return Update({"log": (await run_inside(ctx, inner, {})).state["log"]})

    nodes = {**logs("zq"), "x": run, "y": run}
    return graph(
        nodes, [(START, "x"), (START, "y"), (START, "z"), *((n, "q") for n in "xyz")], [ADDED], **more
    )


def test_graphs_inside_nodes_side_by_side_pause_and_go_on_together() -> None:
    talk = Talk(two_inside(), {})
    assert talk.statuses == ["interrupted", "completed"]
    assert talk.paths == [[["x", "y", "z"]], [["x", "y"], "q"]]
    assert talk.last.state["log"] == [*"ababzq"]


def test_one_level_up_they_still_go_on_together() -> None:
    assert Talk(outer(two_inside()), {}).statuses == ["interrupted", "completed"]


def test_a_question_beside_a_pause_inside_is_asked_and_the_pause_is_not() -> None:
    async def run(state: Any, ctx: Any) -> Any:
        return Update({"log": (await run_inside(ctx, chain(**pauses(before="b")), {})).state["log"]})

    built = graph({"x": run, "y": asks("y?")}, [(START, "x"), (START, "y")], [ADDED])
    talk = Talk(built, "me")
    assert talk.statuses == ["interrupted", "completed"]
    assert talk.last.state["log"] == ["a", "b", "me"]
    talk = Talk(built, {}, world=ANYBODY)
    assert talk.statuses == ["interrupted", "completed"]
    assert talk.last.state["log"] == ["a", "b", "yes"]


def test_a_failure_after_a_pause_inside_fails_the_node() -> None:
    async def breaks(state: Any, ctx: Any) -> None:
        raise LookupError("gone")

    inner = graph({**logs("a"), "b": breaks}, [(START, "a"), ("a", "b")], [ADDED], **pauses(before="b"))
    talk = Talk(outer(inner), {})
    assert (talk.last.status, talk.last.node, str(talk.last.error)) == ("failed", "inside", "gone")
