"""The tools of an agent, and the whitelists that select from them. spec: "The `tools` field (whitelist)".

The universe of an agent is its `global_tools`, by the names of their files; the functions of its own `tools.sh`,
`tools.py` or `tools.ts`; and the functions of its `mcp_servers`, which are asked for them only when a whitelist needs
them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.dialects.kit.tool_calls import ToolReportedError, mcp_texts
from harness.dialects.loki.templates import compact_json
from harness.dialects.loki.tool_files import SUFFIXES, global_tool, tools_in
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext, RunContext
from harness.errors import HarnessError
from harness.graph.effects import MCPCall, MCPEndpoint, ToolCall, ToolSpec
from harness.graph.to_json import to_json

_SERVER: Final = "mcp:"


class UnknownTool(HarnessError):
    """A whitelist with an entry that the agent does not have."""

    code = "unknown-tool"


@dataclass(frozen=True)
class Tool:
    """A tool that a model may be given. `call` performs it and returns its result as text."""

    spec: ToolSpec
    call: Callable[[Mapping[str, Any], NodeContext], Awaitable[str]]


class ToolUniverse:
    """The tools of one agent.

    local    those in files, by name
    servers  the ids of its MCP servers
    """

    def __init__(self, local: Mapping[str, ToolSpec], servers: Sequence[str]) -> None:
        self.local, self.servers = local, tuple(servers)

    @classmethod
    def of(cls, global_tools: Sequence[str], servers: Sequence[str], request: LoadRequest) -> ToolUniverse:
        """The tools of the agent whose folder the manifest of the request is in.

        Raises:
            ManifestError: a file of tools cannot be read.
        """
        folder = request.path.parent
        shared = folder.parent.parent / "functions" / "tools"
        local: dict[str, ToolSpec] = {}
        for entry in global_tools:
            path = shared / entry
            name = Path(entry).stem
            readable = path.suffix in SUFFIXES and path.is_file() and request.may_read(path.resolve())
            request.record(path)
            local[name] = global_tool(name, path) if readable else ToolSpec(name, "", {"type": "object"})
        for suffix in SUFFIXES:
            own = folder / f"tools{suffix}"
            request.record(own)
            if own.is_file() and request.may_read(own.resolve()):
                local.update((tool.name, tool) for tool in tools_in(own))
        return cls(local, servers)

    def unknown(self, whitelist: Iterable[str]) -> list[str]:
        """The entries that the agent cannot have; with MCP servers, a plain name may be a function of theirs."""
        return [
            entry
            for entry in whitelist
            if (entry.startswith(_SERVER) and entry.removeprefix(_SERVER) not in self.servers)
            or (not entry.startswith(_SERVER) and entry not in self.local and not self.servers)
        ]

    def names(self) -> list[str]:
        """What a whitelist may have, as far as it is known without asking servers."""
        return [*self.local, *(_SERVER + server for server in self.servers)]

    async def all(self, run: RunContext) -> list[Tool]:
        """Every tool of the agent."""
        return await self.chosen(self.names(), run)

    async def chosen(self, whitelist: Iterable[str], run: RunContext) -> list[Tool]:
        """The tools that a whitelist lists, in its order, each once.

        Raises:
            UnknownTool: the agent does not have one of them.
        """
        tools: dict[str, Tool] = {}
        for entry in whitelist:
            for tool in await self._entry(entry, run):
                tools.setdefault(tool.spec.name, tool)
        return list(tools.values())

    async def _entry(self, entry: str, run: RunContext) -> list[Tool]:
        server = entry.removeprefix(_SERVER)
        if entry.startswith(_SERVER) and server in self.servers:
            return await _functions(server, run)
        if entry in self.local:
            return [_local(self.local[entry])]
        for server in self.servers:
            if found := [tool for tool in await _functions(server, run) if tool.spec.name == entry]:
                return found
        raise UnknownTool(f"the agent has no tool '{entry}'")


def _local(spec: ToolSpec) -> Tool:
    async def call(args: Mapping[str, Any], ctx: NodeContext) -> str:
        return _text(await ctx.perform(ToolCall(name=spec.name, args=args)))

    return Tool(spec, call)


async def _functions(server: str, run: RunContext) -> list[Tool]:
    endpoint = MCPEndpoint(id=server, transport="stdio")
    return [_function(endpoint, spec) for spec in await run.world.mcp_tools(endpoint)]


def _function(endpoint: MCPEndpoint, spec: ToolSpec) -> Tool:
    async def call(args: Mapping[str, Any], ctx: NodeContext) -> str:
        result = await ctx.perform(MCPCall(name=spec.name, endpoint=endpoint, args=args))
        texts = "\n".join(mcp_texts(result.content))
        if result.is_error:
            raise ToolReportedError(texts or f"{spec.name} failed")
        return texts or _text(result.structured)

    return Tool(spec, call)


def _text(result: Any) -> str:
    """What a tool returned, as text for a model."""
    return result if isinstance(result, str) else compact_json(to_json(result))
