"""The rules between components, and for flows. spec: "Validation of specified inputs/outputs", "Flow".

Each rule is a function that yields the problems of one component. The fields of a component by themselves are
checked when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from harness.dialects.agentspec import flows
from harness.dialects.agentspec.agents import Agent, ManagerWorkers, SpecializedAgent, Swarm, Team
from harness.dialects.agentspec.component import Component, ComponentWithIO, inner_first
from harness.dialects.agentspec.data_rules import DATA_RULES, none_suffix, quoted_list, reachable_nodes
from harness.dialects.agentspec.properties import Property
from harness.dialects.agentspec.types import castable, same_type, type_of
from harness.dialects.kit.rules import repeated, warning
from harness.errors import Problem
from harness.matchers.schema_flaws import misspelt_keywords
from harness.source.display import did_you_mean


def node_names_are_unique(flow: flows.Flow) -> Iterator[Problem]:
    """Warn of nodes with the same name. They differ by their ids, but paths show names."""
    for at, first in repeated(node.name for node in flow.nodes):
        if (node := flow.nodes[at]) is not flow.nodes[first]:
            text = f"{flow}: two nodes are called '{node.name}'; in paths the second is '{node.name} (2)'"
            yield warning("duplicate-name", text, node.span("name"))


def has_one_start_node(flow: flows.Flow) -> Iterator[Problem]:
    """A flow has one StartNode, `start_node`, which is in `nodes`.

    spec: "flows must have a unique StartNode … defined by the start_node parameter".
    """
    if not isinstance(flow.start_node, flows.StartNode):
        text = f"{flow}: its start_node must be a StartNode, not the {flow.start_node}"
        yield Problem("start-node", text, flow.span("start_node"))
    if flow.start_node not in flow.nodes:
        text = f"{flow}: its start_node, the {flow.start_node}, is not in its nodes"
        yield Problem("start-node", text, flow.span("nodes"))
    for index, node in enumerate(flow.nodes):
        if isinstance(node, flows.StartNode) and (node is not flow.start_node or node in flow.nodes[:index]):
            text = f"{flow}: a flow has one StartNode, and '{node.name}' is a second one"
            yield Problem("start-node", text, flow.span("nodes", index))


def has_end_node(flow: flows.Flow) -> Iterator[Problem]:
    """A flow has an EndNode."""
    if not flow.end_nodes:
        yield Problem("no-end-node", f"{flow}: there is no EndNode among its nodes", flow.span("nodes"))


def edges_connect_nodes_of_the_flow(flow: flows.Flow) -> Iterator[Problem]:
    """Edges connect nodes of the flow. A missing node is reported once, at its first edge.

    spec: "Relations … express a transition from some source node to some target node".
    """
    known = {*flow.nodes, flow.start_node}
    for edge, field, node in _edge_ends(flow):
        if node not in known:
            known.add(node)
            text = f"{edge}: the {node} is not in the nodes of {flow}"
            yield Problem("unknown-node", text, edge.span(field))


def _edge_ends(flow: flows.Flow) -> Iterator[tuple[Component, str, flows.Node]]:
    for edge in flow.control_flow_connections:
        yield edge, "from_node", edge.from_node
        yield edge, "to_node", edge.to_node
    for data_edge in flow.data_flow_connections or ():
        yield data_edge, "source_node", data_edge.source_node
        yield data_edge, "destination_node", data_edge.destination_node


def no_edge_enters_start_or_leaves_end(flow: flows.Flow) -> Iterator[Problem]:
    """No control edge enters a StartNode or leaves an EndNode. spec: EndNode, "Outgoing branches: None"."""
    for edge in flow.control_flow_connections:
        if isinstance(edge.to_node, flows.StartNode):
            text = f"{edge} leads to the {edge.to_node}, but no edge may lead to a StartNode"
            yield Problem("start-node", text, edge.span("to_node"))
        if isinstance(edge.from_node, flows.EndNode):
            text = f"{edge} leads away from the {edge.from_node}, but no edge may leave an EndNode"
            yield Problem("end-node", text, edge.span("from_node"))


def branches_have_one_edge(flow: flows.Flow) -> Iterator[Problem]:
    """Control edges start at existing branches, and only one at each.

    spec: "multi-connections from the same outgoing branch of a node are not allowed".
    """
    taken: dict[tuple[flows.Node, str], flows.ControlFlowEdge] = {}
    branches = {node: dict.fromkeys(_branches(node)) for node in _sources(flow)}
    for edge in flow.control_flow_connections:
        node, branch = edge.from_node, edge.branch
        if isinstance(node, flows.EndNode):
            continue
        if branch not in branches[node]:
            where = edge.span("from_branch") if edge.from_branch is not None else edge.span("from_node")
            text = f"{edge}: the {node} has no branch '{branch}'"
            yield Problem("unknown-branch", text, where, did_you_mean(branch, branches[node]))
            continue
        other = taken.setdefault((node, branch), edge)
        if other is not edge:
            text = f"{edge} is a second edge from branch '{branch}' of the {node}"
            yield Problem("second-edge", f"{text}; '{other.name}' is the first", edge.span())


def _branches(node: flows.Node) -> Sequence[str]:
    """Return the inferred branches of a node; the declared ones of an AgentNode, which may declare any."""
    return (
        node.branches if isinstance(node, flows.AgentNode) else list(dict.fromkeys(node.inferred_branches()))
    )


def _sources(flow: flows.Flow) -> Collection[flows.Node]:
    return {edge.from_node for edge in flow.control_flow_connections}


def nodes_and_branches_are_connected(flow: flows.Flow) -> Iterator[Problem]:
    """A control edge enters every EndNode, and leaves every branch of each reachable node.

    Other unreachable nodes are warnings. An open branch, which fails a run that takes it, is a warning too, except
    for that of the StartNode.
    """
    edges = flow.control_flow_connections
    connected = {(edge.from_node, edge.branch) for edge in edges}
    entered = {edge.to_node for edge in edges}
    branches = {node: frozenset(_branches(node)) for node in _sources(flow)}
    misnamed = {edge.from_node for edge in edges if edge.branch not in branches[edge.from_node]}
    reached = reachable_nodes(flow)
    for index, node in enumerate(flow.nodes):
        span = flow.span("nodes", index)
        if node not in reached:
            lost_end = isinstance(node, flows.EndNode) and node not in entered
            text = f"{flow}: no control edge leads to the {node}"
            yield Problem("unreached-node", text, span, severity="error" if lost_end else "warning")
            continue
        for branch in () if node in misnamed else _branches(node):
            if (node, branch) not in connected:
                text = f"{flow}: no control edge leaves the {node} by its branch '{branch}'"
                stuck = node is flow.start_node
                yield Problem("open-branch", text, span, severity="error" if stuck else "warning")


FLOW_RULES: Final[Sequence[Callable[[flows.Flow], Iterator[Problem]]]] = (
    has_one_start_node,
    has_end_node,
    node_names_are_unique,
    edges_connect_nodes_of_the_flow,
    no_edge_enters_start_or_leaves_end,
    branches_have_one_edge,
    nodes_and_branches_are_connected,
    *DATA_RULES,
)


def problems(root: Component) -> Iterator[Problem]:
    """Yield all problems and warnings of a component and of the components in it, which were all read."""
    for component in inner_first(root):
        for kind, rules in _RULES:
            if isinstance(component, kind):
                for rule in rules:
                    yield from rule(component)


_TEXT: Final = type_of({"type": "string"})
_NUMBER: Final = type_of({"type": "number"})

# ------------------------------------------------------------------ inputs and outputs

Side = Literal["inputs", "outputs"]


def properties_match(component: ComponentWithIO) -> Iterator[Problem]:
    """Declared properties have the names of the inferred ones, and types that can be cast.

    spec: "The set of input and output property names are equivalent".
    """
    if isinstance(component, flows.StartNode | flows.EndNode):
        yield from _equal_lists(component)
        return
    if component.declared_inputs is not None:
        yield from _matching(component, "inputs", component.declared_inputs, component.inferred_inputs())
    if component.declared_outputs is not None:
        yield from _matching(component, "outputs", component.declared_outputs, component.inferred_outputs())


def _matching(
    component: ComponentWithIO, side: Side, written: Sequence[Property], inferred: Sequence[Property]
) -> Iterator[Problem]:
    expected = {item.title: item for item in inferred}
    for index, item in enumerate(written):
        if item.title not in expected:
            text = f"{component}: '{item.title}' is not one of its {side}" + none_suffix(expected)
            hint = did_you_mean(item.title, expected)
            yield Problem("unknown-property", text, component.span(side, index), hint)
        elif not (castable(kind := expected[item.title].type, item.type) or castable(item.type, kind)):
            text = f"{component}: {side[:-1]} '{item.title}' is {kind}, and cannot be declared as {item.type}"
            yield Problem("property-type", text, component.span(side, index))
    titles = {item.title for item in written}
    for title in expected:
        if title not in titles:
            text = f"{component}: '{title}' is missing in its {side}"
            yield Problem("missing-property", text, component.span(side))


def _equal_lists(node: flows.StartNode | flows.EndNode) -> Iterator[Problem]:
    """The inputs and outputs of a StartNode or EndNode are equal. spec: "it must match exactly"."""
    if node.declared_inputs is not None and node.declared_outputs is not None:
        inputs = {item.title: item.schema for item in node.declared_inputs}
        outputs = {item.title: item.schema for item in node.declared_outputs}
        for title in [*inputs, *(title for title in outputs if title not in inputs)]:
            if inputs.get(title) != outputs.get(title):
                text = f"{node}: its inputs and its outputs must be the same, and '{title}' is not"
                yield Problem("unequal-lists", text, node.span("outputs"))


_MISSPELLING_CUTOFF: Final = 0.75
"""The similarity from which a key counts as a misspelling of a keyword."""


def keywords_are_known(component: ComponentWithIO) -> Iterator[Problem]:
    """Warn of keys of a property that look like misspelt keywords. JSON Schema ignores unknown keys."""
    for side, written in (("inputs", component.declared_inputs), ("outputs", component.declared_outputs)):
        for index, item in enumerate(written or ()):
            for found in misspelt_keywords(item.schema, cutoff=_MISSPELLING_CUTOFF):
                what = f"{component}: property '{item.title}'"
                text = f"{what}: '{found.keyword}' is not a keyword of JSON Schema"
                span, hint = component.span(side, index, *found.path), f"did you mean '{found.meant}'?"
                yield Problem("unknown-key", text, span, hint, "warning")


def tool_names_are_unique(agent: Agent) -> Iterator[Problem]:
    """Warn of tools of an agent with the same name, by which models call them. spec: "Tools"."""
    for index, first in repeated(tool.name for tool in agent.tools):
        name = agent.tools[first].name
        text = f"{agent}: two of its tools are called '{name}'; only the first can be called"
        yield warning("duplicate-name", text, agent.span("tools", index))


def specialization_fits(agent: SpecializedAgent) -> Iterator[Problem]:
    """An input or output of both the agent and its specialization has the same type in both."""
    more = agent.agent_specialization_parameters
    sides = ((agent.agent.inputs, more.inputs, "input"), (agent.agent.outputs, more.outputs, "output"))
    for own, others, side in sides:
        for title, item in others.items():
            if title in own and not same_type(own[title].type, item.type):
                text = f"{agent}: {side} '{title}' of {more} is {item.type}, and {own[title].type} in {agent.agent}"
                span = agent.span("agent_specialization_parameters")
                yield Problem("property-type", text, span)


def members_fit(team: Team) -> Iterator[Problem]:
    """Members are agents with names of their own; workers may be managers."""
    for index, member in enumerate(team.members):
        is_manager = isinstance(team, ManagerWorkers) and isinstance(member, ManagerWorkers)
        if not (isinstance(member, Agent | SpecializedAgent) or (is_manager and index)):
            text = f"{team}: the {member} is not supported as one of its agents"
            yield Problem("unsupported", text, member.span())
    for index, _ in repeated(member.name for member in team.members):
        member = team.members[index]
        text = f"{team}: two of its agents are called '{member.name}', by which they are addressed"
        yield Problem("duplicate-name", text, member.span("name"))
    for sender, recipient in team.relationships if isinstance(team, Swarm) else ():
        if sender is recipient:
            yield Problem("bad-value", f"{team}: {sender} is related to itself", team.span("relationships"))
    if isinstance(team, ManagerWorkers) and team.group_manager in team.workers:
        yield Problem("bad-value", f"{team}: its manager is one of its workers", team.span("workers"))


def branches_match(node: flows.Node) -> Iterator[Problem]:
    """Declared branches are the inferred ones, except for those of an AgentNode.

    spec: "the branches attribute of the Node is typically managed (i.e., automatically inferred)".
    """
    if not node.declared_branches or isinstance(node, flows.AgentNode):
        return  # the agent is prompted to select one of the declared branches (schema: AgentNode)
    expected = list(dict.fromkeys(node.inferred_branches()))
    for index, branch in enumerate(node.declared_branches):
        if branch not in expected:
            text = f"{node} has no branch '{branch}'" + none_suffix(expected)
            hint = did_you_mean(branch, expected)
            yield Problem("unknown-branch", text, node.span("branches", index), hint)
        elif branch in node.declared_branches[:index]:
            text = f"{node}: branch '{branch}' is listed twice"
            yield Problem("duplicate-branch", text, node.span("branches", index))
    missing = [branch for branch in expected if branch not in node.declared_branches]
    if missing:
        text = f"{node}: {quoted_list(missing)} missing in its branches"
        yield Problem("missing-branch", text, node.span("branches"))


def input_is_text(node: flows.InputMessageNode) -> Iterator[Problem]:
    """The output of an InputMessageNode is a string. spec: "One string property"."""
    for index, item in enumerate(node.declared_outputs or ()):
        if not same_type(item.type, _TEXT):
            text = f"{node}: the user's input is a string, and cannot be declared as {item.type}"
            yield Problem("property-type", text, node.span("outputs", index))


def subflows_fit(node: flows.ParallelFlowNode) -> Iterator[Problem]:
    """Flows that run side by side have no output in common, and inputs with the same name have the same type."""
    inputs: dict[str, Property] = {}
    outputs: set[str] = set()
    for index, subflow in enumerate(node.subflows):
        span = node.span("subflows", index)
        for title, item in subflow.inputs.items():
            first = inputs.setdefault(title, item)
            if not same_type(first.type, item.type):
                text = f"{node}: input '{title}' of {subflow} is {item.type}, in another flow {first.type}"
                yield Problem("property-type", text, span)
        for title in subflow.outputs:
            if title in outputs:
                text = f"{node}: output '{title}' of {subflow} is also an output of another of its flows"
                yield Problem("duplicate-property", text, span)
            outputs.add(title)


def may_be_caught(node: flows.CatchExceptionNode) -> Iterator[Problem]:
    """Outputs have defaults for a flow that fails, and none of its names is taken."""
    if flows.CAUGHT in flows.FlowNode.inferred_branches(node):
        text = f"{node}: {node.subflow} has a branch '{flows.CAUGHT}', which is that of the node"
        yield Problem("duplicate-branch", text, node.span("subflow"))
    if flows.CAUGHT_INFO in node.subflow.outputs:
        text = f"{node}: {node.subflow} has an output '{flows.CAUGHT_INFO}', which is that of the node"
        yield Problem("duplicate-property", text, node.span("subflow"))
    for title, item in node.outputs.items():
        if not item.has_default:
            text = f"{node}: output '{title}' has no default, which it needs if {node.subflow} fails"
            side = "subflow" if node.declared_outputs is None else "outputs"
            yield Problem("missing-default", text, node.span(side))


_REDUCIBLE: Final[Mapping[str, tuple[str, ...]]] = {
    "sum": ("number",),
    "average": ("number",),
    "max": ("number", "string"),
    "min": ("number", "string"),
}


def reducers_fit(node: flows.MapNode) -> Iterator[Problem]:
    """Reducers fit the types of the outputs. schema: "allowed methods depend on the type of the output"."""
    outputs = node.subflow.outputs
    for title, reducer in (node.reducers or {}).items():
        span = node.span("reducers", title)
        if title not in outputs:
            text = f"{node}: reducer of '{title}', which is not an output of {node.subflow}"
            yield Problem("unknown-property", text, span, did_you_mean(title, outputs))
        elif reducer in _REDUCIBLE and not _reducible(outputs[title], _REDUCIBLE[reducer]):
            text = f"{node}: {reducer} of '{title}', which is {outputs[title].type}"
            yield Problem("property-type", text, span)


def _reducible(output: Property, kinds: Sequence[str]) -> bool:
    """True if an output is of one of these types. `castable` alone is not enough: anything can be cast to string."""
    numeric = castable(output.type, _NUMBER)
    text = "string" in kinds and castable(_TEXT, output.type)
    return numeric or text or output.type.anything


_RULES: Final[Sequence[tuple[type[Component], Sequence[Callable[[Any], Iterator[Problem]]]]]] = (
    (ComponentWithIO, (properties_match, keywords_are_known)),
    (Agent, (tool_names_are_unique,)),
    (SpecializedAgent, (specialization_fits,)),
    (Team, (members_fit,)),
    (flows.Node, (branches_match,)),
    (flows.InputMessageNode, (input_is_text,)),
    (flows.ParallelFlowNode, (subflows_fit,)),
    (flows.CatchExceptionNode, (may_be_caught,)),
    (flows.MapNode, (reducers_fit,)),
    (flows.Flow, FLOW_RULES),
)
