"""The MCP servers of a world: scripted ones over the real protocol, in memory, and real ones."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from harness.errors import UnscriptedCall
from harness.graph.effects import Answer, MCPCall, MCPEndpoint, ToolSpec
from harness.graph.model import State
from harness.source.suggest import did_you_mean
from harness.world.backend import Backend
from harness.world.failures import to_exception
from harness.world.mcp.connect import connect
from harness.world.mcp.fake import content_result, error_result, fake_session, structured_result, text_result
from harness.world.mcp.tools import MCPFailure, MCPResult, MCPSession, MCPTool
from harness.world.spec import MCPServer, Stub
from harness.world.stubs import StubList

# The effect and state behind a call on its way through the protocol. The fake answers in the context of
# the task that asked.
_asking: ContextVar[tuple[MCPCall, State]] = ContextVar("_asking")


class MCPServers:
    """What a scenario says about MCP servers, and the open sessions.

    A server is connected to when it is first asked, in whichever task that is. Servers that the scenario calls
    real, or says nothing about, answer in a session from `backend`, if it has one.
    """

    def __init__(self, backend: Backend | None = None) -> None:
        self._backend = backend
        self._servers: dict[str, MCPServer] = {}
        self._stubs: dict[tuple[str, str], StubList] = {}
        self._open: dict[str, MCPSession] = {}
        self._opening: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._sessions = AsyncExitStack()
        self._closed = False

    def put_in_front(self, servers: Mapping[str, MCPServer]) -> None:
        """Add servers, or more stubs in front of the tools of servers that are there.

        A turn's latency and error count from there on; tools it adds to a server in use are not listed again.
        """
        for name, server in servers.items():
            known_tools = self._servers[name].tools if name in self._servers else ()
            tools = {tool.name: tool for tool in (*known_tools, *server.tools)}
            self._servers[name] = replace(server, tools=tuple(tools.values()))
            for tool in server.tools:
                known = self._stubs.get((name, tool.name))
                if known is None:
                    self._stubs[name, tool.name] = StubList(tool.stubs, f"mcp.{name}.{tool.name}")
                else:
                    known.put_in_front(tool.stubs)

    def knows(self, name: str) -> bool:
        """Whether the scenario says anything about this server."""
        return name in self._servers

    async def tools(self, endpoint: MCPEndpoint) -> Sequence[ToolSpec]:
        """The tools of a server, from the server itself.

        Raises:
            UnscriptedCall: the scenario says nothing about this server.
            WorldError: it is real, and wants a client certificate; or it was recorded, and answers something else.
            Exception: the server cannot be reached.
        """
        if (failure := self._failure(endpoint)) is not None:
            raise failure
        session = await self._session(endpoint, f"MCP server {endpoint.id!r}")
        tools = await session.list_tools()
        return [ToolSpec(tool.name, tool.description, tool.input_schema) for tool in tools]

    async def call(self, effect: MCPCall, state: State) -> Answer:
        """Call a tool through the protocol; a scripted server answers from its stubs.

        Raises:
            UnscriptedCall: the scenario says nothing about this server, or none of the tool's stubs answers.
            WorldError: it is real, and wants a client certificate; or it was recorded, and answers something else.
            MCPFailure: the server cannot be reached, or has no such tool.
        """
        if (failure := self._failure(effect.endpoint)) is not None:
            return Answer(error=failure)
        session = await self._session(effect.endpoint, _asked(effect), effect.hint)
        asking = _asking.set((effect, state))
        try:
            return Answer(value=await session.call_tool(effect.name, effect.args))
        finally:
            _asking.reset(asking)

    def _failure(self, endpoint: MCPEndpoint) -> Exception | None:
        """How a scripted server fails that cannot be reached."""
        server = self._servers.get(endpoint.id)
        return to_exception(server.error) if server is not None and server.error is not None else None

    async def _session(self, endpoint: MCPEndpoint, asked: str, hint: str = "") -> MCPSession:
        """The session with a server, opened by the first who asks; the others wait for it."""
        async with self._opening[endpoint.id]:
            if endpoint.id not in self._open:
                context = self._connection(endpoint)
                if context is None:
                    raise self._unscripted(endpoint, asked, hint)
                async with AsyncExitStack() as opening:
                    session = await opening.enter_async_context(context)
                    if self._closed:
                        raise MCPFailure(f"MCP server {endpoint.id!r} is asked after the end of the run")
                    self._sessions.push_async_callback(opening.pop_all().aclose)
                self._open[endpoint.id] = session
            return self._open[endpoint.id]

    def _connection(self, endpoint: MCPEndpoint) -> AbstractAsyncContextManager[MCPSession] | None:
        """A session with a server, to be entered; None when nobody has one."""
        server = self._servers.get(endpoint.id)
        if server is not None and not server.real:
            return self._scripted(endpoint.id, server)
        session = self._backend.session(endpoint) if self._backend is not None else None
        return connect(endpoint) if session is None and server is not None else session

    def _unscripted(self, endpoint: MCPEndpoint, asked: str, hint: str) -> UnscriptedCall:
        near = did_you_mean(endpoint.id, self._servers)
        add = f"add `{endpoint.id}` under `mcp:`" + (f" ({near})" if near else "")
        return UnscriptedCall(asked, None, ", ".join(filter(None, (add, hint))))

    def _scripted(self, name: str, server: MCPServer) -> AbstractAsyncContextManager[MCPSession]:
        tools = [MCPTool(tool.name, tool.description, dict(tool.input_schema)) for tool in server.tools]

        async def answer(tool: str, args: dict[str, Any]) -> MCPResult:
            effect, state = _asking.get()
            stubs = self._stubs[name, tool]
            stub = stubs.take(effect, state)
            if stub is None:
                hint = ", ".join(filter(None, (f"add a stub under `mcp.{name}`", effect.hint)))
                raise UnscriptedCall(_asked(effect), stubs.nearest(effect, state), hint)
            await asyncio.sleep(self._servers[name].latency_s + stub.latency_s)
            return _result(stub)

        return fake_session(name, tools, answer)

    def unused(self) -> list[str]:
        """One text for each stub that is left over."""
        return [text for stubs in self._stubs.values() for text in stubs.unused()]

    async def close(self) -> None:
        """Close every session, from any task. None is opened any more."""
        self._closed = True
        self._open.clear()
        await self._sessions.aclose()


def _asked(effect: MCPCall) -> str:
    return f"MCP tool {effect.name!r} of server {effect.server!r} with {dict(effect.args)!r}"


def _result(stub: Stub) -> MCPResult:
    if stub.error is not None:
        return error_result(str(to_exception(stub.error)))
    if "content" in stub.answer:
        return content_result(stub.answer["content"])
    value = stub.answer.get("return")
    return text_result(value) if isinstance(value, str) else structured_result(value)
