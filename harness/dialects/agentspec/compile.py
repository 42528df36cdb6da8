"""Compilation of an Agent Spec configuration to a Graph: components and references, rules, then graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from harness.dialects.agentspec import flows, rules, tools
from harness.dialects.agentspec.agent_graph import agent_graph, remote_agent_graph
from harness.dialects.agentspec.agents import Agent, AgenticComponent, RemoteAgent, SpecializedAgent, Team
from harness.dialects.agentspec.component import BROKEN, Component, inner_first
from harness.dialects.agentspec.configuration import Configuration
from harness.dialects.agentspec.connections import ClientTransport, Model
from harness.dialects.agentspec.declared import declared_data
from harness.dialects.agentspec.dialect import VERSION
from harness.dialects.agentspec.document import TYPES, VERSIONS, as_newest_known
from harness.dialects.agentspec.flow_graph import flow_graph, node_names
from harness.dialects.agentspec.plugins import (
    ComponentPlugin,
    PluginError,
    Plugins,
    as_plugin,
    installed_plugins,
)
from harness.dialects.agentspec.team_graph import team_graph
from harness.dialects.kit.manifest import UnimportedObject, load_hook, refuse_deep_nesting
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem
from harness.graph.effects import NAMED_KINDS
from harness.graph.model import NODE, Graph, NestedGraph, Outside, Vocabulary
from harness.source.document import Document
from harness.source.location import MAX_DEPTH
from harness.source.models import in_file_order


def vocabulary(component: AgenticComponent, graph_of: Callable[[AgenticComponent], Graph]) -> Vocabulary:
    """The names of a component's graph. `graph_of` compiles those of the flows and agents in it."""
    parts = inner_first(component)
    local = [
        part for part in parts if isinstance(part, tools.ServerTool | tools.BuiltinTool | tools.ClientTool)
    ]
    remote = [part for part in parts if isinstance(part, RemoteAgent)]
    transports = [part for part in parts if isinstance(part, ClientTransport)]
    boxes = [part for part in parts if isinstance(part, tools.MCPToolBox)]
    plugins = any(part.component_type not in TYPES for part in parts)
    return Vocabulary(
        names={
            "llm": [part.model_id for part in parts if isinstance(part, Model)],
            "tool": [tool.name for tool in local],
            "mcp": [
                *(part.name for part in parts if isinstance(part, tools.MCPTool)),
                *(name for box in boxes for name in box.filtered),
            ],
            "server": [name for transport in transports for name in (transport.id, transport.name) if name],
            "agent": [agent.name for agent in remote],
        },
        aliases={"tool": _aliases(local), "agent": _aliases(remote)},
        open=dict.fromkeys((NODE, *NAMED_KINDS), "the node of a plugin may call any")
        if plugins
        else {"mcp": "a toolbox has the tools that its server lists"}
        if not all(box.filtered for box in boxes)
        else {},
        inside={
            name: [
                NestedGraph(inner, partial(graph_of, inner), attributed=not isinstance(inner, flows.Flow))
                for inner in components
            ]
            for name, components in _nested_components(component)
        },
        outside=[*_outside(parts)],
    )


def _outside(parts: Sequence[Component]) -> Iterator[Outside]:
    """Yield what only a scenario answers. A ClientTool without an answer pauses the run."""
    called = [part.tool for part in parts if isinstance(part, flows.ToolNode)]
    for part in parts:
        if isinstance(part, tools.ServerTool | tools.BuiltinTool | RemoteAgent):
            kind = "agent" if isinstance(part, RemoteAgent) else "tool"
            others = ((kind, part.id),) if part.id and part.id != part.name else ()
            is_asked = kind == "tool" and part not in called
            yield Outside(kind, part.name, others, asked=(part.name,) if is_asked else ())
        elif isinstance(part, ClientTransport):
            users = [
                tool for tool in parts if isinstance(tool, tools.MCPTool) and tool.client_transport is part
            ]
            boxes = [
                box for box in parts if isinstance(box, tools.MCPToolBox) and box.client_transport is part
            ]
            has = (*(tool.name for tool in users), *(name for box in boxes for name in box.filtered))
            # A toolbox lists them first.
            asked = () if boxes or any(tool in called for tool in users) else has
            names = [name for name in (part.id, part.name) if name]
            if (has or boxes) and names:
                yield Outside("server", names[0], tuple(("server", name) for name in names[1:]), asked, has)


def _aliases(components: Sequence[Component]) -> dict[str, str]:
    return {item.id: item.name for item in components if item.id and item.id != item.name}


def _nested_components(component: AgenticComponent) -> Iterator[tuple[str, Sequence[AgenticComponent]]]:
    """The nodes that run flows or an agent, by their names in the graph."""
    for node, name in node_names(component).items() if isinstance(component, flows.Flow) else ():
        if isinstance(node, flows.AgentNode):
            yield name, [node.agent]
        elif isinstance(node, flows.FlowNode | flows.MapNode):
            yield name, [node.subflow]
        elif isinstance(node, flows.ParallelFlowNode):
            yield name, node.subflows


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
                may_pause=any(map(_pauses, inner_first(component))),
                vocabulary=lambda: vocabulary(component, self.graph_of),
                declared=cache(partial(declared_data, component)),
            )
        return self._graphs[component]

    def _graph(self, component: AgenticComponent) -> Graph:
        if isinstance(component, flows.Flow):
            return flow_graph(component, self.graph_of, self.plugins)
        if isinstance(component, Agent):
            return agent_graph(component)
        if isinstance(component, SpecializedAgent):
            return agent_graph(component.merged)
        if isinstance(component, Team):
            return team_graph(component)
        assert isinstance(component, RemoteAgent)
        return remote_agent_graph(component)


def _pauses(part: Component) -> bool:
    """True if a run can pause at a component: for the user, for the client, or in the node of a plugin."""
    if isinstance(part, SpecializedAgent):
        return _pauses(part.merged)
    if isinstance(part, Team):
        return bool(part.outputs) and part.lead.human_in_the_loop
    if isinstance(part, Agent):
        return bool(part.outputs) and part.human_in_the_loop  # it may ask the user for them
    if isinstance(part, tools.Tool | tools.ToolBox | tools.MCPToolSpec) and part.requires_confirmation:
        return True
    return isinstance(part, flows.InputMessageNode | tools.ClientTool) or part.component_type not in TYPES


def load(request: LoadRequest) -> Graph:
    """Compile the flow or agent that a request names; by default the root component.

    Raises:
        ManifestError: with all problems.
    """
    too_deep = f"nested more than {MAX_DEPTH} levels deep, with references expanded"
    with refuse_deep_nesting(request.path, too_deep):
        configuration = configuration_of(request)
        component = _checked_component(configuration, request)
        graph = GraphCompiler(configuration.plugins).graph_of(component)
        return replace(graph, warnings=tuple(configuration.problems.warnings))


def configuration_of(request: LoadRequest) -> Configuration:
    """Read the components of a request's files.

    Raises:
        ManifestError: a file cannot be read, or a plugin cannot be used.
    """
    documents = [request.read(path, yaml="1.1", named_at=request.named_at) for path in request.paths]
    plugins = plugins_of(request)
    try:
        return Configuration(documents, plugins, request)
    except ManifestError as error:
        raise _with_version_advice(error, documents, plugins, request) from None


def _with_version_advice(
    error: ManifestError, documents: Sequence[Document], plugins: Plugins, request: LoadRequest
) -> ManifestError:
    """Return the error; if documents are only too new, but load as the newest known version, with that advice."""
    newest = [as_newest_known(document) for document in documents]
    if len(error.problems) != len([document for document in newest if document is not None]):
        return error
    known = [found or document for found, document in zip(newest, documents, strict=True)]
    try:
        _checked_component(Configuration(known, plugins, request), request)
    except ManifestError as others:
        if others.problems[0].code != "not-runnable":
            return error
    hint = f"it uses nothing newer, so write {VERSION}: {VERSIONS[-1]}"
    return ManifestError([replace(problem, hint=hint) for problem in error.problems])


def _checked_component(configuration: Configuration, request: LoadRequest) -> AgenticComponent:
    """Return the flow or agent to run, after checking its rules; their warnings are added to the configuration's.

    Raises:
        ManifestError: with all problems.
    """
    component = select_component(configuration, request)
    if component.is_complete:
        configuration.problems.add(rules.problems(component))
    configuration.problems.raise_errors()
    return component


def select_component(configuration: Configuration, request: LoadRequest) -> AgenticComponent:
    """Return the flow or agent to run.

    Raises:
        ManifestError: it does not exist, or cannot be run. If it is neither a flow nor an agent, it is checked all
            the same.
    """
    problems = configuration.problems
    if configuration.root is BROKEN:
        problems.raise_errors()
    component: Component = configuration.find(request.agent)
    if not isinstance(component, AgenticComponent):
        if component.is_complete:
            problems.add(rules.problems(component))
        text = f"the {component} is neither an agent nor a flow, so it cannot be run"
        unfit = Problem("not-runnable", text, component.span())
        raise ManifestError([*problems.errors, unfit, *(() if problems.errors else problems.warnings)])
    if not component.is_complete and not configuration.problems.errors:
        # The root component does not use it, so its problems were only warnings.
        raise ManifestError(in_file_order(configuration.unused))
    return component


def plugins_of(request: LoadRequest) -> Plugins:
    """Return the plugins of installed packages and of the request's hooks.

    Raises:
        ManifestError: a hook cannot be imported, or is not a plugin.
    """
    found, warnings = installed_plugins()
    try:
        return Plugins([*found, *(_plugin_from_hook(hook, request) for hook in request.hooks)], warnings)
    except PluginError as error:
        raise ManifestError(Problem("plugin", str(error), request.named_at)) from None


def _plugin_from_hook(hook: Any, request: LoadRequest) -> ComponentPlugin:
    name = hook if isinstance(hook, str) else getattr(hook, "__qualname__", type(hook).__qualname__)
    found = load_hook(hook, request)
    if isinstance(found, UnimportedObject):
        text = f"the configuration was not checked: its plugin {name} is Python code"
        text, hint = f"{text}, and nothing was imported", "--imports imports it"
        raise ManifestError(Problem("not-checked", text, request.span_of_hook(hook), hint, "warning"))
    try:
        return as_plugin(found, name)
    except PluginError as error:
        raise ManifestError(Problem("plugin", f"`hooks`: {error}", request.span_of_hook(hook))) from None
