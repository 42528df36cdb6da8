"""The responder for MCP calls: scripted servers over the real protocol in memory, and real or recorded servers."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any

from harness.errors import Nearest, UnscriptedCall
from harness.graph.effects import Effect, MCPCall, MCPEndpoint, ToolSpec
from harness.graph.model import State
from harness.graph.world import Answer
from harness.source.display import did_you_mean
from harness.world.entries import shortest_server, unscripted
from harness.world.mcp.connect import connect
from harness.world.mcp.fake import content_result, error_result, fake_session, structured_result, text_result
from harness.world.mcp.tools import MCPFailure, MCPResult, MCPSession, MCPTool, Sessions, answer_question
from harness.world.responder import Responder
from harness.world.spec import ScriptedAnswer, ScriptedMCPServer, WorldSpec
from harness.world.stub_models import AnyStub, MCPStub
from harness.world.stubs import StubHolder, StubList


class MCPStubs(StubHolder, Responder):
    """The responder for calls of scripted servers. `servers` has all servers of the scenario, including real ones."""

    def __init__(self) -> None:
        self.servers: dict[str, ScriptedMCPServer] = {}
        self._stubs: dict[tuple[str, str], StubList] = {}

    def put_in_front(self, world: WorldSpec) -> None:
        """Add the servers of a turn, or add stubs in front of those of an existing server.

        The turn's latency and error replace those of the server. Tools added to a server in use are not listed.
        """
        for name, server in world.mcp.items():
            known_tools = self.servers[name].tools if name in self.servers else ()
            tools = {tool.name: tool for tool in (*known_tools, *server.tools)}
            self.servers[name] = server.model_copy(update={"tools": [*tools.values()]})
            for tool in server.tools:
                stubs = self._stubs.setdefault((name, tool.name), StubList((), f"mcp.{name}.{tool.name}"))
                stubs.put_in_front(tool.stubs)

    def name_of(self, endpoint: MCPEndpoint) -> str:
        """Return the name of a server in the scenario: its id, or else its alias."""
        return (
            endpoint.alias
            if endpoint.id not in self.servers and endpoint.alias in self.servers
            else endpoint.id
        )

    def listed(self, server: str) -> list[MCPTool]:
        """Return the tools that a scripted server lists."""
        return [
            MCPTool(tool.name, tool.description, dict(tool.input_schema))
            for tool in self.servers[server].tools
        ]

    def failure(self, endpoint: MCPEndpoint) -> ScriptedAnswer | None:
        """Return the error of a scripted server that cannot be reached; None if it can."""
        server = self.servers.get(self.name_of(endpoint))
        if server is None or server.error is None:
            return None
        error, latency_s = server.error.exception(), server.latency
        return ScriptedAnswer(error=error, latency_s=latency_s, source=server, title=server.error.kind)

    async def answer(self, effect: Effect, state: State) -> Answer | None:
        """Return the answer, an `MCPResult`, of the tool's first stub that matches; None if there is none.

        Raises:
            WorldError: the stub's content is not valid in the protocol.
        """
        stubs = self._stub_list(effect)
        stub = None if stubs is None else stubs.consume(effect, state)
        if stub is None or stubs is None or not isinstance(effect, MCPCall):
            return None
        latency_s = self.servers[self.name_of(effect.endpoint)].latency + stub.latency
        return ScriptedAnswer(result_of(stub), latency_s=latency_s, source=stub, title=stubs.title)

    def nearest(self, effect: Effect, state: State) -> Nearest | None:
        """Return the stub that is nearest to matching a call; None if the tool has none."""
        stubs = self._stub_list(effect)
        return None if stubs is None else stubs.nearest(effect, state)

    def stub_lists(self) -> Iterable[StubList]:
        return self._stubs.values()

    def _stub_list(self, effect: Effect) -> StubList | None:
        if not isinstance(effect, MCPCall):
            return None
        return self._stubs.get((self.name_of(effect.endpoint), effect.name))


def result_of(stub: AnyStub) -> MCPResult:
    """Return what a tool gives for a stub."""
    if stub.error is not None:
        return error_result(str(stub.error.exception()))
    answer = stub.answer
    if "content" in answer:
        return content_result(answer["content"])
    value = answer.get("return")
    return text_result(value) if isinstance(value, str) else structured_result(value)


def _after(answer: Mapping[str, Any], stub: MCPStub) -> MCPResult:
    """Return what a tool gives once its question is answered."""
    action = answer.get("action", "accept")
    if action != "accept":
        return error_result(f"the answer to the question was: {action}")
    if stub.answer:
        return result_of(stub)
    return text_result(answer["content"]["text"]) if stub.sample else structured_result(answer.get("content"))


# The effect and the state of a call in progress. The scripted server answers in the context of the calling task.
_calling: ContextVar[tuple[MCPCall, State]] = ContextVar("_calling")


_Key = tuple[str, asyncio.AbstractEventLoop]
"""The id of a server, and the loop in which its session runs."""


class MCPServers(MCPStubs):
    """The MCP servers of a scenario, and the open sessions.

    A session is opened on the first call of a server in an event loop, in any task. An app has several loops where it
    asks for tools by `asyncio.run` while it is imported, or in a thread. For servers that the scenario calls real or
    does not mention, the session comes from `backend`, if there is one. `last` answers the calls of a scripted server
    that none of its stubs does.
    """

    def __init__(self, backend: Sessions | None = None, last: Responder | None = None) -> None:
        super().__init__()
        self._backend, self._last = backend, last
        self._open: dict[_Key, MCPSession] = {}
        self._opening: defaultdict[_Key, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._sessions = AsyncExitStack()
        self._closed = False
        self._under_way: list[tuple[MCPCall, Context]] = []

    def covers(self, effect: Effect) -> bool:
        """True if the scenario has the server of this call."""
        return isinstance(effect, MCPCall) and self.name_of(effect.endpoint) in self.servers

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
        if (failure := self.failure(effect.endpoint)) is not None:
            return failure
        session = await self._session(effect.endpoint)
        if session is None:
            return None
        token = _calling.set((effect, state))
        self._under_way.append(under_way := (effect, copy_context()))
        try:
            return Answer(value=await session.call_tool(effect.name, effect.args))
        finally:
            self._under_way.remove(under_way)
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
        failure = self.failure(endpoint)
        if failure is not None and failure.error is not None:
            await asyncio.sleep(failure.latency_s)
            raise failure.error
        session = await self._session(endpoint)
        if session is None:
            example = shortest_server(endpoint.id)
            raise UnscriptedCall(f"MCP server {endpoint.id!r}", None, self._hint(endpoint), example)
        return [ToolSpec(t.name, t.description, t.input_schema) for t in await session.list_tools()]

    async def close(self) -> None:
        """Close all sessions, and refuse to open more. May be called from any task."""
        self._closed = True
        self._open.clear()
        await self._sessions.aclose()

    async def _session(self, endpoint: MCPEndpoint) -> MCPSession | None:
        """Return the session with a server, opened by the first caller; None if there can be none."""
        key = endpoint.id, asyncio.get_running_loop()
        async with self._opening[key]:
            if key not in self._open:
                context = self._connection(endpoint)
                if context is None:
                    return None
                async with AsyncExitStack() as opening:
                    session = await opening.enter_async_context(context)
                    if self._closed:
                        raise MCPFailure(f"MCP server {endpoint.id!r} is asked after the end of the run")
                    self._sessions.push_async_callback(opening.pop_all().aclose)
                self._open[key] = session
            return self._open[key]

    def _connection(self, endpoint: MCPEndpoint) -> AbstractAsyncContextManager[MCPSession] | None:
        """Return a new session with a server, as a context manager; None if there can be none."""
        name = self.name_of(endpoint)
        server = self.servers.get(name)
        if server is not None and not server.real:
            return self._scripted(name)
        if self._backend is not None:
            return self._backend.session(endpoint)
        return None if server is None else connect(endpoint, asked=partial(self._asked, endpoint))

    async def _asked(self, endpoint: MCPEndpoint, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answer what a real server asks. It does not say for which call: the first that is under way has it."""
        for call, context in self._under_way:
            if call.endpoint.id == endpoint.id:
                answering = answer_question(call, method, params)
                return await asyncio.get_running_loop().create_task(answering, context=context)
        raise MCPFailure(f"nobody answers {method} outside of a call")

    def _hint(self, endpoint: MCPEndpoint) -> str:
        near = did_you_mean(endpoint.id, self.servers)
        return f"add `{endpoint.id}` under `mcp:`" + (f" ({near})" if near else "")

    def _scripted(self, name: str) -> AbstractAsyncContextManager[MCPSession]:
        of_stubs = super().answer

        async def answer(_tool: str, _args: dict[str, Any]) -> MCPResult:
            effect, state = _calling.get()
            answer = await of_stubs(effect, state)
            if answer is None and self._last is not None:
                answer = await self._last.answer(effect, state)
            if answer is None:
                raise unscripted(effect, self.nearest(effect, state), f"add a stub under `mcp.{name}`")
            await asyncio.sleep(answer.latency_s)
            stub = answer.source if isinstance(answer, ScriptedAnswer) else None
            if isinstance(stub, MCPStub) and (question := stub.question()) is not None:
                return _after(await answer_question(effect, *question), stub)
            result: MCPResult = answer.value
            return result

        return fake_session(name, self.listed(name), answer)
