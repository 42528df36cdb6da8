"""Graphs of 10,000 nodes: what each node costs does not grow with their number."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from time import process_time

import pytest

from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest
from harness.draw.diagram import Form, picture, svg, text
from harness.graph.events import ConcurrencyLimit
from harness.graph.model import END, START, Edge, Graph, Node, State, Update
from tests.engine.events import compiled
from tests.timing import shortest

MANY = 10_000
MOST_SECONDS = 5  # of computing, for a single one
NAMES = [f"n{number}" for number in range(MANY)]
CHAIN = [START, *NAMES, END]
STAR = [edge for name in NAMES for edge in (("hub", name, None), (name, END, None))]


def seconds(work: Callable[[], object]) -> float:
    def measure() -> float:
        began = process_time()
        work()
        return process_time() - began

    return shortest(measure, MOST_SECONDS)


async def stay(_state: State, _ctx: object) -> Update:
    return Update()


@pytest.mark.parametrize("form", [text, svg])
@pytest.mark.parametrize(
    "edges",
    [
        [(source, target, None) for source, target in pairwise(CHAIN)],
        [(START, "hub", None), *STAR],
    ],
    ids=["chain", "star"],
)
def test_a_large_graph_is_drawn_in_time(
    form: Callable[..., str], edges: Sequence[tuple[str, str, None]]
) -> None:
    nodes = [(name, "step") for name in NAMES]
    assert seconds(lambda: form(nodes, edges)) < MOST_SECONDS


@pytest.mark.parametrize("form", ["text", "mermaid"])
def test_a_large_graph_of_events_with_limits_is_drawn_in_time(form: Form) -> None:
    small = compiled({"start": ["a"], "nodes": {"a": {}}})
    large = replace(
        small,
        nodes=tuple(replace(small.nodes[0], name=name) for name in NAMES),
        edges=tuple(Edge(START, name) for name in NAMES),
        limits=tuple(ConcurrencyLimit(1, frozenset({name})) for name in NAMES),
    )
    assert seconds(lambda: picture(large, form)) < MOST_SECONDS


def test_the_edges_of_each_node_are_found_in_time() -> None:
    edges = tuple(Edge(source, target) for source, target in pairwise(CHAIN))
    graph = Graph("g", "test", tuple(Node(name, "step", stay) for name in NAMES), edges, ())
    assert seconds(lambda: [graph.edges_from(name) for name in CHAIN * 5]) < MOST_SECONDS


def test_a_long_app_is_drawn_whole(tmp_path: Path) -> None:
    (tmp_path / "long_app.py").write_text(
        "from langgraph.graph import StateGraph\n"
        "builder = StateGraph(dict)\n"
        "for number in range(300):\n"
        "    builder.add_node(f'n{number}', lambda state: state)\n"
        "    if number:\n"
        "        builder.add_edge(f'n{number - 1}', f'n{number}')\n"
        "builder.set_entry_point('n0')\n"
        "graph = builder.compile()\n"
    )
    drawn = picture(load_graph(LoadRequest((tmp_path / "long_app.py:graph",))), "text")
    assert "unreachable" not in drawn
    assert "n298  [langgraph]\n└─▶ n299\n" in drawn
    assert "n299  [langgraph]\n└─▶ (end)\n" in drawn
