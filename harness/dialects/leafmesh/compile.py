"""Compiles a mesh to an EventGraph: one node per agent, entered at the entry point of the request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

from harness.dialects.kit.manifest import input_values, refuse_deep_nesting
from harness.dialects.kit.rules import reachable, warning
from harness.dialects.leafmesh import routing
from harness.dialects.leafmesh.agency import Agency, MeshParts, input_of
from harness.dialects.leafmesh.agents import node_function
from harness.dialects.leafmesh.conditions import parse_wait_for
from harness.dialects.leafmesh.connector_exchange import mcp_tool, needs_agent_stub
from harness.dialects.leafmesh.declared import declared_data
from harness.dialects.leafmesh.document import EntryPoint, HumanAgent, LLMAgent, Mesh, ProgrammaticAgent
from harness.dialects.leafmesh.failures import WaitForTimeout, escalation_edges, handle_failure, run_failure
from harness.dialects.leafmesh.fields import MCP, Connector, Zapier
from harness.dialects.leafmesh.llm_agent import QUERY_KNOWLEDGE, may_call_tools, offered_names, provider_of
from harness.dialects.leafmesh.mesh_file import MeshFile, open_mesh
from harness.dialects.leafmesh.session import Task, response, session_of
from harness.dialects.request import LoadRequest
from harness.engine.context import RunContext
from harness.errors import ManifestError, Problem, Span
from harness.graph.events import ConcurrencyLimit, EventGraph, Join
from harness.graph.model import (
    START,
    Channel,
    Edge,
    Entry,
    Lifecycle,
    Node,
    Outside,
    Rerun,
    State,
    Vocabulary,
)
from harness.source.display import did_you_mean
from harness.source.document import Document

LLMAgents = Mapping[str, LLMAgent]


def unused_parts(
    mesh_file: MeshFile, edges: Sequence[Edge], joins: Mapping[str, Join], agency: Agency
) -> Iterator[Problem]:
    """Yield a warning for each unused part; `edges` are all edges of the mesh."""
    mesh, document = mesh_file.mesh, mesh_file.document
    reached = reachable(START, ((edge.source, edge.target) for edge in edges))
    for name in mesh.agents if mesh.entry_points and not routing.narrating(mesh) else ():
        if name not in reached:
            text = f"agent '{name}' can never run: no agent calls it, and no entry point leads to it"
            hint = "name it under `can_call` of an agent, or enter it by `agent` in a scenario"
            yield warning("unreachable-node", text, document.key_span(("agents", name)), hint)
    yield from _check_self_waits(document, edges, joins)
    llms = mesh.of(LLMAgent)
    yield from _check_tool_choices(llms, document, agency)
    yield from _check_query_tool(llms, document)
    if agency.is_complete:
        yield from _check_categories(llms, document, agency)
    if agency.tools and agency.is_complete:
        yield from _check_tools(llms, document, agency)


def _check_self_waits(
    document: Document, edges: Iterable[Edge], joins: Mapping[str, Join]
) -> Iterator[Problem]:
    """Yield joins that need their own agent to run first, which does not call itself."""
    loops = {edge.source for edge in edges if edge.source == edge.target}
    for name, join in joins.items():
        if name not in loops and join.missing(join.members - {name}) is not None:
            text = f"agent '{name}' waits for itself, and does not call itself: its join never holds"
            hint = f"take '{name}' out of its wait_for, or name it under its own can_call"
            yield warning("unreachable-node", text, document.span(("agents", name, "wait_for")), hint)


def _check_tool_choices(llms: LLMAgents, document: Document, agency: Agency) -> Iterator[Problem]:
    """Yield values of `tool_choice` that name none of the agent's tools. spec: "`tool_choice`"."""
    for name, agent in llms.items():
        if agent.tool_choice in ("auto", "none") or not may_call_tools(agent):
            continue
        offered = offered_names(name, agent, agency.tools)
        if agent.enabled_knowledge is not None:
            offered.append(QUERY_KNOWLEDGE.name)
        is_known = agency.is_complete or not agent.tool_categories
        if is_known and agent.tool_choice not in offered:
            text = f"the tool_choice of agent '{name}' is not one of its tools: '{agent.tool_choice}'"
            hint = did_you_mean(agent.tool_choice, ["auto", "none", *offered])
            yield warning("unknown-tool", text, document.span(("agents", name, "tool_choice")), hint)


def _check_query_tool(llms: LLMAgents, document: Document) -> Iterator[Problem]:
    """Yield agents that list `query_knowledge` and have no knowledge."""
    tool = QUERY_KNOWLEDGE.name
    for name, agent in llms.items():
        if agent.enabled_knowledge is None and tool in agent.tools:
            where = document.span(("agents", name, "tools", agent.tools.index(tool)))
            text = f"agent '{name}' has no knowledge, so it is not offered '{tool}'"
            yield warning("unknown-tool", text, where, "give it `knowledge`, with a serviceName")


def _check_categories(llms: LLMAgents, document: Document, agency: Agency) -> Iterator[Problem]:
    """Yield `tool_categories` that no registered tool has."""
    known = [tool.category for tool in agency.tools.values() if tool.category]
    for name, agent in llms.items():
        for index, category in enumerate(agent.tool_categories):
            if category not in known:
                text = f"no registered tool is of the category '{category}' of agent '{name}'"
                where = document.span(("agents", name, "tool_categories", index))
                yield warning("unknown-tool", text, where, did_you_mean(category, known))


def _check_tools(llms: LLMAgents, document: Document, agency: Agency) -> Iterator[Problem]:
    """Yield probably misspelt tools of agents, and registered tools that no agent uses.

    Other unregistered tools are not reported: a scenario answers for them.
    """
    for name, agent in llms.items():
        for index, tool in enumerate(agent.tools):
            hint = did_you_mean(tool, agency.tools, listing=False)
            if hint and tool not in agency.tools and tool != QUERY_KNOWLEDGE.name:
                text = f"no file of the agency registers the tool '{tool}' of agent '{name}'"
                yield warning("unknown-tool", text, document.span(("agents", name, "tools", index)), hint)
    had = {tool for name, agent in llms.items() for tool in offered_names(name, agent, agency.tools)}
    for tool in agency.tools:
        if tool not in had:
            text = f"no agent has the tool '{tool}', which the agency registers"
            yield warning("unknown-tool", text, document.span(("auto_discover",)))


def vocabulary(parts: MeshParts, document: Document) -> Vocabulary:
    """Return the names of a mesh. Registered tools are included even if no agent is offered them."""
    mesh = parts.mesh
    llms = mesh.of(LLMAgent)
    models = [provider_of(agent.model)[1] for agent in llms.values()]
    narrated = routing.narrating(mesh)
    listed = {tool: (name, at) for name, agent in llms.items() for at, tool in enumerate(agent.tools)}
    tools = [*listed]
    knowledge = [agent.enabled_knowledge for agent in llms.values() if agent.enabled_knowledge is not None]
    asked = [*parts.connectors.items(), *((name, each.connector) for name, each in parts.agency.processors())]
    servers = [(name, mcp_tool(each)) for name, each in asked if isinstance(each, MCP | Zapier)]
    may_ask = [*parts.agency.functions] if parts.agency.asks_more else []
    is_open = {} if parts.agency.is_complete else {"tool": "the files of the agency were not imported"}
    if may_ask:
        is_open["mcp"] = "functions may call integrations"
    return Vocabulary(
        names={
            "llm": [*models, *([provider_of(mesh.manager.model)[1]] if narrated else [])],
            "tool": [*tools, *parts.agency.tools, *([QUERY_KNOWLEDGE.name] if knowledge else [])],
            "server": [*(name for name, _ in servers), *may_ask],
            "mcp": [tool for _, tool in servers],
            "agent": [*(name for name, _ in asked), *may_ask],
            "script": [name for name in mesh.of(ProgrammaticAgent) if name not in parts.connectors],
            "retrieval": [each.serviceName for each in knowledge],
        },
        open=is_open,
        callers=[routing.SUMMARIZER] if narrated else [],
        outside=[
            *(
                Outside("tool", tool, asked=(tool,), declared=_declared(parts.agency, document, tool, *place))
                for tool, place in listed.items()
                if tool != QUERY_KNOWLEDGE.name
            ),
            *(Outside("retrieval", each.serviceName, asked=(QUERY_KNOWLEDGE.name,)) for each in knowledge),
            *(_outside(name, connector) for name, connector in parts.connectors.items()),
        ],
    )


def _declared(agency: Agency, document: Document, tool: str, agent: str, at: int) -> Span | None:
    """Return where an agent names a tool that nothing registers; None for others, or if that is not known."""
    if tool in agency.tools or not agency.is_complete:
        return None
    return document.span(("agents", agent, "tools", at))


def _outside(name: str, connector: Connector) -> Outside:
    """Return what answers in place of an agent with a connector: a stub, or its own protocol."""
    if needs_agent_stub(connector):
        return Outside("agent", name)
    if isinstance(connector, MCP | Zapier):
        return Outside("server", name, (("agent", name),), tools=(mcp_tool(connector),))
    return Outside("agent", name, (("http", ""),))


MAX_STARTS = 1000
"""The most starts of agents in one run. NOTES 2.5."""


def load(request: LoadRequest) -> EventGraph:
    """Return the graph of a mesh, entered where the request says.

    Raises:
        ManifestError: lists all errors of the mesh file; or a file of its agency cannot be imported.
    """
    with refuse_deep_nesting(request.path, "its values are nested too deep"):
        mesh_file = open_mesh(request)
        entry = _entry_point(mesh_file, request)
        agency = Agency.of(mesh_file.mesh, mesh_file.document, request)
        return _build_graph(mesh_file, entry, agency, request.env)


def _entry_point(mesh_file: MeshFile, request: LoadRequest) -> EntryPoint:
    """Return the entry point that the request names; the name of an agent enters that agent. NOTES 3.1."""
    mesh, wanted = mesh_file.mesh, request.agent
    by_name = {entry.name: entry for entry in mesh.entry_points}
    where = request.agent_at or mesh_file.document.span()
    if wanted is None:
        if len(by_name) == 1:
            return mesh.entry_points[0]
        text, hint = "no entry point is named", "name an agent with `agent:`"
        if by_name:
            text = f"this mesh has {len(by_name)} entry points, and none is named"
            hint = f"name one with `entry_point:`: {', '.join(by_name)}"
        raise ManifestError(Problem("unknown-agent", text, where, hint))
    if (found := mesh.entry(wanted)) is not None:
        return found
    text = f"there is no entry point or agent '{wanted}'"
    raise ManifestError(Problem("unknown-agent", text, where, did_you_mean(wanted, [*by_name, *mesh.agents])))


def _build_graph(
    mesh_file: MeshFile, entry: EntryPoint, agency: Agency, env: Mapping[str, str]
) -> EventGraph:
    mesh, document = mesh_file.mesh, mesh_file.document
    joins = _joins(mesh)
    parts = MeshParts(mesh, agency, mesh_file.connectors, joins, env)
    own = routing.can_call_entries(mesh, joins, document)
    starts = routing.start_edges(mesh, document)
    starts.setdefault(entry.name, Edge(START, entry.target))
    edges = (*starts.values(), *(each.edge for name in own for each in own[name]), *escalation_edges(mesh))
    narrated = routing.narrating(mesh)
    # The most concurrent calls of each agent. spec: `parallel`, `max_concurrent`; NOTES 2.4
    at_once = {name: agent.max_concurrent if agent.parallel else 1 for name, agent in mesh.agents.items()}
    return EventGraph(
        name=mesh.name,
        dialect="leafmesh",
        nodes=tuple(
            Node(
                name, agent.agent_type, node_function(name, agent, parts), document.key_span(("agents", name))
            )
            for name, agent in mesh.agents.items()
        ),
        edges=edges,
        channels=tuple(Channel(name) for name in mesh.agents),
        routers={
            START: routing.start_router(entry, starts, own, parts),
            **{name: routing.agent_router(name, own[name], parts) for name in own},
        },
        late_routers={name: routing.narration_router(name, own[name], parts) for name in narrated},
        goto_anywhere=frozenset(narrated),
        lifecycle=_lifecycle(mesh),
        recursion_limit=MAX_STARTS,
        may_pause=bool(mesh.of(HumanAgent)),
        warnings=(*mesh_file.warnings, *agency.warnings, *unused_parts(mesh_file, edges, joins, agency)),
        notes=mesh_file.notes,
        import_folders=agency.import_folders,
        vocabulary=lambda: vocabulary(parts, mesh_file.document),
        declared=cache(partial(declared_data, parts, entry)),
        takes_hooks=False,
        reruns=True,
        entries=(*(each.name for each in mesh.entry_points), *mesh.agents),
        joins=joins,
        limits=tuple(
            ConcurrencyLimit(most, frozenset({name})) for name, most in at_once.items() if most is not None
        ),
        input_of=input_of,
        on_failure=partial(handle_failure, parts),
        run_failure=partial(run_failure, parts),
    )


def _joins(mesh: Mesh) -> dict[str, Join]:
    """Return the join of each fan-in agent. spec: "Fan-In Patterns (wait_for)"."""
    return {
        name: Join(requirement, agent.wait_for_timeout, WaitForTimeout)
        for name, agent in mesh.agents.items()
        if (requirement := parse_wait_for(agent.wait_for, mesh.agents)) is not None
    }


def _lifecycle(mesh: Mesh) -> Lifecycle:
    async def accept(value: Any, run: RunContext) -> Mapping[str, Any]:
        if isinstance(value, Rerun):
            session = session_of(run)
            session.task = Task(rerun=value, upstream_yields=dict(session.task.upstream_yields))
            return {}
        entry, value = (value.name, value.input) if isinstance(value, Entry) else (None, value)
        given = input_values(value, "message", "an input is text (message) or a mapping of fields")
        session_of(run).task = Task(dict(given), entry)
        return {}

    async def finish(_state: State, run: RunContext) -> Any:
        return response(mesh, session_of(run).task)

    async def salvage(run: RunContext) -> Any:
        task = session_of(run).task
        # A branch may fail after the entry agent has answered.
        return response(mesh, task) if task.calls else None

    async def so_far(run: RunContext) -> Any:
        return response(mesh, session_of(run).task, whole=True)

    return Lifecycle(accept=accept, finish=finish, salvage=salvage, so_far=so_far)
