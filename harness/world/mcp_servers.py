"""The MCP servers of a world: scripted ones over the real protocol, in memory, and real ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from harness.errors import UnscriptedCall
from harness.graph.clock import in_real_time, real_wait
from harness.graph.effects import Answer, MCPCall, MCPEndpoint, ToolSpec
from harness.graph.model import State
from harness.source.suggest import did_you_mean
from harness.world.failures import to_exception
from harness.world.mcp_fake import content_result, error_result, fake_session, structured_result, text_result
from harness.world.mcp_sdk import connect_http, connect_sse, connect_stdio
from harness.world.mcp_tools import MCPResult, MCPSession, MCPTool
from harness.world.spec import MCPServer, Stub
from harness.world.stubs import StubList

# The effect and state behind a call on its way through the protocol. The fake answers in the context of
# the task that asked.
_asking: ContextVar[tuple[MCPCall, State]] = ContextVar("_asking")


class MCPServers:
    """What a scenario says about MCP servers, and the open sessions."""

    def __init__(self) -> None:
        self._servers: dict[str, MCPServer] = {}
        self._stubs: dict[tuple[str, str], StubList] = {}
        self._open: dict[str, _Open] = {}
        self._sessions = AsyncExitStack()

    def put_in_front(self, servers: Mapping[str, MCPServer]) -> None:
        """Add servers, or more stubs in front of the tools of servers that are there.

        A turn's latency and error count from there on; tools it adds to a server in use are not listed again.
        """
        for name, server in servers.items():
            self._servers[name] = server
            for tool in server.tools:
                known = self._stubs.get((name, tool.name))
                if known is None:
                    self._stubs[name, tool.name] = StubList(tool.stubs, f"mcp.{name}.{tool.name}")
                else:
                    known.put_in_front(tool.stubs)

    async def tools(self, endpoint: MCPEndpoint) -> Sequence[ToolSpec]:
        """The tools of a server, from the server itself."""
        opened = await self._opened(endpoint)
        with _real_wait_if(opened.real):
            tools = await opened.session.list_tools()
        return [ToolSpec(tool.name, tool.description, tool.input_schema) for tool in tools]

    async def call(self, effect: MCPCall, state: State) -> Answer:
        """Call a tool through the protocol; a scripted server answers from its stubs."""
        opened = self._open[effect.server]
        error = self._servers[effect.server].error if effect.server in self._servers else None
        if error is not None:
            return Answer(error=to_exception(error))
        asking = _asking.set((effect, state))
        try:
            with _real_wait_if(opened.real):
                return Answer(value=await opened.session.call_tool(effect.name, effect.args))
        finally:
            _asking.reset(asking)

    async def _opened(self, endpoint: MCPEndpoint) -> _Open:
        if endpoint.id not in self._open:
            server = self._servers.get(endpoint.id)
            if server is None:
                near = did_you_mean(endpoint.id, self._servers) if self._servers else ""
                hint = f"add `{endpoint.id}` under `mcp:`" + (f" ({near})" if near else "")
                raise UnscriptedCall(f"MCP server {endpoint.id!r}", None, hint)
            if server.error is not None:
                raise to_exception(server.error)
            context = _real(endpoint) if server.real else self._scripted(endpoint.id, server)
            with _real_wait_if(server.real):
                session = await self._sessions.enter_async_context(context)
            self._open[endpoint.id] = _Open(session, server.real)
        return self._open[endpoint.id]

    def _scripted(self, name: str, server: MCPServer) -> AbstractAsyncContextManager[MCPSession]:
        tools = [MCPTool(tool.name, tool.description, dict(tool.input_schema)) for tool in server.tools]

        async def answer(tool: str, args: dict[str, Any]) -> MCPResult:
            effect, state = _asking.get()
            stubs = self._stubs[name, tool]
            stub = stubs.take(effect, state)
            if stub is None:
                request = f"MCP tool {tool!r} of server {name!r} with {args!r}"
                raise UnscriptedCall(request, stubs.nearest(effect, state), f"add a stub under `mcp.{name}`")
            await asyncio.sleep(self._servers[name].latency_s + stub.latency_s)
            return _result(stub)

        return fake_session(name, tools, answer)

    def unused(self) -> list[str]:
        """One text for each stub that is left over."""
        return [text for stubs in self._stubs.values() for text in stubs.unused()]

    async def close(self) -> None:
        """Close every session. A real server is given real time to go."""
        with in_real_time() if any(opened.real for opened in self._open.values()) else nullcontext():
            await self._sessions.aclose()
        self._open.clear()


@dataclass(frozen=True)
class _Open:
    """An open session, and whether a real server is behind it."""

    session: MCPSession
    real: bool


def _result(stub: Stub) -> MCPResult:
    if stub.error is not None:
        return error_result(str(to_exception(stub.error)))
    if "content" in stub.answer:
        return content_result(stub.answer["content"])
    value = stub.answer.get("return")
    return text_result(value) if isinstance(value, str) else structured_result(value)


def _real(endpoint: MCPEndpoint) -> AbstractAsyncContextManager[MCPSession]:
    if endpoint.transport == "stdio":
        return connect_stdio(endpoint.command or "", list(endpoint.args), dict(endpoint.env))
    connect = connect_sse if endpoint.transport == "sse" else connect_http
    return connect(endpoint.url or "", dict(endpoint.headers))


def _real_wait_if(real: bool) -> AbstractContextManager[None]:
    """Hold the clock while a real server takes its time."""
    return real_wait() if real else nullcontext()
