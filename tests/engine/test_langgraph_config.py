"""User code that reads LangGraph's configuration finds the thread, with checkpoints and without."""

from typing import Any

import pytest
from langgraph.config import get_config

from harness.engine.conversation import Conversation
from harness.graph.model import START, Update
from tests.engine.graphs import ADDED, graph, simulate


@pytest.mark.parametrize("single", [True, False], ids=["one input", "several inputs"])
@pytest.mark.parametrize("may_pause", [True, False], ids=["may pause", "never pauses"])
def test_a_node_finds_the_id_of_its_thread(*, may_pause: bool, single: bool) -> None:
    async def run(state: Any, ctx: Any) -> Any:
        return Update({"log": [get_config()["configurable"]["thread_id"] == ctx.run.thread_id]})

    async def main(simulation: Any) -> Any:
        built = graph({"a": run}, [(START, "a")], [ADDED], may_pause=may_pause)
        return await Conversation(built, simulation, single=single).send({})

    assert simulate(main).state["log"] == [True]
