"""The responder for MCP calls: scripted servers over the real protocol in memory, and real or recorded servers."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from contextvars import ContextVar
from typing import Any

from harness.errors import Span, UnscriptedCall
from harness.graph.effects import Answer, Effect, MCPCall, MCPEndpoint, ToolSpec
from harness.graph.model import State
from harness.source.display import did_you_mean
from harness.world.backend import Backend
from harness.world.mcp.connect import connect
from harness.world.mcp.fake import fake_session
from harness.world.mcp.stubs import MCPStubs
from harness.world.mcp.tools import MCPFailure, MCPResult, MCPSession
from harness.world.responder import Responder
from harness.world.spec import WorldSpec
from harness.world.unscripted import shortest_server, unscripted

# The effect and the state of a call in progress. The scripted server answers in the context of the calling task.
_calling: ContextVar[tuple[MCPCall, State]] = ContextVar("_calling")


class MCPServers(Responder):
    """The MCP servers of a scenario, and the open sessions.

    A session is opened on the first call of a server, in any task. For servers that the scenario calls real or does
    not mention, the session comes from `backend`, if there is one.
    """

    def __init__(self, backend: Backend | None = None) -> None:
        self._backend = backend
        self._stubs = MCPStubs()
        self._open: dict[str, MCPSession] = {}
        self._opening: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._sessions = AsyncExitStack()
        self._closed = False

    def put_in_front(self, world: WorldSpec) -> None:
        """Add the servers of a turn; see `MCPStubs.put_in_front`."""
        self._stubs.put_in_front(world.mcp)

    def covers(self, effect: Effect) -> bool:
        """True if the scenario has the server of this call."""
        return isinstance(effect, MCPCall) and self._stubs.name_of(effect.endpoint) in self._stubs.servers

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Call a tool through the protocol. A scripted server answers from its stubs.

        Returns None for other kinds of effects, and for servers without a session.

        Raises:
            UnscriptedCall: none of the tool's stubs matches.
            WorldError: a real server requires a client certificate, or no recorded exchange matches.
            MCPFailure: the server cannot be reached, or has no such tool.
        """
        if not isinstance(effect, MCPCall):
            return None
        if (failure := self._stubs.failure(effect.endpoint)) is not None:
            return failure
        session = await self._session(effect.endpoint)
        if session is None:
            return None
        token = _calling.set((effect, state))
        try:
            return Answer(value=await session.call_tool(effect.name, effect.args))
        finally:
            _calling.reset(token)

    def unscripted(self, effect: Effect, state: State) -> UnscriptedCall | None:
        """Return the error for a call of a server without a session; None for other kinds of effects."""
        return unscripted(effect, None, self._hint(effect.endpoint)) if isinstance(effect, MCPCall) else None

    async def tools(self, endpoint: MCPEndpoint) -> Sequence[ToolSpec]:
        """Return the tools of a server, as the server lists them.

        Raises:
            UnscriptedCall: the scenario has no such server, and there is no backend.
            WorldError: a real server requires a client certificate, or no recorded exchange matches.
            Exception: the server cannot be reached.
        """
        failure = self._stubs.failure(endpoint)
        if failure is not None and failure.error is not None:
            await asyncio.sleep(failure.latency_s)
            raise failure.error
        session = await self._session(endpoint)
        if session is None:
            example = shortest_server(endpoint.id)
            raise UnscriptedCall(f"MCP server {endpoint.id!r}", None, self._hint(endpoint), example)
        return [ToolSpec(t.name, t.description, t.input_schema) for t in await session.list_tools()]

    def unused(self) -> list[str]:
        """Return a description of each stub with uses left."""
        return self._stubs.unused()

    def undecided(self) -> list[tuple[str, Span | None]]:
        """Return the reason and the location of each stub whose `when` could never be evaluated."""
        return self._stubs.undecided()

    async def close(self) -> None:
        """Close all sessions, and refuse to open more. May be called from any task."""
        self._closed = True
        self._open.clear()
        await self._sessions.aclose()

    async def _session(self, endpoint: MCPEndpoint) -> MCPSession | None:
        """Return the session with a server, opened by the first caller; None if there can be none."""
        async with self._opening[endpoint.id]:
            if endpoint.id not in self._open:
                context = self._connection(endpoint)
                if context is None:
                    return None
                async with AsyncExitStack() as opening:
                    session = await opening.enter_async_context(context)
                    if self._closed:
                        raise MCPFailure(f"MCP server {endpoint.id!r} is asked after the end of the run")
                    self._sessions.push_async_callback(opening.pop_all().aclose)
                self._open[endpoint.id] = session
            return self._open[endpoint.id]

    def _connection(self, endpoint: MCPEndpoint) -> AbstractAsyncContextManager[MCPSession] | None:
        """Return a new session with a server, as a context manager; None if there can be none."""
        name = self._stubs.name_of(endpoint)
        server = self._stubs.servers.get(name)
        if server is not None and not server.real:
            return self._scripted(name)
        if self._backend is not None:
            return self._backend.session(endpoint)
        return None if server is None else connect(endpoint)

    def _hint(self, endpoint: MCPEndpoint) -> str:
        near = did_you_mean(endpoint.id, self._stubs.servers)
        return f"add `{endpoint.id}` under `mcp:`" + (f" ({near})" if near else "")

    def _scripted(self, name: str) -> AbstractAsyncContextManager[MCPSession]:
        async def answer(_tool: str, _args: dict[str, Any]) -> MCPResult:
            effect, state = _calling.get()
            answer = await self._stubs.answer(effect, state)
            if answer is None:
                raise unscripted(effect, self._stubs.nearest(effect, state), f"add a stub under `mcp.{name}`")
            await asyncio.sleep(answer.latency_s)
            result: MCPResult = answer.value
            return result

        return fake_session(name, self._stubs.tools(name), answer)
