"""The names in the graph of a flow or an agent: models, tools, MCP servers and remote agents, at any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from harness.dialects.agentspec.agents import AgenticComponent, RemoteAgent
from harness.dialects.agentspec.component import Component, inner_first
from harness.dialects.agentspec.document import TYPES
from harness.dialects.agentspec.flow_graph import node_names
from harness.dialects.agentspec.flows import AgentNode, Flow, FlowNode, MapNode
from harness.dialects.agentspec.llm_configs import LlmConfig
from harness.dialects.agentspec.tools import ClientTool, MCPTool, ServerTool
from harness.dialects.agentspec.transports import ClientTransport
from harness.graph.model import Graph
from harness.graph.vocabulary import KINDS, NODE, NestedGraph, Vocabulary


def vocabulary(component: AgenticComponent, graph_of: Callable[[AgenticComponent], Graph]) -> Vocabulary:
    """The names of a component's graph. `graph_of` compiles those of the flows and agents in it."""
    parts = inner_first(component)
    tools = [part for part in parts if isinstance(part, ServerTool | ClientTool)]
    remote = [part for part in parts if isinstance(part, RemoteAgent)]
    transports = [part for part in parts if isinstance(part, ClientTransport)]
    plugins = any(part.component_type not in TYPES for part in parts)
    return Vocabulary(
        names={
            "llm": [part.model_id for part in parts if isinstance(part, LlmConfig)],
            "tool": [tool.name for tool in tools],
            "mcp": [part.name for part in parts if isinstance(part, MCPTool)],
            "server": [name for transport in transports for name in (transport.id, transport.name) if name],
            "agent": [agent.name for agent in remote],
        },
        aliases={"tool": _aliases(tools), "agent": _aliases(remote)},
        open=dict.fromkeys((NODE, *KINDS), "the node of a plugin may call any") if plugins else {},
        inside={
            name: [NestedGraph(inner, partial(graph_of, inner), attributed=not isinstance(inner, Flow))]
            for name, inner in _nested_components(component)
        },
    )


def _aliases(components: Sequence[Component]) -> dict[str, str]:
    return {item.id: item.name for item in components if item.id and item.id != item.name}


def _nested_components(component: AgenticComponent) -> Iterator[tuple[str, AgenticComponent]]:
    """The nodes that run a flow or an agent, by their names in the graph."""
    for node, name in node_names(component).items() if isinstance(component, Flow) else ():
        if isinstance(node, AgentNode):
            yield name, node.agent
        elif isinstance(node, FlowNode | MapNode):
            yield name, node.subflow
