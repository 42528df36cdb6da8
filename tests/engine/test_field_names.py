"""Fields of the state may have any name, even those that LangGraph reserves."""

from typing import Any

import pytest

from harness.engine.conversation import Conversation
from harness.graph import observe
from harness.graph.model import START, Channel, Dispatch, Edge, Update
from tests.engine.graphs import graph, send, simulate, writes

KEPT = [
    *("__error__", "__input__", "__interrupt__", "__resume__", "__start__", "__pregel_push"),
    *("configurable", "checkpoint_id", ":", "|"),
]


@pytest.mark.parametrize("name", [*KEPT, "plain", "__root__", "a b"])
def test_nodes_and_routers_see_a_field_by_its_name(name: Any) -> None:
    async def doubles(state: Any, ctx: Any) -> Any:
        return Update({name: state[name] * 2})

    async def by_the_field(state: Any, run: Any) -> Any:
        return [Edge("double", "end")] if state[name] == 6 else []

    nodes = {"double": doubles, "end": writes(seen=lambda state: state[name])}
    edges = [(START, "double"), ("double", "end")]
    built = graph(nodes, edges, [Channel(name), Channel("seen")], routers={"double": by_the_field})
    ending, trace = send(built, {name: 3})
    assert dict(ending.state) == {name: 6, "seen": 6}
    assert observe.path(trace.events) == ["double", "end"]


@pytest.mark.parametrize("name", KEPT)
def test_an_edit_and_a_second_input_set_a_field_by_its_name(name: Any) -> None:
    built = graph(
        {"a": writes(), "b": writes()}, [(START, "a"), ("a", "b")], [Channel(name)], pause_before={"b"}
    )

    async def main(simulation: Any) -> Any:
        conversation = Conversation(built, simulation)
        endings = [await conversation.send({name: 1}), await conversation.resume({name: 2})]
        return [*endings, await conversation.send({name: 3})]

    assert [dict(ending.state) for ending in simulate(main)] == [{name: 1}, {name: 2}, {name: 3}]


def test_a_mapped_call_sees_its_item_by_its_name() -> None:
    async def maps(state: Any, run: Any) -> Any:
        return [Dispatch(Edge("a", "each"), {"__error__": item}) for item in (1, 2)]

    added = Channel("log", reducer=lambda old, new: old + new, initial=list)
    each = writes(log=lambda state: [state["__error__"]])
    built = graph(
        {"a": writes(), "each": each},
        [(START, "a"), ("a", "each")],
        [added, Channel("__error__")],
        routers={"a": maps},
    )
    assert send(built)[0].state["log"] == [1, 2]
