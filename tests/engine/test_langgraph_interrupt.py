"""User code that calls LangGraph's own `interrupt` pauses the run as `NodeContext.pause` does."""

from typing import Any

from langgraph.types import interrupt

from harness.engine.conversation import Conversation
from harness.graph import observe
from harness.graph.model import START, Update
from tests.engine.graphs import ADDED, graph, send, simulate
from tests.world.stubs import world_spec


def asks(*questions: Any) -> Any:
    async def run(state: Any, ctx: Any) -> Any:
        return Update({"log": [await question(ctx) for question in questions]})

    return graph({"a": run}, [(START, "a")], [ADDED])


async def by_itself(ctx: Any) -> Any:
    return interrupt("by itself?")


async def by_the_context(ctx: Any) -> Any:
    return await ctx.pause("by the context?")


def test_interrupt_pauses_and_returns_the_answer() -> None:
    async def main(simulation: Any) -> Any:
        conversation = Conversation(asks(by_itself), simulation)
        first = await conversation.send({})
        return first.status, observe.interrupts(simulation.trace.events), await conversation.resume("yes")

    status, asked, ending = simulate(main)
    assert (status, asked, ending.state["log"]) == ("interrupted", ["by itself?"], ["yes"])


def test_answers_reach_the_pause_they_belong_to_in_any_order() -> None:
    async def main(simulation: Any) -> Any:
        conversation = Conversation(asks(by_the_context, by_itself, by_the_context, by_itself), simulation)
        await conversation.send({})
        return [await conversation.resume(answer) for answer in "1234"][-1]

    assert simulate(main).state["log"] == ["1", "2", "3", "4"]


def test_people_of_the_world_answer_an_interrupt() -> None:
    people = world_spec(human=[{"reply": "R"}])
    assert send(asks(by_itself), world=people)[0].state["log"] == ["R"]


def test_an_interrupt_is_fatal_to_retries_and_fallbacks() -> None:
    async def run(state: Any, ctx: Any) -> Any:
        try:
            interrupt("?")
        except Exception as error:
            if ctx.is_fatal(error):
                raise
        return Update({"log": ["absorbed"]})

    assert send(graph({"a": run}, [(START, "a")], [ADDED]))[0].status == "interrupted"
