"""The tools of an agent, and the whitelists that select from them. spec: "The `tools` field (whitelist)".

The universe of an agent is its `global_tools`, by the names of their files; the functions of its own `tools.sh`,
`tools.py` or `tools.ts`; and the functions of its `mcp_servers`, which are asked for them only when a whitelist needs
them.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.dialects.kit.tool_calls import ToolReportedError, mcp_texts
from harness.dialects.loki.json_text import text_of
from harness.dialects.loki.tool_files import SUFFIXES, global_tool, tools_in
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext, RunContext
from harness.errors import HarnessError, Problem
from harness.graph.effects import MCPCall, MCPEndpoint, ToolCall, ToolSpec
from harness.source.document import Document

SERVER: Final = "mcp:"
_SHARED: Final = "functions/tools"
"""Where the files of `global_tools` are, beside the folder of agents."""


class UnknownTool(HarnessError):
    """A whitelist with an entry that the agent does not have. `known` is what it could have had."""

    code = "unknown-tool"

    def __init__(self, message: str, known: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.known = tuple(known)


@dataclass(frozen=True)
class Tool:
    """A tool that a model may be given. `call` performs it and returns its result as text."""

    spec: ToolSpec
    call: Callable[[Mapping[str, Any], NodeContext], Awaitable[str]]


class ToolUniverse:
    """The tools of one agent.

    local       those in files, by name
    servers     the ids of its MCP servers
    unread      the entries of `global_tools` whose files are not there, or may not be read
    """

    def __init__(
        self, local: Mapping[str, ToolSpec], servers: Sequence[str], unread: Sequence[str] = ()
    ) -> None:
        self.local, self.servers, self.unread = local, tuple(servers), tuple(unread)

    @classmethod
    def of(cls, global_tools: Sequence[str], servers: Sequence[str], request: LoadRequest) -> ToolUniverse:
        """The tools of the agent whose folder the manifest of the request is in.

        Raises:
            ManifestError: a file of tools cannot be read.
        """

        def is_readable(path: Path) -> bool:
            request.record(path)
            return path.suffix in SUFFIXES and os.path.isfile(path) and request.may_read(path.resolve())

        folder = request.path.resolve().parent
        local: dict[str, ToolSpec] = {}
        unread = []
        for entry in global_tools:
            path, name = _shared(request) / entry, Path(entry).stem
            if is_readable(path):
                local[name] = global_tool(name, path)
            else:
                local[name] = ToolSpec(name, "", {"type": "object"})
                unread.append(entry)
        for suffix in SUFFIXES:
            if is_readable(own := folder / f"tools{suffix}"):
                local.update((tool.name, tool) for tool in tools_in(own))
        return cls(local, servers, unread)

    def warnings(self, document: Document) -> Iterator[Problem]:
        """The tools of the agent in `document` whose parameters are not known."""
        for at, entry in enumerate(document.value.get("global_tools") or ()):
            if entry in self.unread:
                text = f"{_SHARED}/{entry} beside the agents cannot be read: models get the tool without parameters"
                yield Problem("unread-tool", text, document.span(("global_tools", at)), severity="warning")

    def unknown(self, whitelist: Iterable[str]) -> list[str]:
        """The entries that the agent cannot have; with MCP servers, a plain name may be a function of theirs."""
        return [
            entry
            for entry in whitelist
            if (entry.startswith(SERVER) and entry.removeprefix(SERVER) not in self.servers)
            or (not entry.startswith(SERVER) and entry not in self.local and not self.servers)
        ]

    def names(self) -> list[str]:
        """What a whitelist may have, as far as it is known without asking servers."""
        return [*self.local, *(SERVER + server for server in self.servers)]

    def called(self) -> dict[str, list[str]]:
        """The names of its tools and servers, by kind of effect."""
        return {"tool": list(self.local), "server": list(self.servers)}

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
        server = entry.removeprefix(SERVER)
        if entry.startswith(SERVER) and server in self.servers:
            return await _functions(server, run)
        if entry in self.local:
            return [_local(self.local[entry])]
        known = self.names()
        for server in self.servers:
            functions = await _functions(server, run)
            if found := [tool for tool in functions if tool.spec.name == entry]:
                return found
            known += [tool.spec.name for tool in functions]
        raise UnknownTool(f"the agent has no tool '{entry}'", known)


def _shared(request: LoadRequest) -> Path:
    return request.path.resolve().parent.parent.parent / _SHARED


def shared_file(tool: str, request: LoadRequest) -> str | None:
    """The file that would make a tool of this name one of `global_tools`; None if there is none."""
    names = (f"{tool}{suffix}" for suffix in SUFFIXES if "/" not in tool)
    return next((name for name in names if os.path.isfile(_shared(request) / name)), None)


def _local(spec: ToolSpec) -> Tool:
    async def call(args: Mapping[str, Any], ctx: NodeContext) -> str:
        return text_of(await ctx.perform(ToolCall(name=spec.name, args=args)))

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
        return texts or text_of(result.structured)

    return Tool(spec, call)
