"""Nested graphs that pause: the node pauses with them, and nothing is done twice."""

import asyncio
from typing import Any

import pytest

from harness.engine.conversation import Conversation, run_inside, run_nested
from harness.graph import observe
from harness.graph.effects import ToolCall
from harness.graph.model import END, START, Lifecycle, Update
from harness.time.gather import gather
from tests.engine.graphs import ADDED, COUNT, asks, graph, send, simulate, writes
from tests.world.stubs import world_spec

TOOL = world_spec(tools={"t": [{"latency": 1, "return": 7}]})


def calls_tool(state: Any, ctx: Any) -> Any:
    return ctx.perform(ToolCall(name="t", args={}))


async def works(state: Any, ctx: Any) -> Any:
    await calls_tool(state, ctx)
    return Update({"log": ["worked"]})


def survey(*questions: Any) -> Any:
    """A graph that calls a tool, then asks one question after the other."""
    names = [f"ask{number}" for number, _ in enumerate(questions)]
    return graph(
        {"work": works, **{name: asks(text) for name, text in zip(names, questions, strict=True)}},
        zip([START, "work", *names], ["work", *names, END], strict=True),
        [ADDED],
    )


def runs(inner: Any, **options: Any) -> Any:
    """A node that returns the log of a graph that runs inside it."""

    async def run(state: Any, ctx: Any) -> Any:
        ending = await run_inside(ctx, inner, {}, **options)
        return Update({"log": ending.state["log"]})

    return run


def around(run: Any, **more: Any) -> Any:
    """A graph whose first node is `run`."""
    return graph(
        {"outer": run, "last": writes(n=1)}, [(START, "outer"), ("outer", "last")], [COUNT, ADDED], **more
    )


def talk(built: Any, *answers: Any, world: Any = TOOL) -> Any:
    """Return the endings of the first input and of a resume with each of the answers, and the trace."""

    async def main(simulation: Any) -> Any:
        conversation = Conversation(built, simulation)
        endings = [await conversation.send({})]
        for answer in answers:
            endings.append(await conversation.resume(answer))
        return endings, simulation.trace

    return simulate(main, world)


def statuses(endings: Any) -> Any:
    return [ending.status for ending in endings]


def tool_calls(trace: Any) -> Any:
    return [call["node"] for call in observe.calls(trace.events) if call["kind"] == "tool"]


def answered_by(**replies: Any) -> Any:
    stubs = ({"node": node, "reply": reply} for node, reply in replies.items())
    return world_spec(tools=TOOL.tools, human=[*stubs])


def test_the_node_pauses_with_the_nested_run_and_its_answer_reaches_it() -> None:
    endings, trace = talk(around(runs(survey("who?"))), "me")
    assert statuses(endings) == ["interrupted", "completed"]
    assert endings[-1].state == {"n": 1, "log": ["worked", "me"]}
    assert observe.interrupts(trace.events) == ["who?"]
    assert observe.path(trace.events) == ["outer", "last"]
    assert tool_calls(trace) == ["outer/work"]
    inside = [event["event"] for event in trace.events if event.get("graph") == "outer/"]
    assert inside[-5:] == ["resume", "node_resume", "node_end", "route", "end"]


def test_pauses_in_sequence_each_get_their_answer() -> None:
    endings, trace = talk(around(runs(survey("a?", "b?", "c?"))), "A", "B", "C")
    assert statuses(endings) == ["interrupted"] * 3 + ["completed"]
    assert endings[-1].state["log"] == ["worked", "A", "B", "C"]
    assert observe.interrupts(trace.events) == ["a?", "b?", "c?"]
    assert tool_calls(trace) == ["outer/work"]


def test_pauses_of_one_nested_superstep_are_asked_one_after_the_other() -> None:
    both = graph({"a": asks("a?"), "b": asks("b?")}, [(START, "a"), (START, "b")], [ADDED])
    endings, trace = talk(around(runs(both)), "A", "B")
    assert endings[-1].state["log"] == ["A", "B"]
    assert observe.interrupts(trace.events) == ["a?", "b?"]


def maps(inner: Any, *delays: Any, side_by_side: Any = gather) -> Any:
    """A node that runs a graph once for each delay, concurrently, each after its delay."""

    async def item(ctx: Any, delay: Any) -> Any:
        await ctx.sleep(delay)
        return await run_inside(ctx, inner, {}, key=str(delay))

    async def run(state: Any, ctx: Any) -> Any:
        endings = await side_by_side([item(ctx, delay) for delay in delays])
        return Update({"log": [ending.state["log"] for ending in endings]})

    return run


def test_parallel_nested_runs_pause_when_all_have_stopped() -> None:
    async def run(state: Any, ctx: Any) -> Any:
        surveys = [survey("a?"), survey(), survey("c?", "d?")]
        endings = await gather(run_inside(ctx, inner, {}, key=str(at)) for at, inner in enumerate(surveys))
        return Update({"log": [ending.state["log"] for ending in endings]})

    endings, trace = talk(around(run), "A", "C", "D")
    assert statuses(endings) == ["interrupted"] * 3 + ["completed"]
    assert endings[-1].state["log"] == [["worked", "A"], ["worked"], ["worked", "C", "D"]]
    assert observe.interrupts(trace.events) == ["a?", "c?", "d?"]
    assert len(tool_calls(trace)) == 3


@pytest.mark.parametrize("side_by_side", [gather, lambda runs: asyncio.gather(*runs)])
def test_a_map_asks_in_the_order_its_runs_were_started(side_by_side: Any) -> None:
    built = around(maps(survey("who?"), 0.3, 0.1, 0.2, side_by_side=side_by_side))
    endings, trace = talk(built, "first", "second", "third")
    assert endings[-1].state["log"] == [["worked", "third"], ["worked", "first"], ["worked", "second"]]
    assert len(tool_calls(trace)) == 3


def test_runs_that_wait_for_one_another_do_not_mix_up_their_answers() -> None:
    async def chain(ctx: Any, name: Any, *questions: Any) -> Any:
        found = []
        for question in questions:
            ending = await run_inside(ctx, survey(f"{name}{question}"), {}, key=name)
            found.append(ending.state["log"][-1])
        return "".join(found)

    async def run(state: Any, ctx: Any) -> Any:
        own = await ctx.pause("own?")
        pairs = await gather([chain(ctx, "a", 1, 2), chain(ctx, "b", 1, 2, 3)])
        return Update({"log": [own, *pairs, await ctx.pause("last?")]})

    async def main(simulation: Any) -> Any:
        conversation = Conversation(around(run), simulation)
        ending = await conversation.send({})
        while ending.status == "interrupted":
            asked = observe.interrupts(simulation.trace.events)
            ending = await conversation.resume(f"<{asked[-1]}>")
        return ending, asked, simulation.trace

    ending, asked, trace = simulate(main, TOOL)
    assert ending.state["log"] == ["<own?>", "<a1><a2>", "<b1><b2><b3>", "<last?>"]
    assert sorted(asked) == ["a1", "a2", "b1", "b2", "b3", "last?", "own?"]
    assert len(tool_calls(trace)) == 5


def tower(levels: Any, top: Any) -> Any:
    """Nest `top` in a number of graphs."""
    return top if not levels else around(runs(tower(levels - 1, top)))


@pytest.mark.parametrize("levels", [40, 100])
def test_graphs_may_be_nested_many_levels_deep(levels: Any) -> None:
    endings, trace = talk(tower(levels, survey("a?", "b?")), "A", "B")
    assert statuses(endings) == ["interrupted", "interrupted", "completed"]
    assert endings[-1].state["log"] == ["worked", "A", "B"]
    assert tool_calls(trace) == ["outer/" * levels + "work"]


def test_graphs_nested_too_deep_are_refused() -> None:
    ending, _ = send(tower(101, survey()), world=TOOL)
    assert ending.error.code == "nesting"
    assert (
        str(ending.error)
        == f"graphs run inside each other more than 100 levels deep: {'outer/' * 101}{survey().name}"
    )


def test_nested_levels_do_not_count_as_agent_calls() -> None:
    async def calls(state: Any, ctx: Any) -> Any:
        return Update({"log": (await run_nested(ctx, survey(), {})).state["log"]})

    ending, _ = send(tower(20, graph({"call": calls}, [(START, "call")], [ADDED])), world=TOOL)
    assert ending.state["log"] == ["worked"]


def test_a_pause_propagates_through_all_levels() -> None:
    endings, trace = talk(around(runs(around(runs(survey("a?", "b?"))))), "A", "B")
    assert endings[-1].state["log"] == ["worked", "A", "B"]
    assert observe.interrupts(trace.events) == ["a?", "b?"]
    assert tool_calls(trace) == ["outer/outer/work"]


def test_the_same_graph_may_run_several_times_in_one_visit() -> None:
    async def twice(state: Any, ctx: Any) -> Any:
        inner = survey("who?")
        return Update({"log": [(await run_inside(ctx, inner, {})).state["log"][-1] for _ in range(2)]})

    endings, trace = talk(around(twice), "A", "B")
    assert endings[-1].state["log"] == ["A", "B"]
    assert len(tool_calls(trace)) == 2


def test_the_people_of_the_world_are_asked_for_the_nested_node() -> None:
    ending, trace = send(around(runs(survey("a?", "b?"))), world=answered_by(**{"outer/ask*": "yes"}))
    assert ending.status == "interrupted"  # the stub answers once
    ending, trace = send(around(runs(survey("a?", "b?"))), world=answered_by(ask0="A", ask1="B"))
    assert ending.state["log"] == ["worked", "A", "B"]
    asked = [(call["name"], call["node"]) for call in observe.calls(trace.events) if call["kind"] == "human"]
    assert asked == [("ask0", "outer/ask0"), ("ask1", "outer/ask1")]
    assert observe.interrupts(trace.events) == []


def test_people_may_also_answer_for_the_outer_node() -> None:
    ending, trace = send(around(runs(survey("a?"))), world=answered_by(outer="A"))
    assert ending.state["log"] == ["worked", "A"]
    assert tool_calls(trace) == ["outer/work"]


def test_effects_may_be_attributed_to_the_outer_node() -> None:
    inner = around(runs(survey("who?")))
    ending, trace = send(
        around(runs(inner, attribute_to_caller=True)), world=answered_by(**{"outer/ask0": "me"})
    )
    assert ending.state["log"] == ["worked", "me"]
    assert [call["node"] for call in observe.calls(trace.events)] == ["outer/work", "outer/ask0"]

    ending, trace = send(
        around(runs(survey("who?"), attribute_to_caller=True)), world=answered_by(outer="me")
    )
    calls = observe.calls(trace.events)
    assert [(call["kind"], call["name"], call["node"]) for call in calls] == [
        ("tool", "t", "outer"),
        ("human", "outer", "outer"),
    ]
    assert {event["graph"] for event in trace.events if event["event"] == "node_end"} == {"", "outer/"}


def test_the_state_of_a_nested_run_can_become_a_partial_update() -> None:
    leaves = runs(survey("who?"), partial_update=lambda state: {"log": ["so far", *state["log"]]})
    endings, _ = talk(around(leaves), "me")
    assert [ending.state["log"] for ending in endings] == [["so far", "worked"], ["worked", "me"]]


def test_partial_updates_propagate_through_all_levels() -> None:
    def hands_on(inner: Any) -> Any:
        return around(runs(inner, partial_update=lambda state: {"log": state["log"]}))

    endings, _ = talk(hands_on(hands_on(survey("a?", "b?"))), "A")
    assert [ending.state["log"] for ending in endings] == [["worked"], ["worked", "A"]]


def test_a_failure_after_a_resume_fails_the_node_and_the_next_input_starts_over() -> None:
    async def breaks(state: Any, ctx: Any) -> None:
        raise LookupError(await ctx.pause("who?"))

    inner = graph({"work": works, "break": breaks}, [(START, "work"), ("work", "break")], [ADDED])

    async def main(simulation: Any) -> Any:
        conversation = Conversation(around(runs(inner)), simulation)
        endings = [await conversation.send({}), await conversation.resume("me")]
        endings += [await conversation.send({}), await conversation.resume("you")]
        return endings, simulation.trace

    endings, trace = simulate(main, TOOL)
    assert statuses(endings) == ["interrupted", "failed"] * 2
    assert [(ending.node, str(ending.error)) for ending in endings[1::2]] == [
        ("outer", "me"),
        ("outer", "you"),
    ]
    assert len(tool_calls(trace)) == 2


def test_a_new_input_discards_a_pause() -> None:
    async def main(simulation: Any) -> Any:
        conversation = Conversation(around(runs(survey("who?"))), simulation)
        await conversation.send({})
        again = await conversation.send({})
        return again, await conversation.resume("me"), simulation.trace

    again, ending, trace = simulate(main, TOOL)
    assert (again.status, ending.state["log"]) == ("interrupted", ["worked", "me"])
    assert len(tool_calls(trace)) == 2


def test_when_one_of_several_fails_the_others_are_stopped() -> None:
    async def breaks(state: Any, ctx: Any) -> None:
        await ctx.sleep(2)
        raise LookupError("gone")

    broken = graph({"break": breaks}, [(START, "break")], [ADDED])

    async def slow(state: Any, ctx: Any) -> Any:
        await ctx.sleep(5)
        return Update({"log": [await calls_tool(state, ctx)]})

    late = graph({"slow": slow}, [(START, "slow")], [ADDED])

    async def run(state: Any, ctx: Any) -> Any:
        await gather(
            run_inside(ctx, inner, {}, key=str(at)) for at, inner in enumerate([survey("who?"), broken, late])
        )
        return Update()

    ending, trace = send(around(run), world=TOOL)
    assert (ending.status, ending.node, str(ending.error)) == ("failed", "outer", "gone")
    assert tool_calls(trace) == ["outer/work"]
    assert trace.events[-1]["at"] == 2.0


def test_a_failed_attempt_asks_nothing() -> None:
    async def breaks(state: Any, ctx: Any) -> None:
        await ctx.sleep(2)
        raise LookupError("gone")

    broken = graph({"break": breaks}, [(START, "break")], [ADDED])

    async def tries_again(state: Any, ctx: Any) -> Any:
        try:
            await gather([run_inside(ctx, broken, {}), ctx.pause("first attempt?")])
        except LookupError:
            ctx.attempt_failed()
        return Update({"log": [await ctx.pause("second attempt?")]})

    ending, trace = send(around(tries_again))
    assert ending.status == "interrupted"
    assert [event["values"] for event in trace.events if event["event"] == "node_pause"] == [
        ["second attempt?"]
    ]


def test_answers_pass_the_lifecycle_of_both_graphs() -> None:
    def marks(mark: Any) -> Any:
        async def answer(value: Any, run: Any) -> Any:
            return f"{value}{mark}"

        return Lifecycle(answer=answer)

    inner = graph({"ask": asks("who?")}, [(START, "ask")], [ADDED], lifecycle=marks("-inner"))
    endings, _ = talk(around(runs(inner), lifecycle=marks("-outer")), "me")
    assert endings[-1].state["log"] == ["me-outer-inner"]


def test_a_node_may_be_resumed_in_parallel_with_others() -> None:
    built = graph(
        {"a": runs(survey("a?")), "b": asks("b?"), "c": runs(survey("c?", "d?"))},
        [(START, name) for name in "abc"],
        [ADDED],
    )

    async def main(simulation: Any) -> Any:
        conversation = Conversation(built, simulation)
        await conversation.send({})
        await conversation.resume("x", "y", "z")
        return await conversation.resume("w"), simulation.trace

    ending, trace = simulate(main, TOOL)
    assert observe.interrupts(trace.events) == ["b?", "a?", "c?", "d?"]
    assert ending.state["log"] == ["worked", "y", "x", "worked", "z", "w"]


@pytest.mark.parametrize("delays", [(0.1, 0.2, 0.3), (0.3, 0.2, 0.1), (0.1, 0.1, 0.1)])
def test_equal_runs_have_equal_digests(delays: Any) -> None:
    built = around(maps(survey("a?", "b?"), *delays))
    digests = {talk(built, *"123456")[1].digest() for _ in range(3)}
    assert len(digests) == 1


def test_a_pause_ends_run_nested_as_interrupted() -> None:
    async def run(state: Any, ctx: Any) -> Any:
        return Update({"log": [(await run_nested(ctx, survey("who?"), {})).status]})

    assert talk(around(run))[0][0].state["log"] == ["interrupted"]
