"""The rules of flows. spec: "Flow", "Relationships / Edges".

Each rule is a function that yields the problems of one flow, whose nodes and edges are sound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from harness.dialects.agentspec import placeholders
from harness.dialects.agentspec.component import Component
from harness.dialects.agentspec.data_flow import DataFlow
from harness.dialects.agentspec.flows import AgentNode, ControlFlowEdge, EndNode, Flow, Node, StartNode
from harness.dialects.agentspec.properties import Property
from harness.dialects.agentspec.types import castable, same_type
from harness.dialects.agentspec.wording import listed, none_at_all
from harness.dialects.kit.reachable import reachable
from harness.errors import Problem, Span
from harness.source.suggest import did_you_mean, nearest


def nodes_are_named_apart(flow: Flow) -> Iterator[Problem]:
    """Two nodes of one name are a warning: they differ by their ids, but paths show names."""
    seen: dict[str, Node] = {}
    for node in flow.nodes:
        other = seen.setdefault(node.name, node)
        if other is not node:
            text = f"{flow}: two nodes are called '{node.name}'; in paths one stands with a number behind it"
            yield Problem("duplicate-name", text, node.span("name"), severity="warning")


def starts_once(flow: Flow) -> Iterator[Problem]:
    """spec: "flows must have a unique StartNode … defined by the start_node parameter", which is in `nodes`."""
    if not isinstance(flow.start_node, StartNode):
        text = f"{flow}: its start_node must be a StartNode, not the {flow.start_node}"
        yield Problem("start-node", text, flow.span("start_node"))
    if flow.start_node not in flow.nodes:
        text = f"{flow}: its start_node, the {flow.start_node}, is not in its nodes"
        yield Problem("start-node", text, flow.span("nodes"))
    for at, node in enumerate(flow.nodes):
        if isinstance(node, StartNode) and (node is not flow.start_node or node in flow.nodes[:at]):
            text = f"{flow}: a flow has one StartNode, and '{node.name}' is another"
            yield Problem("start-node", text, flow.span("nodes", at))


def has_an_end(flow: Flow) -> Iterator[Problem]:
    """A flow needs an EndNode to have outputs."""
    if not flow.ends:
        yield Problem("no-end-node", f"{flow}: there is no EndNode among its nodes", flow.span("nodes"))


def edges_join_its_nodes(flow: Flow) -> Iterator[Problem]:
    """spec: "Relations … express a transition from some source node to some target node" of the flow.

    A missing node is reported once, at its first edge.
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


def nothing_enters_starts_or_leaves_ends(flow: Flow) -> Iterator[Problem]:
    """Nothing leads to a StartNode, and nothing away from an EndNode. spec: EndNode, "Outgoing branches: None"."""
    for edge in flow.control_flow_connections:
        if isinstance(edge.to_node, StartNode):
            text = f"{edge} leads to the {edge.to_node}, where nothing may lead"
            yield Problem("start-node", text, edge.span("to_node"))
        if isinstance(edge.from_node, EndNode):
            text = f"{edge} leads away from the {edge.from_node}, where the flow ends"
            yield Problem("end-node", text, edge.span("from_node"))


def branches_have_one_edge(flow: Flow) -> Iterator[Problem]:
    """spec: "multi-connections from the same outgoing branch of a node are not allowed"."""
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
    """The branches of a node, whatever it declares; an AgentNode may declare any."""
    return node.branches if isinstance(node, AgentNode) else list(dict.fromkeys(node.inferred_branches()))


def nodes_and_branches_are_connected(flow: Flow) -> Iterator[Problem]:
    """An edge leads to every EndNode, and from every branch of each node that can be reached.

    An open branch is a warning, except for the StartNode's: a run that takes it fails.
    """
    left = {(edge.from_node, edge.branch) for edge in flow.control_flow_connections}
    entered = {edge.to_node for edge in flow.control_flow_connections}
    misnamed = {
        edge.from_node
        for edge in flow.control_flow_connections
        if edge.branch not in _branches(edge.from_node)
    }
    reached = _reached(flow)
    for at, node in enumerate(flow.nodes):
        span = flow.span("nodes", at)
        if node not in reached:
            lost_end = isinstance(node, EndNode) and node not in entered
            text = f"{flow}: no control edge leads to the {node}"
            yield Problem("unreached-node", text, span, severity="error" if lost_end else "warning")
            continue
        for branch in () if node in misnamed else _branches(node):
            if (node, branch) not in left:
                text = f"{flow}: no control edge leaves the {node} by its branch '{branch}'"
                stuck = node is flow.start_node
                yield Problem("open-branch", text, span, severity="error" if stuck else "warning")


def _reached(flow: Flow) -> set[Node]:
    """The nodes that control edges lead to from the start."""
    return reachable(
        flow.start_node, ((edge.from_node, edge.to_node) for edge in flow.control_flow_connections)
    )


def data_edges_fit(flow: Flow) -> Iterator[Problem]:
    """spec: "the output type must be compatible with the input type"."""
    for edge in flow.data_flow_connections or ():
        source, target = edge.source_node.outputs, edge.destination_node.inputs
        if edge.source_output not in source:
            text = f"{edge}: the {edge.source_node} has no output '{edge.source_output}'" + none_at_all(
                source
            )
            hint = did_you_mean(edge.source_output, source)
            yield Problem("unknown-property", text, edge.span("source_output"), hint)
        if edge.destination_input not in target:
            text = (
                f"{edge}: the {edge.destination_node} has no input '{edge.destination_input}'"
                + none_at_all(target)
            )
            hint = did_you_mean(edge.destination_input, target)
            yield Problem("unknown-property", text, edge.span("destination_input"), hint)
        if edge.source_output in source and edge.destination_input in target:
            given, taken = source[edge.source_output], target[edge.destination_input]
            if not castable(given.type, taken.type):
                text = (
                    f"{edge}: output '{given.title}' of the {edge.source_node} is {given.type_text}, which cannot "
                    f"become input '{taken.title}' of the {edge.destination_node}, {taken.type_text}"
                )
                yield Problem("property-type", text, edge.span("destination_input"))


def inputs_have_sources(flow: Flow) -> Iterator[Problem]:
    """spec: "Sources (inputs) can be connected to outputs of another node, or to static values".

    A warning, as a run fails only if it visits the node.
    """
    data = DataFlow(flow)
    reached = _reached(flow)
    for node in flow.nodes:
        if node is flow.start_node or node not in reached:
            continue
        asked_for = {item.title for item in node.inferred_inputs()}
        for title, item in node.inputs.items():
            if title in asked_for and not item.has_default and not data.sources(node, title):
                text = f"{flow}: input '{title}' of the {node} has neither a source nor a default"
                place, hint = _location_of_input(node, title), _source_hint(flow, node, title)
                yield Problem("no-source", text, place, hint, severity="warning")


def _location_of_input(node: Node, title: str) -> Span:
    """The location of an input, else of its placeholder, else of the node."""
    for at, item in enumerate(node.declared_inputs or ()):
        if item.title == title:
            return node.span("inputs", at)
    for name in type(node).model_fields:
        text = getattr(node, name)
        for found in placeholders.PLACEHOLDER.finditer(text) if isinstance(text, str) else ():
            if found[1] == title:
                return node.span_in_text(name, found.start(), len(found[0]))
    return node.span()


def _source_hint(flow: Flow, node: Node, title: str) -> str:
    """A hint for an input without a source: an output of a similar name."""
    outputs = [
        output
        for other in flow.nodes
        if other is not node and not isinstance(other, EndNode)
        for output in other.outputs
    ]
    near = nearest(title, outputs)
    guess = f"did you mean '{near}'? Otherwise " if near not in (None, title) else ""
    return f"{guess}connect an output to it, or give it a default"


def ends_agree(flow: Flow) -> Iterator[Problem]:
    """spec: "It is not possible to define two outputs with the same name and different types in two … EndNodes"."""
    seen: dict[str, tuple[EndNode, Property]] = {}
    for end in flow.ends:
        for title, item in end.outputs.items():
            other, first = seen.setdefault(title, (end, item))
            if not same_type(first.type, item.type):
                text = (
                    f"{flow}: output '{title}' is {first.type_text} in the {other}, "
                    f"and {item.type_text} in the {end}"
                )
                yield Problem("property-type", text, end.span("outputs"))


def outputs_come_from_ends(flow: Flow) -> Iterator[Problem]:
    """spec: an output that does not "have a corresponding output … in every EndNode" needs a default."""
    for at, item in enumerate(flow.declared_outputs or ()):
        span = flow.span("outputs", at)
        having = [end for end in flow.ends if item.title in end.outputs]
        if flow.ends and not having:
            known = [title for end in flow.ends for title in end.outputs]
            text = f"{flow}: no EndNode has an output '{item.title}'"
            hint = did_you_mean(item.title, known)
            yield Problem("output-of-no-end", text, span, hint, "warning" if item.has_default else "error")
            continue
        for end in having:
            kind = end.outputs[item.title]
            fits = castable if item.has_default else same_type
            if not fits(kind.type, item.type):
                text = f"{flow}: output '{item.title}' is {kind.type_text} in the {end}, not {item.type_text}"
                yield Problem("property-type", text, span)
                break
        lacking = [end.name for end in flow.ends if end not in having]
        if lacking and not item.has_default:
            text = f"{flow}: output '{item.title}' needs a default, as the EndNode {listed(lacking)} lacks it"
            yield Problem("missing-default", text, span)


FLOW_RULES: Final[Sequence[Callable[[Flow], Iterator[Problem]]]] = (
    starts_once,
    has_an_end,
    nodes_are_named_apart,
    edges_join_its_nodes,
    nothing_enters_starts_or_leaves_ends,
    branches_have_one_edge,
    nodes_and_branches_are_connected,
    data_edges_fit,
    inputs_have_sources,
    ends_agree,
    outputs_come_from_ends,
)
