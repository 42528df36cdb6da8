"""The limits of components and values with all references expanded."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.agentspec.configurations import (
    TABLE,
    VERSION,
    agent,
    entry,
    ref,
    tool,
)
from tests.dialects.agentspec.loader import Loader


def bomb(levels: Any, leaf: Any = "x", each: Any = "[%s]") -> Any:
    """Return values with ten references each to the next, so that `b0` has ten to the power of `levels` leaves."""
    tens = [each % ", ".join([ref(f"b{at + 1}")] * 10) for at in range(levels)]
    return "".join(entry(f"b{at}", value) for at, value in enumerate([*tens, leaf]))


def remote(data: Any) -> Any:
    return f"[{{component_type: RemoteTool, name: t, http_method: GET, url: u, data: {data}}}]"


def test_a_value_that_is_too_large_with_references_expanded(loader: Loader) -> None:
    problem = loader.problem(agent(tools=remote("{a: {$component_ref: b0}}")) + TABLE + bomb(9))
    assert (problem.code, problem.message) == (
        "too-many-nodes",
        "'b4' has more than 100,000 values, with its references expanded",
    )
    loader.configuration(agent(tools=remote("{a: {$component_ref: b0}}")) + TABLE + bomb(4))


def test_a_component_that_is_too_large_with_references_expanded(loader: Loader) -> None:
    data = "{" + ", ".join(f"k{at}: {ref('b0')}" for at in range(10)) + "}"
    problem = loader.problem(agent(tools=remote(data)) + TABLE + bomb(4))
    assert (problem.code, loader.place(problem)) == ("too-many-nodes", "data")
    assert problem.message == "'t': more than 100,000 values in a component, with its references expanded"


def test_a_property_that_is_too_large_with_references_expanded(loader: Loader) -> None:
    outputs, each = "[{title: x, anyOf: [{$component_ref: b0}]}]", "{anyOf: [%s]}"
    problem = loader.problem(agent(outputs=outputs) + TABLE + bomb(4, "{type: string}", each))
    assert (problem.code, loader.place(problem)) == ("too-many-nodes", outputs[1:-1])
    assert problem.message.endswith(
        "more than 10,000 values in a property, with references and aliases expanded"
    )
    loader.configuration(agent(outputs=outputs) + TABLE + bomb(2, "{type: string}", each))


def test_a_property_that_is_too_large_with_aliases_expanded(loader: Loader) -> None:
    levels = "".join(f"l{at}: &l{at} [{', '.join([f'*l{at - 1}'] * 10)}]\n    " for at in range(1, 5))
    metadata = "\n    l0: &l0 {type: string}\n    " + levels
    problem = loader.problem(agent(metadata=metadata, outputs="[{title: x, anyOf: *l4}]"))
    assert problem.code == "too-many-nodes"


def test_nested_lists_of_components_are_read_once(loader: Loader) -> None:
    """Every level has ten flows that share the list of nodes of the next level."""
    node = (
        "{component_type: FlowNode, name: n, subflow: {component_type: Flow, name: f,"
        " start_node: {component_type: StartNode, name: s}, nodes: {$component_ref: b%d},"
        " control_flow_connections: []}}"
    )
    lists = [entry(f"b{at}", "[" + ", ".join([node % (at + 1)] * 10) + "]") for at in range(9)]
    text = VERSION + "component_type: Flow\nname: f\nstart_node: {component_type: StartNode, name: s}\n"
    text += "nodes: {$component_ref: b0}\ncontrol_flow_connections: []\n" + TABLE + "".join(lists)
    loader.problems(text + entry("b9", "[{component_type: EndNode, name: e}]"))


@pytest.mark.parametrize("where", ["inline", "in a table", "unused"])
def test_an_id_is_unique(loader: Loader, where: Any) -> None:
    other = tool(id_="small")
    text = agent(tools="[]" if where == "unused" else f"[{other if where == 'inline' else ref('key')}]")
    text += "" if where == "inline" else TABLE + entry("key", other)
    problem = loader.problem(text)
    assert (problem.code, loader.place(problem)) == ("duplicate-id", "small")
    assert problem.message.startswith("a second component with the id 'small'; the first is at ")


def test_components_without_an_id_are_different_components(loader: Loader) -> None:
    root = loader.agent(agent(tools=f"[{tool()}, {tool()}]"))
    assert root.tools[0] is not root.tools[1]


def test_metadata_is_not_interpreted(loader: Loader) -> None:
    metadata = f"{{$referenced_components: {{tool: 1}}, a: [{ref('nowhere')}], component_type: X}}"
    text = agent(metadata=metadata, tools=f"[{ref('tool')}]") + TABLE + entry("tool", tool())
    root = loader.agent(text)
    assert root.metadata is not None
    assert root.metadata["a"] == [{"$component_ref": "nowhere"}]
    assert loader.graph(text).warnings == ()
