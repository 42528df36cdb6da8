"""The data edges of a flow, declared or by name, and the cost of large flows."""

import gc
import json
from itertools import pairwise
from typing import Any

from harness.graph.model import DataEdge
from tests.dialects.agentspec.loader import Loader


def ref(name: Any) -> Any:
    return {"$component_ref": name}


def flow(count: Any, **fields: Any) -> Any:
    """Return a flow of `count` nodes with the inputs topic and mood and the output mood."""
    names = ["start", *(f"n{number}" for number in range(count)), "end"]
    topic, mood = {"title": "topic", "type": "string"}, {"title": "mood", "type": "string", "default": "calm"}
    tool = {
        "component_type": "ServerTool",
        "id": "tool",
        "name": "tool",
        "inputs": [topic, mood],
        "outputs": [mood],
    }
    nodes = {name: {"component_type": "ToolNode", "name": name, "tool": ref("tool")} for name in names}
    nodes["start"] = {"component_type": "StartNode", "name": "start", "inputs": [topic]}
    nodes["end"] = {"component_type": "EndNode", "name": "end", "outputs": [mood]}
    edges = [
        {
            "component_type": "ControlFlowEdge",
            "name": f"to {target}",
            "from_node": ref(source),
            "to_node": ref(target),
        }
        for source, target in pairwise(names)
    ]
    document = {
        "agentspec_version": "25.4.1",
        "component_type": "Flow",
        "name": "moods",
        "start_node": ref("start"),
        "nodes": [ref(name) for name in names],
        "control_flow_connections": edges,
        "$referenced_components": {**nodes, "tool": tool},
        **fields,
    }
    return json.dumps(document)


def test_by_name_every_output_feeds_every_input_of_its_name(loader: Loader) -> None:
    assert loader.graph(flow(2)).data_edges() == (
        DataEdge("start", "topic", "n0", "topic"),
        DataEdge("start", "topic", "n1", "topic"),
        DataEdge("n0", "mood", "n0", "mood"),
        DataEdge("n0", "mood", "n1", "mood"),
        DataEdge("n0", "mood", "end", "mood"),
        DataEdge("n1", "mood", "n0", "mood"),
        DataEdge("n1", "mood", "n1", "mood"),
        DataEdge("n1", "mood", "end", "mood"),
    )


def test_declared_data_edges_are_drawn(loader: Loader) -> None:
    edge = {
        "component_type": "DataFlowEdge",
        "name": "d",
        "source_node": ref("start"),
        "source_output": "topic",
        "destination_node": ref("n0"),
        "destination_input": "mood",
    }
    graph = loader.graph(flow(2, data_flow_connections=[edge]))
    assert graph.data_edges() == (DataEdge("start", "topic", "n0", "mood"),)


def alive() -> Any:
    """Return the number of data edges in memory."""
    return sum(type(item) is DataEdge for item in gc.get_objects())


def test_loading_a_large_flow_does_not_create_its_data_edges(loader: Loader) -> None:
    before = alive()
    graph = loader.graph(flow(40))
    assert alive() == before
    assert len(graph.data_edges()) == 40 + 40 * 41
