"""The tools a skill brings when it is loaded: local ones, and those of its MCP servers."""

from __future__ import annotations

from harness.dialects.sherma.skills import CardMCPServer, Skill
from harness.dialects.sherma.tools import mcp_tool
from harness.dialects.sherma.visit import Visit
from harness.graph.effects import MCPEndpoint


async def register_tools(visit: Visit, skill: Skill) -> list[str]:
    """The ids of a skill's tools, all registered. A server that cannot be reached is skipped with a warning."""
    ids = skill.tool_ids
    for server in skill.card.mcps.values():
        try:
            listed = await visit.ctx.run.world.mcp_tools(_endpoint(server))
        except Exception as error:
            if visit.ctx.must_end(error):
                raise
            visit.ctx.warn(f"MCP server '{server.id}' of skill '{skill.id}' is skipped: {error}")
            continue
        for tool in listed:
            visit.session.tools.add(mcp_tool(server.id, server.version, "", tool))
            ids.append(tool.name)
    return ids


def _endpoint(server: CardMCPServer) -> MCPEndpoint:
    return MCPEndpoint(server.id, server.transport.replace("-", "_"), server.url)
