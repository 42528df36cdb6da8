"""The tool universe of an agent, and the whitelists that select from it. spec: "The `tools` field (whitelist)".

The universe consists of the `global_tools`, by the names of their files; the functions of the agent's own
`tools.sh`, `tools.py` or `tools.ts`; and the functions of its `mcp_servers`. A server is asked for its functions
only when a whitelist needs them. Skills, from the successor of Loki, are tools by which a model lists, loads and
unloads them; the scenario answers for these, and decides what a skill says.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.dialects.kit.tool_calls import ToolReportedError, mcp_texts
from harness.dialects.loki.document import GraphFile, LLMNode
from harness.dialects.loki.templates import text_of
from harness.dialects.loki.tool_files import SUFFIXES, global_tool, tools_in
from harness.dialects.request import LoadRequest
from harness.engine.context import NodeContext, RunContext
from harness.errors import HarnessError, Problem
from harness.graph.effects import MCPCall, MCPEndpoint, ToolCall, ToolSpec
from harness.graph.model import Outside
from harness.source.document import Document

SERVER: Final = "mcp:"
_WARNED: Final = "warnings"
"""The resource of a simulation with the warnings that `warn_once` has raised."""
_SHARED: Final = "functions/tools"
"""The folder of `global_tools` files, beside the folder of agents."""


Functions = Mapping[str, Collection[str]]
"""The names of the functions of MCP servers, by server."""


class UnknownTool(HarnessError):
    """A whitelist entry that is not in the universe. `known` are the possible entries."""

    code = "unknown-tool"

    def __init__(self, message: str, known: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.known = tuple(known)


@dataclass(frozen=True)
class Tool:
    """A tool for models. `call` runs it and returns its result as text. `origin` is where it comes from, in words."""

    spec: ToolSpec
    origin: str
    call: Callable[[Mapping[str, Any], NodeContext], Awaitable[str]]


def warn_once(run: RunContext, text: str) -> None:
    """Add a warning to the trace, unless the simulation has it already, from any of its graphs."""
    raised: set[str] = run.simulation.resources.setdefault(_WARNED, set())
    if text not in raised:
        raised.add(text)
        run.warn(text)


@dataclass(frozen=True)
class ToolUniverse:
    """The tools of one agent.

    local    the tools from files, by name
    servers  the ids of its MCP servers
    unread   the entries of `global_tools` whose files do not exist or may not be read
    env      the environment variables of the tools from files
    """

    local: Mapping[str, ToolSpec]
    servers: Sequence[str]
    unread: Sequence[str]
    env: Mapping[str, str]

    @classmethod
    def of(
        cls, global_tools: Sequence[str], servers: Sequence[str], request: LoadRequest, env: Mapping[str, str]
    ) -> ToolUniverse:
        """Read the tools of the agent whose manifest a request names.

        Raises:
            ManifestError: a tool file cannot be read.
        """

        def is_readable(path: Path) -> bool:
            request.record(path)
            return path.suffix in SUFFIXES and os.path.isfile(path) and request.may_read(path.resolve())

        folder = request.path.resolve().parent
        local: dict[str, ToolSpec] = {}
        unread = []
        for entry in global_tools:
            path, name = _shared_folder(request) / entry, Path(entry).stem
            if is_readable(path):
                local[name] = global_tool(name, path)
            else:
                local[name] = ToolSpec(name, "", {"type": "object"})
                unread.append(entry)
        for suffix in SUFFIXES:
            if is_readable(own := folder / f"tools{suffix}"):
                local.update((tool.name, tool) for tool in tools_in(own))
        return cls(local, servers, unread, env)

    def warnings(self, document: Document) -> Iterator[Problem]:
        """Yield a warning of each tool in `document`, the agent's manifest, whose parameters are unknown."""
        for index, entry in enumerate(document.value.get("global_tools") or ()):
            if entry in self.unread:
                text = f"{_SHARED}/{entry} beside the agents cannot be read: models get the tool without parameters"
                yield Problem("unread-tool", text, document.span(("global_tools", index)), severity="warning")

    def lacks(self, entry: str, functions: Functions) -> bool | None:
        """True if a whitelist entry is not in the universe; None if only a run can know.

        `functions` are those of the MCP servers that are known. A plain name may be a function of another one.
        """
        if entry in self.names():
            return False
        if entry.startswith(SERVER):
            return True
        if any(entry in functions.get(server, ()) for server in self.servers):
            return False
        return True if functions.keys() >= {*self.servers} else None

    def names(self) -> list[str]:
        """Return the possible whitelist entries that are known without asking servers."""
        return [*self.local, *(SERVER + server for server in self.servers)]

    def names_by_kind(self) -> dict[str, list[str]]:
        """Return the names of the tools and servers, by the kind of effect that calls them."""
        return {"tool": list(self.local), "server": list(self.servers)}

    def outside(self, whitelists: Iterable[Iterable[str]]) -> list[Outside]:
        """Return the tools and servers that these whitelists need, which only a scenario answers."""
        entries = {entry for whitelist in whitelists for entry in whitelist}
        asks_all = any(entry not in self.names() for entry in entries)
        return [
            *(Outside("tool", name, asked=(name,)) for name in self.local if name in entries),
            *(Outside("server", name) for name in self.servers if asks_all or SERVER + name in entries),
        ]

    async def select(self, whitelist: Iterable[str], run: RunContext) -> list[Tool]:
        """Return the tools that a whitelist lists, in its order, each once.

        Of several tools of one name, the first is returned. A warning says so.

        Raises:
            UnknownTool: an entry is not in the universe.
        """
        tools: dict[str, Tool] = {}
        for entry in whitelist:
            for tool in await self._tools_of_entry(entry, run):
                first = tools.setdefault(tool.spec.name, tool)
                if first.origin != tool.origin:
                    text = f"'{tool.spec.name}' is a tool of {first.origin} and of {tool.origin}"
                    warn_once(run, f"{text}: models get that of {first.origin}")
        return list(tools.values())

    async def _tools_of_entry(self, entry: str, run: RunContext) -> list[Tool]:
        server = entry.removeprefix(SERVER)
        if entry.startswith(SERVER) and server in self.servers:
            return await _mcp_tools(server, run)
        if entry in self.local:
            return [local_tool(self.local[entry], self.env)]
        known, found = self.names(), list[Tool]()
        for server in self.servers:
            if found and not run.world.answers_for(MCPCall(name=entry, endpoint=_endpoint(server))):
                continue
            try:
                functions = await _mcp_tools(server, run)
            except Exception:
                if found:  # the server is asked only for another function of this name
                    continue
                raise
            found += [tool for tool in functions if tool.spec.name == entry]
            known += [tool.spec.name for tool in functions]
        if not found:
            raise UnknownTool(f"the agent has no tool '{entry}'", known)
        return found


def _shared_folder(request: LoadRequest) -> Path:
    return request.path.resolve().parent.parent.parent / _SHARED


def shared_file(tool: str, request: LoadRequest) -> str | None:
    """Return the file in the shared folder that defines a tool of this name; None if there is none."""
    names = (f"{tool}{suffix}" for suffix in SUFFIXES if "/" not in tool)
    return next((name for name in names if os.path.isfile(_shared_folder(request) / name)), None)


def local_tool(spec: ToolSpec, env: Mapping[str, str]) -> Tool:
    """Return a tool of the agent itself, for which the scenario answers."""

    async def call(args: Mapping[str, Any], ctx: NodeContext) -> str:
        return text_of(await ctx.perform(ToolCall(name=spec.name, args=args, env=env)))

    return Tool(spec, "the agent itself", call)


def _endpoint(server: str) -> MCPEndpoint:
    return MCPEndpoint(id=server, transport="stdio")


async def _mcp_tools(server: str, run: RunContext) -> list[Tool]:
    endpoint = _endpoint(server)
    return [_mcp_tool(endpoint, spec) for spec in await run.world.mcp_tools(endpoint)]


def _mcp_tool(endpoint: MCPEndpoint, spec: ToolSpec) -> Tool:
    async def call(args: Mapping[str, Any], ctx: NodeContext) -> str:
        result = await ctx.perform(MCPCall(name=spec.name, endpoint=endpoint, args=args))
        texts = "\n".join(mcp_texts(result.content))
        if result.is_error:
            raise ToolReportedError(texts or f"{spec.name} failed")
        return texts or text_of(result.structured)

    return Tool(spec, f"the MCP server '{endpoint.id}'", call)


_NAMED: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}
SKILL_TOOLS: Final = (
    ToolSpec("skill__list", "List the skills that can be loaded.", {"type": "object", "properties": {}}),
    ToolSpec("skill__load", "Load a skill.", _NAMED),
    ToolSpec("skill__unload", "Unload a skill.", _NAMED),
)


@dataclass(frozen=True)
class Skills:
    """The skills of an llm node. `hint` is what its model is told of them."""

    names: tuple[str, ...] = ()
    hint: str = ""

    @classmethod
    def of(cls, node: LLMNode, graph: GraphFile) -> Skills:
        """Return the skills of a node: those that it names, else those of its graph, unless they are turned off."""
        names = graph.enabled_skills if node.enabled_skills is None else node.enabled_skills
        if False in (graph.skills_enabled, node.skills_enabled) or not names:
            return cls()
        inject = [each.inject_skill_instructions for each in (node, graph)]
        told = next((each for each in inject if each is not None), True)
        hint = node.skill_instructions or graph.skill_instructions or ""
        return cls(tuple(names), hint if told else "")

    def tools(self, env: Mapping[str, str]) -> list[Tool]:
        """Return the tools for its model."""
        return [local_tool(spec, env) for spec in SKILL_TOOLS] if self.names else []
