"""The graph of a flow. spec: "Flow", "Conversation", "Connecting multiple data edges".

The state has `messages`, the conversation; `inputs`, those of the flow; `outputs`, those of the nodes by node name,
in the order of their latest visits; `branch`, the outgoing branch of the last node with several branches; and
`left_by`, the branch name of the EndNode that was reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.dialects.agentspec.data_flow import (
    Body,
    DataFlow,
    GraphOf,
    MissingValue,
    Outputs,
    Visit,
    cast_property,
    cast_values,
    first_update,
    unique_name,
)
from harness.dialects.agentspec.flows import EndNode, Flow, Node
from harness.dialects.agentspec.node_bodies import BODIES
from harness.dialects.agentspec.plugins import Plugins
from harness.dialects.agentspec.properties import scalar_types
from harness.engine.context import NodeContext, RunContext
from harness.errors import HarnessError
from harness.graph.messages import MessageLog, append_messages
from harness.graph.model import (
    END,
    START,
    Channel,
    Dispatch,
    Edge,
    Graph,
    Lifecycle,
    Router,
    State,
    Update,
)
from harness.graph.model import Node as Step

RECURSION_LIMIT = 5_000
"""The maximum number of node visits in one run of a flow. Agent Spec has no limit; this one ends endless loops."""


class OpenBranch(HarnessError):
    """A branch of a node without a control edge, which a run took."""

    code = "open-branch"


def flow_graph(flow: Flow, graph_of: GraphOf, plugins: Plugins) -> Graph:
    """Return the graph of a flow without errors. `graph_of` compiles the flows and agents in it."""
    names = node_names(flow)
    data = DataFlow(flow)
    functions = _FlowNodes(flow, names, data, graph_of, plugins)
    edges = _edges(flow, names)
    return Graph(
        name=flow.name,
        dialect="agentspec",
        nodes=tuple(
            Step(name, node.component_type, functions.step(node), node.span()) for node, name in names.items()
        ),
        edges=tuple(edges),
        channels=(
            Channel("messages", append_messages, MessageLog),
            Channel("inputs", initial=dict),
            Channel("outputs", _outputs_reducer(names[flow.start_node]), dict),
            Channel("branch"),
            Channel("left_by"),
        ),
        routers={name: _router(node, name, edges) for node, name in names.items() if len(node.branches) > 1},
        lifecycle=Lifecycle(accept=functions.accept, finish=functions.finish),
        recursion_limit=RECURSION_LIMIT,
        data_edges=lambda: tuple(data.edges(names)),
        output_types=_output_types(flow),
    )


def _output_types(flow: Flow) -> dict[str, str]:
    """Return the types of the outputs that every EndNode casts to the same one."""
    first, *others = [scalar_types(end.outputs) for end in flow.end_nodes] or [{}]
    return {
        title: type_
        for title, type_ in first.items()
        if title in flow.outputs and all(each.get(title) == type_ for each in others)
    }


def node_names(flow: Flow) -> dict[Node, str]:
    """Return the names of the nodes in the graph. A second node with the same name gets a number."""
    names: dict[Node, str] = {}
    taken: set[str] = set()
    for node in dict.fromkeys(flow.nodes):
        names[node] = unique_name(node.name, taken)
        taken.add(names[node])
    return names


def _edges(flow: Flow, names: Mapping[Node, str]) -> Sequence[Edge]:
    """Return the edge from the start, the control edges with branches as conditions, and the edges to the end."""
    start = flow.start_node
    found = [Edge(START, names[start], span=start.span())]
    for edge in flow.control_flow_connections:
        branch = edge.branch if len(edge.from_node.branches) > 1 else None
        found.append(Edge(names[edge.from_node], names[edge.to_node], branch, span=edge.span()))
    found += [Edge(names[end], END, span=end.span()) for end in flow.end_nodes]
    return found


def _router(node: Node, name: str, edges: Sequence[Edge]) -> Router:
    """Return the router that follows the edge of the branch that the node took."""
    by_branch = {edge.condition: edge for edge in edges if edge.source == name}

    async def route(state: State, _run: RunContext) -> Sequence[Edge | Dispatch]:
        branch = state["branch"]
        if branch not in by_branch:
            text = f"the {node} took its branch '{branch}', but no control edge leaves it by that branch"
            raise OpenBranch(text)
        return [by_branch[branch]]

    return route


def _outputs_reducer(start: str) -> Any:
    """Return the reducer of `outputs`. The StartNode begins a new run and removes older outputs."""

    def latest(old: Outputs, new: Outputs) -> Outputs:
        if start in new:
            return new
        return {**{name: values for name, values in old.items() if name not in new}, **new}

    return latest


@dataclass(frozen=True)
class _FlowNodes:
    """The node functions and the lifecycle of a flow's graph."""

    flow: Flow
    names: Mapping[Node, str]
    data: DataFlow
    graph_of: GraphOf
    plugins: Plugins

    async def accept(self, value: Any, run: RunContext) -> Mapping[str, Any]:
        """Return the first state update. Text is the user's first message, a mapping has the flow's inputs."""
        return {"inputs": {}, **first_update(self.flow, value, run)}

    def step(self, node: Node) -> Any:
        """Return the function of a node, which casts the inputs, runs the body, and casts the outputs."""
        body = self._body(node)
        name = self.names[node]

        async def run(state: State, ctx: NodeContext) -> Update:
            if node is self.flow.start_node:
                incoming = {}
                inputs = self._flow_inputs(state["inputs"])
            else:
                incoming = self.data.incoming(node, self.names, state["outputs"])
                inputs = {
                    title: found.value
                    if found.source is None
                    else cast_property(node.inputs[title], found.value, f"{node}: input")
                    for title, found in incoming.items()
                }
            result = await body(Visit(node, inputs, incoming, state, ctx, self.graph_of))
            outputs = cast_values(node.outputs, result.outputs, f"{node}: output")
            values: dict[str, Any] = {"outputs": {name: outputs}}
            if result.messages:
                values["messages"] = result.messages
            if isinstance(node, EndNode):
                values["left_by"] = result.branch
            elif len(node.branches) > 1:
                values["branch"] = result.branch
            return Update(values)

        return run

    def _flow_inputs(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the flow's inputs. Their types and defaults are those of the StartNode."""
        start = self.flow.start_node.inputs
        for title, item in self.flow.inputs.items():
            if title not in given and item.has_default and not start[title].has_default:
                text = f"{self.flow}: input '{title}' has no value; its default does not count"
                raise MissingValue(f"{text}, as the {self.flow.start_node} does not have it")
        return cast_values(start, given, f"{self.flow}: input")

    def _body(self, node: Node) -> Body:
        known = BODIES.get(type(node))
        if known is not None:
            return known
        plugin = self.plugins.plugin_of(node)
        assert plugin is not None  # only plugins read nodes of other types
        return lambda visit: plugin.run(visit.node, visit.inputs, visit.ctx)

    async def finish(self, state: State, _run: RunContext) -> Any:
        """Return the outputs of the flow, which have the types that the EndNode gives them.

        spec: "The default value is used in case the EndNode executed at runtime does not expose an output".
        """
        name, given = next(reversed(state["outputs"].items()))
        if name not in (self.names[end] for end in self.flow.end_nodes):
            raise OpenBranch(f"{self.flow} stopped at its node '{name}', which is not an EndNode")
        return {
            title: given[title] if title in given else item.default  # noqa: SIM401 (it may lack a default)
            for title, item in self.flow.outputs.items()
        }
