"""Parts of a mesh that no run can use: agents without callers, joins that never hold, unused tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.dialects.leafmesh.agency import Agency
from harness.dialects.leafmesh.document import LLMAgent
from harness.dialects.leafmesh.mesh_file import MeshFile
from harness.dialects.leafmesh.summarizer import reads_narrations
from harness.dialects.leafmesh.tools import QUERY_KNOWLEDGE, may_call_tools, offered_names
from harness.errors import Problem
from harness.graph.joins import Join
from harness.graph.model import Edge
from harness.source.suggest import did_you_mean


def unused_parts(
    mesh_file: MeshFile, edges: Sequence[Edge], joins: Mapping[str, Join], agency: Agency
) -> Iterator[Problem]:
    """Yield a warning for each unused part; `edges` are all edges of the mesh."""
    mesh, document = mesh_file.mesh, mesh_file.document
    reached = {edge.target for edge in edges}
    # After an agent with a narration, the Summarizer may call any agent.
    goes_anywhere = reads_narrations(mesh) and any(agent.narration for agent in mesh.agents.values())
    for name in mesh.agents if mesh.entry_points and not goes_anywhere else ():
        if name not in reached:
            text = f"agent '{name}' can never run: no agent calls it, and no entry point leads to it"
            hint = "name it under `can_call` of an agent, or enter it by `agent` in a scenario"
            yield Problem("unreachable-node", text, document.key_span(("agents", name)), hint, "warning")
    yield from _check_self_waits(mesh_file, edges, joins)
    yield from _check_tool_choices(mesh_file, agency)
    yield from _check_query_tool(mesh_file)
    if agency.is_complete:
        yield from _check_categories(mesh_file, agency)
    if agency.tools and agency.is_complete:
        yield from _check_tools(mesh_file, agency)


def _check_self_waits(
    mesh_file: MeshFile, edges: Iterable[Edge], joins: Mapping[str, Join]
) -> Iterator[Problem]:
    """Yield joins that need their own agent to run first, which does not call itself."""
    loops = {edge.source for edge in edges if edge.source == edge.target}
    for name, join in joins.items():
        if name not in loops and join.missing(join.members - {name}) is not None:
            text = f"agent '{name}' waits for itself, and does not call itself: its join never holds"
            where = mesh_file.document.span(("agents", name, "wait_for"))
            hint = f"take '{name}' out of its wait_for, or name it under its own can_call"
            yield Problem("unreachable-node", text, where, hint, "warning")


def _check_tool_choices(mesh_file: MeshFile, agency: Agency) -> Iterator[Problem]:
    """Yield values of `tool_choice` that name none of the agent's tools. spec: "`tool_choice`"."""
    for name, agent in mesh_file.mesh.agents.items():
        if (
            not isinstance(agent, LLMAgent)
            or agent.tool_choice in ("auto", "none")
            or not may_call_tools(agent)
        ):
            continue
        offered = offered_names(name, agent, agency.tools)
        if agent.enabled_knowledge is not None:
            offered.append(QUERY_KNOWLEDGE.name)
        is_known = agency.is_complete or not agent.tool_categories
        if is_known and agent.tool_choice not in offered:
            text = f"the tool_choice of agent '{name}' is not one of its tools: '{agent.tool_choice}'"
            where = mesh_file.document.span(("agents", name, "tool_choice"))
            hint = did_you_mean(agent.tool_choice, ["auto", "none", *offered])
            yield Problem("unknown-tool", text, where, hint, "warning")


def _check_query_tool(mesh_file: MeshFile) -> Iterator[Problem]:
    """Yield agents that list `query_knowledge` and have no knowledge."""
    for name, agent in mesh_file.mesh.agents.items():
        if (
            isinstance(agent, LLMAgent)
            and agent.enabled_knowledge is None
            and QUERY_KNOWLEDGE.name in agent.tools
        ):
            where = mesh_file.document.span(
                ("agents", name, "tools", agent.tools.index(QUERY_KNOWLEDGE.name))
            )
            text = f"agent '{name}' has no knowledge, so it is not offered '{QUERY_KNOWLEDGE.name}'"
            yield Problem("unknown-tool", text, where, "give it `knowledge`, with a serviceName", "warning")


def _check_categories(mesh_file: MeshFile, agency: Agency) -> Iterator[Problem]:
    """Yield `tool_categories` that no registered tool has."""
    known = [tool.category for tool in agency.tools.values() if tool.category]
    for name, agent in mesh_file.mesh.agents.items():
        for index, category in enumerate(agent.tool_categories if isinstance(agent, LLMAgent) else ()):
            if category not in known:
                text = f"no registered tool is of the category '{category}' of agent '{name}'"
                where = mesh_file.document.span(("agents", name, "tool_categories", index))
                yield Problem("unknown-tool", text, where, did_you_mean(category, known), "warning")


def _check_tools(mesh_file: MeshFile, agency: Agency) -> Iterator[Problem]:
    """Yield probably misspelt tools of agents, and registered tools that no agent uses.

    Other unregistered tools are not reported: a scenario answers for them.
    """
    agents = {name: agent for name, agent in mesh_file.mesh.agents.items() if isinstance(agent, LLMAgent)}
    for name, agent in agents.items():
        for index, tool in enumerate(agent.tools):
            hint = did_you_mean(tool, agency.tools, listing=False)
            if hint and tool not in agency.tools and tool != QUERY_KNOWLEDGE.name:
                text = f"no file of the agency registers the tool '{tool}' of agent '{name}'"
                where = mesh_file.document.span(("agents", name, "tools", index))
                yield Problem("unknown-tool", text, where, hint, "warning")
    had = {tool for name, agent in agents.items() for tool in offered_names(name, agent, agency.tools)}
    for tool in agency.tools:
        if tool not in had:
            text = f"no agent has the tool '{tool}', which the agency registers"
            yield Problem("unknown-tool", text, mesh_file.document.span(("auto_discover",)), "", "warning")
