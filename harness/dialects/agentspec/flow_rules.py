"""The rules for the nodes and control edges of flows. spec: "Flow", "Control edges". `data_rules` has those for data.

Each rule is a function that yields the problems of one flow, whose nodes and edges were all read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from harness.dialects.agentspec.component import Component
from harness.dialects.agentspec.data_rules import (
    data_edges_fit,
    data_edges_have_effect,
    end_nodes_agree,
    inputs_have_sources,
    mapping_keys_may_match,
    outputs_come_from_end_nodes,
    outputs_fit_inputs_by_name,
    reachable_nodes,
)
from harness.dialects.agentspec.flows import AgentNode, ControlFlowEdge, EndNode, Flow, Node, StartNode
from harness.errors import Problem
from harness.source.suggest import did_you_mean


def node_names_are_unique(flow: Flow) -> Iterator[Problem]:
    """Warn of nodes with the same name. They differ by their ids, but paths show names."""
    seen: dict[str, Node] = {}
    for node in flow.nodes:
        other = seen.setdefault(node.name, node)
        if other is not node:
            text = f"{flow}: two nodes are called '{node.name}'; in paths the second is '{node.name} (2)'"
            yield Problem("duplicate-name", text, node.span("name"), severity="warning")


def has_one_start_node(flow: Flow) -> Iterator[Problem]:
    """A flow has one StartNode, `start_node`, which is in `nodes`.

    spec: "flows must have a unique StartNode … defined by the start_node parameter".
    """
    if not isinstance(flow.start_node, StartNode):
        text = f"{flow}: its start_node must be a StartNode, not the {flow.start_node}"
        yield Problem("start-node", text, flow.span("start_node"))
    if flow.start_node not in flow.nodes:
        text = f"{flow}: its start_node, the {flow.start_node}, is not in its nodes"
        yield Problem("start-node", text, flow.span("nodes"))
    for index, node in enumerate(flow.nodes):
        if isinstance(node, StartNode) and (node is not flow.start_node or node in flow.nodes[:index]):
            text = f"{flow}: a flow has one StartNode, and '{node.name}' is a second one"
            yield Problem("start-node", text, flow.span("nodes", index))


def has_end_node(flow: Flow) -> Iterator[Problem]:
    """A flow has an EndNode."""
    if not flow.end_nodes:
        yield Problem("no-end-node", f"{flow}: there is no EndNode among its nodes", flow.span("nodes"))


def edges_connect_nodes_of_the_flow(flow: Flow) -> Iterator[Problem]:
    """Edges connect nodes of the flow. A missing node is reported once, at its first edge.

    spec: "Relations … express a transition from some source node to some target node".
    """
    known = {*flow.nodes, flow.start_node}
    for edge, field, node in _edge_ends(flow):
        if node not in known:
            known.add(node)
            text = f"{edge}: the {node} is not in the nodes of {flow}"
            yield Problem("unknown-node", text, edge.span(field))


def _edge_ends(flow: Flow) -> Iterator[tuple[Component, str, Node]]:
    for edge in flow.control_flow_connections:
        yield edge, "from_node", edge.from_node
        yield edge, "to_node", edge.to_node
    for data_edge in flow.data_flow_connections or ():
        yield data_edge, "source_node", data_edge.source_node
        yield data_edge, "destination_node", data_edge.destination_node


def no_edge_enters_start_or_leaves_end(flow: Flow) -> Iterator[Problem]:
    """No control edge enters a StartNode or leaves an EndNode. spec: EndNode, "Outgoing branches: None"."""
    for edge in flow.control_flow_connections:
        if isinstance(edge.to_node, StartNode):
            text = f"{edge} leads to the {edge.to_node}, but no edge may lead to a StartNode"
            yield Problem("start-node", text, edge.span("to_node"))
        if isinstance(edge.from_node, EndNode):
            text = f"{edge} leads away from the {edge.from_node}, but no edge may leave an EndNode"
            yield Problem("end-node", text, edge.span("from_node"))


def branches_have_one_edge(flow: Flow) -> Iterator[Problem]:
    """Control edges start at existing branches, and only one at each.

    spec: "multi-connections from the same outgoing branch of a node are not allowed".
    """
    taken: dict[tuple[Node, str], ControlFlowEdge] = {}
    for edge in flow.control_flow_connections:
        node, branch = edge.from_node, edge.branch
        if isinstance(node, EndNode):
            continue
        if branch not in _branches(node):
            where = edge.span("from_branch") if edge.from_branch is not None else edge.span("from_node")
            text = f"{edge}: the {node} has no branch '{branch}'"
            yield Problem("unknown-branch", text, where, did_you_mean(branch, _branches(node)))
            continue
        other = taken.setdefault((node, branch), edge)
        if other is not edge:
            text = (
                f"{edge} is a second edge from branch '{branch}' of the {node}; '{other.name}' is the first"
            )
            yield Problem("second-edge", text, edge.span())


def _branches(node: Node) -> Sequence[str]:
    """Return the inferred branches of a node; the declared ones of an AgentNode, which may declare any."""
    return node.branches if isinstance(node, AgentNode) else list(dict.fromkeys(node.inferred_branches()))


def nodes_and_branches_are_connected(flow: Flow) -> Iterator[Problem]:
    """A control edge enters every EndNode, and leaves every branch of each reachable node.

    Other unreachable nodes are warnings. An open branch, which fails a run that takes it, is a warning too, except
    for that of the StartNode.
    """
    connected = {(edge.from_node, edge.branch) for edge in flow.control_flow_connections}
    entered = {edge.to_node for edge in flow.control_flow_connections}
    misnamed = {
        edge.from_node
        for edge in flow.control_flow_connections
        if edge.branch not in _branches(edge.from_node)
    }
    reached = reachable_nodes(flow)
    for index, node in enumerate(flow.nodes):
        span = flow.span("nodes", index)
        if node not in reached:
            lost_end = isinstance(node, EndNode) and node not in entered
            text = f"{flow}: no control edge leads to the {node}"
            yield Problem("unreached-node", text, span, severity="error" if lost_end else "warning")
            continue
        for branch in () if node in misnamed else _branches(node):
            if (node, branch) not in connected:
                text = f"{flow}: no control edge leaves the {node} by its branch '{branch}'"
                stuck = node is flow.start_node
                yield Problem("open-branch", text, span, severity="error" if stuck else "warning")


FLOW_RULES: Final[Sequence[Callable[[Flow], Iterator[Problem]]]] = (
    has_one_start_node,
    has_end_node,
    node_names_are_unique,
    edges_connect_nodes_of_the_flow,
    no_edge_enters_start_or_leaves_end,
    branches_have_one_edge,
    nodes_and_branches_are_connected,
    data_edges_fit,
    data_edges_have_effect,
    outputs_fit_inputs_by_name,
    inputs_have_sources,
    mapping_keys_may_match,
    end_nodes_agree,
    outputs_come_from_end_nodes,
)
