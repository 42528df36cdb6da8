"""The tools of skills: the seven tools that find and load skills, and the tools that skills bring."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from harness.dialects.sherma.skills import CardMCPServer, Fetch, Skill, SkillNotFound, Skills
from harness.dialects.sherma.tools import Origin, Tool, mcp_tool, python_tool
from harness.dialects.sherma.visit import Visit
from harness.engine.context import NodeContext
from harness.graph.effects import MCPEndpoint, http_call


async def register_tools(visit: Visit, skill: Skill) -> list[str]:
    """Register the tools of a skill, and return their ids.

    Raises:
        SkillNotFound: an MCP server of the skill cannot be used.
    """
    ids = skill.tool_ids
    for server in skill.card.mcps.values():
        endpoint = _endpoint(server)
        try:
            listed = await visit.ctx.run.world.mcp_tools(endpoint)
        except Exception as error:
            if visit.ctx.is_fatal(error):
                raise
            raise SkillNotFound(
                f"MCP server '{server.id}' of skill '{skill.id}' cannot be used: {error}"
            ) from error
        for tool in listed:
            visit.session.tools.add(mcp_tool(endpoint, server.version, "", tool))
            ids.append(tool.name)
    return ids


def _endpoint(server: CardMCPServer) -> MCPEndpoint:
    return MCPEndpoint(server.id, server.transport.replace("-", "_"), server.url)


def skill_tools(skills: Skills) -> list[Tool]:
    """Return the seven tools of progressive disclosure. They are native: they need no stub."""

    async def no_fetch(url: str) -> str:
        raise SkillNotFound(f"nothing to fetch {url} with")

    def tool(name: str, function: Any) -> Tool:
        return python_tool(
            name,
            "*",
            function,
            native=lambda ctx: _skill_functions(skills, make_fetch(ctx))[name],
            origin=Origin.SKILL,
        )

    return [tool(name, function) for name, function in _skill_functions(skills, no_fetch).items()]


def make_fetch(ctx: NodeContext) -> Fetch:
    """Return a function that fetches text over HTTP, as effects of a node."""

    async def fetch(url: str) -> str:
        hint = f"or give the skill a card in a file: {url}"
        call = http_call("GET", url, hint=hint)
        reply = await ctx.perform(call)
        if reply.status >= 400:
            raise SkillNotFound(f"{url} answers with status {reply.status}")
        return str(reply.text)

    return fetch


def _skill_functions(skills: Skills, fetch: Fetch) -> dict[str, Callable[..., Awaitable[Any]]]:
    """Return the seven tools as functions; models see their signatures and docstrings."""

    async def list_skills() -> list[dict[str, str]]:
        """List all available skills with their id, version, name and description."""
        return skills.listed()

    async def load_skill_md(skill_id: str, version: str = "*") -> str:
        """Load the SKILL.md of a skill, and with it the tools of the skill."""
        return await skills.get(skill_id, version).text("SKILL.md", fetch)

    async def unload_skill(skill_id: str, version: str = "*") -> str:
        """Unload a skill that is no longer needed; its tools can then no longer be called."""
        ids = skills.get(skill_id, version).tool_ids
        gone = f"Unbound tools: {', '.join(ids)}" if ids else "It had no tools."
        return f"Skill '{skill_id}' unloaded. {gone}"

    async def list_skill_resources(skill_id: str, version: str = "*") -> list[str]:
        """List the reference files of a skill."""
        return skills.get(skill_id, version).files_under("references/")

    async def load_skill_resource(skill_id: str, resource_path: str, version: str = "*") -> str:
        """Load a reference file of a skill."""
        return await _listed_file(skills.get(skill_id, version), resource_path, "references/", fetch)

    async def list_skill_assets(skill_id: str, version: str = "*") -> list[str]:
        """List the assets of a skill."""
        return skills.get(skill_id, version).files_under("assets/")

    async def load_skill_asset(skill_id: str, asset_path: str, version: str = "*") -> str:
        """Load an asset of a skill."""
        return await _listed_file(skills.get(skill_id, version), asset_path, "assets/", fetch)

    functions = (
        list_skills,
        load_skill_md,
        unload_skill,
        list_skill_resources,
        load_skill_resource,
        list_skill_assets,
        load_skill_asset,
    )
    return {function.__name__: function for function in functions}


async def _listed_file(skill: Skill, name: str, prefix: str, fetch: Fetch) -> str:
    """Return the text of a listed file, or an error text that names the listed files."""
    available = skill.files_under(prefix)
    if name not in available:
        return f"Error: '{name}' not found. Available: {', '.join(available) or 'none'}"
    return await skill.text(name, fetch)
