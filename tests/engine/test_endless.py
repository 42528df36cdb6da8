"""Graphs that exceed their recursion limit: the error names the limit and the cycle."""

from itertools import pairwise
from typing import Any

import pytest

from harness.engine.conversation import Conversation, run_inside
from harness.errors import RunError
from harness.graph.model import START, Lifecycle, Update
from tests.engine.graphs import ADDED, COUNT, asks, graph, send, simulate, writes


def chain(*names: Any) -> Any:
    return list(pairwise([START, *names]))


def endless(edges: Any, limit: Any = 25, **more: Any) -> Any:
    names = dict.fromkeys(target for _, target in edges)
    return graph({name: writes(log=[name]) for name in names}, edges, [ADDED], recursion_limit=limit, **more)


NUMBERS = [f"n{number}" for number in range(30)]


@pytest.mark.parametrize(
    ("edges", "way"),
    [
        (chain("a", "a"), "went round a"),
        (chain("s", "a", "b", "c", "a"), "went round a → b → c"),
        ([*chain("s", "a", "c", "s"), ("s", "b"), ("b", "c")], "went round s → a + b → c"),
        (chain(*NUMBERS), f"went {' → '.join(NUMBERS[15:25])}"),
        (chain(*NUMBERS[:12], "n0"), f"went round {' → '.join(NUMBERS[:10])} … (2 more)"),
    ],
    ids=["one node", "a cycle", "nodes side by side", "no cycle", "a long cycle"],
)
def test_too_many_steps_are_reported_with_the_cycle(edges: Any, way: Any) -> None:
    ending, _ = send(endless(edges))
    assert (ending.status, ending.node) == ("failed", None)
    assert str(ending.error) == f"graph 'g' did not come to an end within 25 steps; it last {way}"
    assert isinstance(ending.error, RunError)
    assert ending.error.code == "too-many-steps"


def test_the_error_has_the_name_and_the_base_class_of_langgraph() -> None:
    ending, _ = send(endless(chain("a", "a")))
    assert type(ending.error).__name__ == "GraphRecursionError"
    assert isinstance(ending.error, RecursionError)


def test_the_error_names_the_limit_that_applied() -> None:
    async def tightens(value: Any, run: Any) -> Any:
        run.recursion_limit = 4
        return {}

    ending, _ = send(endless(chain("a", "a"), lifecycle=Lifecycle(accept=tightens)))
    assert "within 4 steps" in str(ending.error)


def test_only_steps_since_the_last_input_or_answer_are_reported() -> None:
    after = {name: writes(n=1) for name in NUMBERS}
    built = graph(
        {"before": writes(), "ask": asks("?"), **after},
        chain("before", "ask", *NUMBERS),
        [COUNT, ADDED],
        recursion_limit=5,
    )

    async def main(simulation: Any) -> Any:
        conversation = Conversation(built, simulation)
        await conversation.send({})
        return await conversation.resume("go on")

    assert "within 5 steps; it last went ask → n0 → n1" in str(simulate(main).error)


def test_a_graph_inside_another_fails_the_node_it_runs_in() -> None:
    inner = endless(chain("a", "b", "a"), limit=5)

    async def runs(state: Any, ctx: Any) -> Any:
        await run_inside(ctx, inner, {})
        return Update()

    ending, _ = send(graph({"outer": runs}, [(START, "outer")], [COUNT]))
    assert (ending.node, ending.error.code) == ("outer", "too-many-steps")
    assert str(ending.error).endswith("within 5 steps; it last went round a → b")
