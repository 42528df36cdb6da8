"""The responder of MCP calls: scripted servers over the real protocol, in memory, and real or recorded ones."""

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
from harness.source.suggest import did_you_mean
from harness.world.backend import Backend
from harness.world.mcp.connect import connect
from harness.world.mcp.fake import fake_session
from harness.world.mcp.stubs import MCPStubs
from harness.world.mcp.tools import MCPFailure, MCPResult, MCPSession
from harness.world.responder import Responder
from harness.world.spec import WorldSpec
from harness.world.unscripted import shortest_server, unscripted

# The effect and state behind a call on its way through the protocol. The fake answers in the context of
# the task that called.
_calling: ContextVar[tuple[MCPCall, State]] = ContextVar("_calling")


class MCPServers(Responder):
    """What a scenario says about MCP servers, and the open sessions.

    A server is connected to when it is first asked, in whichever task that is. Servers that the scenario calls
    real, or says nothing about, answer in a session from `backend`, if there is one.
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
        """True if the scenario says anything about the server of this call."""
        return isinstance(effect, MCPCall) and self._stubs.name_of(effect.endpoint) in self._stubs.servers

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Call a tool through the protocol; a scripted server answers from its stubs.

        None when the effect is no MCP call, or nobody has a session with its server.

        Raises:
            UnscriptedCall: none of the tool's stubs answers.
            WorldError: it is real, and wants a client certificate; or it was recorded, and answers something else.
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
        """The error for a call of a server that nobody has a session with."""
        return unscripted(effect, None, self._hint(effect.endpoint)) if isinstance(effect, MCPCall) else None

    async def tools(self, endpoint: MCPEndpoint) -> Sequence[ToolSpec]:
        """The tools of a server, from the server itself.

        Raises:
            UnscriptedCall: the scenario says nothing about this server.
            WorldError: it is real, and wants a client certificate; or it was recorded, and answers something else.
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
        """One text for each stub that is left over."""
        return self._stubs.unused()

    def undecided(self) -> list[tuple[str, Span | None]]:
        """Of each stub whose `when` never had a value: why, and where it is."""
        return self._stubs.undecided()

    async def close(self) -> None:
        """Close every session, from any task. None is opened any more."""
        self._closed = True
        self._open.clear()
        await self._sessions.aclose()

    async def _session(self, endpoint: MCPEndpoint) -> MCPSession | None:
        """The session with a server, opened by the first caller; the others wait for it. None: nobody has one."""
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
        """A session with a server, to be entered; None when nobody has one."""
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
