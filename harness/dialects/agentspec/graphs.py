"""Compilation of the flows and agents of a configuration, each when it is first needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.dialects.agentspec.agent_graph import agent_graph, remote_agent_graph
from harness.dialects.agentspec.agents import Agent, AgenticComponent, RemoteAgent
from harness.dialects.agentspec.component import Component, inner_first
from harness.dialects.agentspec.document import TYPES
from harness.dialects.agentspec.flow_graph import flow_graph
from harness.dialects.agentspec.flows import Flow, InputMessageNode
from harness.dialects.agentspec.plugins import Plugins
from harness.dialects.agentspec.tools import ClientTool
from harness.dialects.agentspec.vocabulary import vocabulary
from harness.errors import Problem
from harness.graph.model import Graph


class GraphCompiler:
    """A compiler of flows and agents, which caches their graphs."""

    def __init__(self, plugins: Plugins) -> None:
        self.plugins = plugins
        self._graphs: dict[AgenticComponent, Graph] = {}

    def graph_of(self, component: AgenticComponent) -> Graph:
        """Return the graph of a flow or an agent; the same object for the same component."""
        if component not in self._graphs:
            self._graphs[component] = replace(
                self._graph(component),
                may_pause=may_pause(component),
                vocabulary=lambda: vocabulary(component, self.graph_of),
            )
        return self._graphs[component]

    def top(self, component: AgenticComponent, warnings: Sequence[Problem]) -> Graph:
        """Return the graph of the component to run, with the warnings of the configuration."""
        return replace(self.graph_of(component), warnings=tuple(warnings))

    def _graph(self, component: AgenticComponent) -> Graph:
        if isinstance(component, Flow):
            return flow_graph(component, self.graph_of, self.plugins)
        if isinstance(component, Agent):
            return agent_graph(component)
        assert isinstance(component, RemoteAgent)
        return remote_agent_graph(component)


def may_pause(component: AgenticComponent) -> bool:
    """True if a run can pause: for the user, for the client, or in the node of a plugin."""
    return any(_pauses(part) for part in inner_first(component))


def _pauses(part: Component) -> bool:
    if isinstance(part, Agent):
        return bool(part.outputs)  # it may ask the user for them
    return isinstance(part, InputMessageNode | ClientTool) or part.component_type not in TYPES
